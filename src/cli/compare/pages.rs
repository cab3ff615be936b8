//! `compare --page`: the given pages in two rankings, their changes, and which is certainly more important in each.

use std::collections::HashMap;
use std::io::Write;

use cashrank::{Error, Rank};
use cashrank_graph::metrics::moved::{is_moved, margin};
use cashrank_steer::answers::pages_of;

use super::moved::{gone, note_settings, sure};
use super::side::CompareSide;
use crate::cli::common::{Asked, certainly_above, shown, thousands, write_certain};
use crate::cli::json::object;

pub struct PagesReport<'a> {
    urls: &'a [String],
    sides: [PagesSide<'a>; 2],
}

struct PagesSide<'a> {
    of: &'a CompareSide,
    pages: u64,
    ranks: Vec<Rank>,
}

pub fn report<'a>(
    left: &'a CompareSide,
    right: &'a CompareSide,
    urls: &'a [String],
) -> anyhow::Result<PagesReport<'a>> {
    note_settings(left, right);
    for side in [left, right] {
        side.check_lasts("--page")?;
    }
    let sides = [PagesSide::of(left, urls)?, PagesSide::of(right, urls)?];
    Ok(PagesReport { urls, sides })
}

impl<'a> PagesSide<'a> {
    fn of(side: &'a CompareSide, urls: &[String]) -> Result<PagesSide<'a>, Error> {
        let (pages, ranks) = match side.snapshot() {
            Some(snapshot) => (snapshot.info().pages, snapshot.ranks(urls)?),
            None => ranks_by_scores(side, urls)?,
        };
        let of = side;
        Ok(PagesSide { of, pages, ranks })
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

impl PagesReport<'_> {
    pub fn is_all_known(&self) -> bool {
        let [left, right] = &self.sides;
        let mut both = left.ranks.iter().zip(&right.ranks);
        both.all(|(left, right)| left.known || right.known)
    }

    /// Returns the largest change that may be error alone; `None`: nothing is certain.
    fn margin(&self) -> Option<f64> {
        let [left, right] = &self.sides;
        margin(left.of.bound_l1(), right.of.bound_l1())
    }

    /// Returns the changes of pages that both sides know, each with whether PageRank certainly moved in its direction.
    fn changes(&self) -> impl Iterator<Item = Option<(f64, Option<bool>)>> {
        let [left, right] = &self.sides;
        let margin = self.margin();
        let both = left.ranks.iter().zip(&right.ranks);
        both.map(move |(left, right)| {
            let change = right.importance? - left.importance?;
            Some((change, margin.map(|_| is_moved(change, margin))))
        })
    }

    pub fn json(&self) -> impl serde::Serialize {
        let [left, right] = &self.sides;
        let both = left.json().into_iter().zip(right.json());
        let pages = self.urls.iter().zip(both).zip(self.changes());
        let pages = pages.map(|((url, (left, right)), change)| {
            object! {
                "url": url,
                "left": left,
                "right": right,
                "change": change.map(|(change, _)| change),
                "certain": change.and_then(|(_, is_certain)| is_certain),
            }
        });
        object! {
            "left": left.of.json(),
            "right": right.of.json(),
            "margin": self.margin(),
            "pages": pages.collect::<Vec<_>>(),
        }
    }

    pub fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let named = ["left", "right"].into_iter().zip(&self.sides);
        for (name, side) in named.clone() {
            side.of.write(out, name, side.pages)?;
        }
        for (at, (url, change)) in self.urls.iter().zip(self.changes()).enumerate() {
            writeln!(out, "{}", shown(url))?;
            for (name, side) in named.clone() {
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
        for (name, side) in named {
            let bound = (side.of.bound_l1(), side.of.basis());
            write_certain(out, &format!("{name}: "), &side.asked(), bound)?;
        }
        Ok(())
    }
}
