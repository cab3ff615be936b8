//! `compare --page`: the given pages in two rankings: what changed, and which is certainly more important in each.

use std::collections::HashMap;
use std::io::Write;

use cashrank::{Error, PageState};
use cashrank_graph::metrics::moved::{Move, Standing, margin};
use cashrank_steer::answers::pages_of;
use cashrank_store::snapshot::Snapshot;

use super::moved::{About, gone, note_settings, sure};
use super::side::CompareSide;
use crate::cli::certain::{Asked, certainly_above, write_certain};
use crate::cli::common::{shown, thousands};
use crate::cli::rank;

/// Report of all requested pages, as JSON shows it.
#[derive(serde::Serialize)]
pub struct PagesReport<'a> {
    left: About,
    right: About,
    /// Largest change that may be error alone; `None`: nothing is certain.
    margin: Option<f64>,
    pages: Vec<ComparedPage<'a>>,
    #[serde(skip)]
    counts: [u64; 2],
}

/// Requested page with its position on both sides.
#[derive(serde::Serialize)]
struct ComparedPage<'a> {
    url: &'a str,
    left: Option<PageSide<'a>>,
    right: Option<PageSide<'a>>,
    change: Option<f64>,
    /// True if PageRank itself certainly changed in that direction; `None` without bounds.
    certain: Option<bool>,
}

/// Position of a page on a side.
#[derive(serde::Serialize)]
struct PageSide<'a> {
    importance: f64,
    rank: u64,
    state: Option<PageState>,
    /// Other requested pages that are certainly less important on this side.
    certainly_above: Vec<&'a str>,
}

/// Looks up the pages on both sides.
pub fn report<'a>(
    left: &CompareSide,
    right: &CompareSide,
    urls: &'a [String],
) -> anyhow::Result<PagesReport<'a>> {
    note_settings(left, right);
    for side in [left, right] {
        side.check_lasts("--page")?;
    }
    let sides = [Standings::of(left, urls)?, Standings::of(right, urls)?];
    let margin = margin(sides[0].bound, sides[1].bound);
    let places = sides.each_ref().map(|side| side.places(urls));
    let [lefts, rights] = places;
    let both = lefts.into_iter().zip(rights);
    let pages = urls.iter().zip(both).map(|(url, (left, right))| {
        let standing = |place: &PageSide<'_>| Standing {
            importance: place.importance,
            rank: place.rank,
            ranks: None,
        };
        let both = left.as_ref().zip(right.as_ref());
        let moved = both.map(|(left, right)| Move {
            page: (),
            left: standing(left),
            right: standing(right),
        });
        ComparedPage {
            url,
            change: moved.map(|moved| moved.change()),
            certain: moved.and_then(|moved| moved.is_certain(margin)),
            left,
            right,
        }
    });
    Ok(PagesReport {
        left: About::of(left),
        right: About::of(right),
        margin,
        pages: pages.collect(),
        counts: sides.map(|side| side.pages),
    })
}

/// Requested pages on one side.
struct Standings {
    pages: u64,
    bound: Option<f64>,
    found: Vec<Option<Standing>>,
    states: Vec<Option<PageState>>,
}

impl Standings {
    fn of(side: &CompareSide, urls: &[String]) -> anyhow::Result<Standings> {
        Ok(match side.snapshot() {
            Some(snapshot) => Standings::of_snapshot(snapshot, urls)?,
            None => Standings::of_scores(side, urls)?,
        })
    }

    fn of_snapshot(snapshot: &Snapshot, urls: &[String]) -> Result<Standings, Error> {
        let (mut found, mut states) = (Vec::new(), Vec::new());
        for page in rank::pages(snapshot, urls)? {
            let page = match page {
                Some(page) => snapshot.page(page)?,
                None => None,
            };
            states.push(page.as_ref().and_then(|page| page.fetches.state()));
            found.push(page.map(|page| Standing {
                importance: page.importance,
                rank: page.rank,
                ranks: None,
            }));
        }
        Ok(Standings {
            pages: snapshot.info().pages,
            bound: snapshot.bound_l1(),
            found,
            states,
        })
    }

    /// Reads the scores twice: for the scores and their sum, then for the ranks; a third time if some names are not
    /// URLs.
    fn of_scores(side: &CompareSide, urls: &[String]) -> Result<Standings, Error> {
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
        let found = scores.iter().zip(ranks).map(|(score, rank)| {
            score.map(|score| Standing {
                importance: if sum > 0.0 { score / sum } else { 0.0 },
                rank,
                ranks: None,
            })
        });
        Ok(Standings {
            pages,
            bound: side.bound_l1(),
            found: found.collect(),
            states: vec![None; urls.len()],
        })
    }

    fn places<'a>(&self, urls: &'a [String]) -> Vec<Option<PageSide<'a>>> {
        let asked = urls.iter().zip(&self.found);
        let asked: Vec<Asked<'a>> = asked
            .map(|(url, found)| (url.as_str(), found.map(|found| found.importance)))
            .collect();
        let above = certainly_above(&asked, self.bound);
        let places = self.found.iter().zip(&self.states).zip(above);
        let place =
            |((found, state), certainly_above): ((&Option<Standing>, &Option<PageState>), _)| {
                found.map(|found| PageSide {
                    importance: found.importance,
                    rank: found.rank,
                    state: *state,
                    certainly_above,
                })
            };
        places.map(place).collect()
    }
}

impl PagesReport<'_> {
    /// Returns whether each page is known on at least one side.
    pub fn is_all_known(&self) -> bool {
        let known = |page: &ComparedPage<'_>| page.left.is_some() || page.right.is_some();
        self.pages.iter().all(known)
    }

    /// Writes both sides, each page, and each two pages that are adjacent in importance.
    pub fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        self.left.write(out, "left", self.counts[0])?;
        self.right.write(out, "right", self.counts[1])?;
        for page in &self.pages {
            writeln!(out, "{}", shown(page.url))?;
            for (name, place) in [("left", &page.left), ("right", &page.right)] {
                match place {
                    None => writeln!(out, "  {name:<6} not known")?,
                    Some(place) => writeln!(
                        out,
                        "  {name:<6} {:.6e}, rank {}{}",
                        place.importance,
                        thousands(place.rank),
                        gone(place.state)
                    )?,
                }
            }
            if let Some(change) = page.change {
                let certain = sure(page.certain);
                writeln!(out, "  change {change:+.6e}, certain: {certain}")?;
            }
        }
        let lefts = self.pages.iter().map(|page| asked(page.url, &page.left));
        write_certain(out, "left: ", &lefts.collect::<Vec<_>>(), self.left.bound())?;
        let rights = self.pages.iter().map(|page| asked(page.url, &page.right));
        write_certain(
            out,
            "right: ",
            &rights.collect::<Vec<_>>(),
            self.right.bound(),
        )?;
        Ok(())
    }
}

fn asked<'a>(url: &'a str, place: &Option<PageSide<'_>>) -> Asked<'a> {
    (url, place.as_ref().map(|place| place.importance))
}
