//! Names of all pages or sites, in memory.

use super::{LINE_ENDS, LinkGraph};
use crate::Result;
use crate::memory::{LOOK_EVERY, check_room};
use crate::snapshot::export::name_without;

pub(super) struct AllNames {
    text: String,
    ends: Vec<usize>,
}

impl AllNames {
    /// Loads all names; an error if they exceed the budget.
    pub fn of(graph: &LinkGraph<'_>, budget: Option<u64>) -> Result<AllNames> {
        let (pages, kind) = (graph.ranking.len(), graph.level().plural());
        let work = || format!("the names of {pages} {kind}");
        let check = |text: usize| {
            // Text that grows by doubling may take twice the memory.
            let need = pages * size_of::<usize>() as u64 + 2 * text as u64;
            check_room(
                budget,
                need,
                work,
                "export the links as numbers, and the ranking beside them",
            )
        };
        check(0)?;
        let mut all = AllNames {
            text: String::new(),
            ends: Vec::with_capacity(pages as usize),
        };
        for (at, name) in graph.names().enumerate() {
            let name = name?;
            name_without(
                &name,
                at as u64,
                LINE_ENDS,
                "a line",
                "the links as numbers",
            )?;
            all.text.push_str(&name);
            all.ends.push(all.text.len());
            if (at as u64).is_multiple_of(LOOK_EVERY) {
                check(all.text.len())?;
            }
        }
        Ok(all)
    }

    /// Returns the name of a page or site.
    pub fn get(&self, page: u32) -> &str {
        let page = page as usize;
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[page]]
    }
}
