//! `compare --page`: the given pages in two rankings, their changes, and which is certainly more important in each.

use std::collections::HashMap;
use std::io::Write;

use cashrank::{Error, Rank};
use cashrank_graph::metrics::moved::{is_moved, margin};
use cashrank_steer::answers::pages_of;

use super::moved::{gone, note_settings, sure};
use super::side::CompareSide;
use crate::cli::common::{
    Asked, Exit, certainly_above, print, print_json, shown, thousands, write_certain,
};
use crate::cli::json::object;

struct PagesSide<'a> {
    of: &'a CompareSide,
    pages: u64,
    ranks: Vec<Rank>,
}

impl<'a> PagesSide<'a> {
    fn of(side: &'a CompareSide, urls: &[String]) -> Result<PagesSide<'a>, Error> {
        let (pages, ranks) = match side.snapshot() {
            Some(snapshot) => (snapshot.info().pages, snapshot.ranks(urls)?),
            None => ranks_by_scores(side, urls)?,
        };
        Ok(PagesSide {
            of: side,
            pages,
            ranks,
        })
    }

    fn asked(&self) -> Vec<Asked<'_>> {
        let asked = self.ranks.iter();
        asked.map(|of| (of.url.as_str(), of.importance)).collect()
    }

    /// Returns the positions of the pages as JSON, each with the pages that are certainly less important on this side.
    fn json(&self) -> Vec<Option<impl serde::Serialize>> {
        let above = certainly_above(&self.asked(), self.of.bound_l1());
        let place = |(of, above): (&Rank, _)| {
            of.known.then_some(object! {
                "importance": of.importance,
                "rank": of.rank,
                "state": of.state,
                "certainly_above": above,
            })
        };
        self.ranks.iter().zip(above).map(place).collect()
    }
}

/// Returns the number of pages of a file of scores, and the ranks of some. Reads the file twice, for the scores and
/// their sum and then for the ranks, and a third time if some names are not URLs.
fn ranks_by_scores(side: &CompareSide, urls: &[String]) -> Result<(u64, Vec<Rank>), Error> {
    let (mut sum, mut pages) = (0.0, 0);
    let scores = pages_of(urls, |names| -> Result<Vec<Option<f64>>, Error> {
        let mut found: HashMap<&[u8], Option<f64>> =
            names.iter().map(|name| (*name, None)).collect();
        (sum, pages) = (0.0, 0);
        side.each(|name, score| {
            sum += score;
            pages += 1;
            if let Some(found) = found.get_mut(name) {
                *found = Some(score);
            }
            Ok(())
        })?;
        Ok(names.iter().map(|name| found[name]).collect())
    })?;
    let mut ranks = vec![1; scores.len()];
    side.each(|_, other| {
        for (rank, score) in ranks.iter_mut().zip(&scores) {
            *rank += u64::from(score.is_some_and(|score| other > score));
        }
        Ok(())
    })?;
    let ranks = urls.iter().zip(scores).zip(ranks);
    let ranks = ranks.map(|((url, score), rank)| Rank {
        url: url.clone(),
        known: score.is_some(),
        importance: score.map(|score| if sum > 0.0 { score / sum } else { 0.0 }),
        rank: score.map(|_| rank),
        ..Rank::default()
    });
    Ok((pages, ranks.collect()))
}

/// Shows pages on both sides, the changes of those that both know, and which are certainly more important on each.
pub fn show(sides: [&CompareSide; 2], urls: &[String], is_json: bool) -> anyhow::Result<Exit> {
    let [left, right] = sides;
    note_settings(left, right);
    for side in sides {
        side.check_lasts("--page")?;
    }
    let margin = margin(left.bound_l1(), right.bound_l1());
    let [left, right] = [PagesSide::of(left, urls)?, PagesSide::of(right, urls)?];
    let mut both = left.ranks.iter().zip(&right.ranks);
    // A change is certain if PageRank itself moved in its direction; without a margin nothing is known of that.
    let changes = both.clone().map(|(left, right)| {
        let change = right.importance? - left.importance?;
        Some((change, margin.map(|_| is_moved(change, margin))))
    });
    if is_json {
        let ranks = left.json().into_iter().zip(right.json());
        let pages = urls.iter().zip(ranks).zip(changes);
        let pages = pages.map(|((url, (left, right)), change)| {
            object! {
                "url": url,
                "left": left,
                "right": right,
                "change": change.map(|(change, _)| change),
                "certain": change.and_then(|(_, is_certain)| is_certain),
            }
        });
        print_json(&object! {
            "left": left.of.json(),
            "right": right.of.json(),
            "margin": margin,
            "pages": pages.collect::<Vec<_>>(),
        })?;
    } else {
        print(|out| write_plain(out, urls, [("left", &left), ("right", &right)], changes))?;
    }
    Ok(if both.all(|(left, right)| left.known || right.known) {
        Exit::Done
    } else {
        Exit::Unknown
    })
}

fn write_plain(
    out: &mut dyn Write,
    urls: &[String],
    sides: [(&str, &PagesSide<'_>); 2],
    changes: impl Iterator<Item = Option<(f64, Option<bool>)>>,
) -> anyhow::Result<()> {
    for (name, side) in sides {
        side.of.write(out, name, side.pages)?;
    }
    for (at, (url, change)) in urls.iter().zip(changes).enumerate() {
        writeln!(out, "{}", shown(url))?;
        for (name, side) in sides {
            let of = &side.ranks[at];
            match (of.importance, of.rank) {
                (Some(importance), Some(rank)) => writeln!(
                    out,
                    "  {name:<6} {importance:.6e}, rank {}{}",
                    thousands(rank),
                    gone(of.state)
                )?,
                _ => writeln!(out, "  {name:<6} not known")?,
            }
        }
        if let Some((change, is_certain)) = change {
            let certain = sure(is_certain);
            writeln!(out, "  change {change:+.6e}, certain: {certain}")?;
        }
    }
    for (name, side) in sides {
        let bound = (side.of.bound_l1(), side.of.basis());
        write_certain(out, &format!("{name}: "), &side.asked(), bound)?;
    }
    Ok(())
}
