//! Pages of lists ([`crate::rules::list`]), looked up in stores: seeds, pages in progress, pages of a domain.
//!
//! Lists are read in chunks of [`PIECE`] lines, so memory does not grow with their length.

use super::Rankings;
use crate::model::{Page, PageId};
use crate::rules::list::{ListLine, NameSet, SkippedLines, parts};
use crate::snapshot::{Snapshot, find_lines};
use crate::{Error, Result};

/// Maximum number of lines that are read together.
const PIECE: usize = 1 << 16;
/// Maximum number of lines that are looked up together, since each lookup sweeps over much of a ranking.
const LOOKED_UP: usize = 1 << 18;
/// Approximate memory of a line that is looked up, in bytes.
const LOOKED_UP_BYTES: u64 = 1 << 10;
/// Mean length of a line, in bytes, up to which [`PIECE`] lines are read together.
const LINE_BYTES: usize = 1 << 7;

/// Calls `each` with the pages that lines name, in order, chunk by chunk. Returns the counts of skipped lines.
pub fn each_listed(
    lines: impl IntoIterator<Item = Result<Vec<u8>>>,
    snapshot: Option<&Snapshot>,
    mut each: impl FnMut(Vec<(ListLine, Option<PageId>)>) -> Result<()>,
) -> Result<SkippedLines> {
    let find = |names: &[&[u8]]| match snapshot {
        Some(snapshot) => snapshot.find(names),
        None => Ok(vec![None; names.len()]),
    };
    let mut unread = SkippedLines::default();
    let comments = each_line(lines, PIECE, find, |mut pages| {
        pages.retain(|(line, page)| match line.why {
            Some(why) if page.is_none() => {
                unread.count(why, 1);
                false
            }
            _ => true,
        });
        each(pages)
    })?;
    Ok(SkippedLines { comments, ..unread })
}

/// Looks up the pages or sites that lines name, each in its own shard if there are several. Calls `each` in order with a
/// row for each of them, of rank 0 if it is unknown. Lines are read in chunks that take about `memory` bytes.
pub fn look_up(
    rankings: Rankings<'_>,
    lines: impl IntoIterator<Item = Result<Vec<u8>>>,
    memory: Option<u64>,
    mut each: impl FnMut(&Page<'_>) -> Result<()>,
) -> Result<LookedUp> {
    let mut counts = LookedUp::default();
    let most = memory.map_or(LOOKED_UP, |memory| (memory / LOOKED_UP_BYTES) as usize);
    // Shard of each page that was found, and its number there.
    let find = |names: &[&[u8]]| {
        let mut found = vec![None; names.len()];
        for (shard, ranking) in rankings.each().enumerate() {
            let is_local = |name| !rankings.are_several() || ranking.snapshot().is_local(name);
            let of_shard = ranking.find(names)?.into_iter().zip(names);
            for (found, (number, name)) in found.iter_mut().zip(of_shard) {
                *found = found.or(number.filter(|_| is_local(name)).map(|page| (shard, page)));
            }
        }
        Ok(found)
    };
    counts.skipped.comments =
        each_line(lines, most.clamp(PIECE / 64, LOOKED_UP), find, |listed| {
            let mut rows = Vec::new();
            for (shard, ranking) in rankings.each().enumerate() {
                let of_shard = listed.iter().filter_map(|(_, page)| *page);
                let of_shard = of_shard.filter(|(of, _)| *of == shard);
                let numbers: Vec<PageId> = of_shard.map(|(_, page)| page).collect();
                rows.push(ranking.facts_of(&numbers)?.into_iter());
            }
            for (line, page) in listed {
                let row = page.and_then(|(shard, _)| rows[shard].next());
                counts.known += u64::from(row.is_some());
                counts.unknown += u64::from(row.is_none());
                each(&Page {
                    url: String::from_utf8_lossy(&line.name),
                    ..row.unwrap_or_default()
                })?;
            }
            Ok(())
        })?;
    Ok(counts)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookedUp {
    /// Number of lines that name a page or site of the ranking.
    pub known: u64,
    pub unknown: u64,
    /// Skipped lines: comments only.
    pub skipped: SkippedLines,
}

/// Calls `each` with the pages that `find` finds, in chunks of at most `most` lines. Returns the number of comments.
fn each_line<P: Copy>(
    lines: impl IntoIterator<Item = Result<Vec<u8>>>,
    most: usize,
    mut find: impl FnMut(&[&[u8]]) -> Result<Vec<Option<P>>>,
    mut each: impl FnMut(Vec<(ListLine, Option<P>)>) -> Result<()>,
) -> Result<u64> {
    let mut comments = 0;
    let mut lines = (0..).zip(lines);
    loop {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        for (number, line) in lines.by_ref() {
            let line = line?;
            match parts(&line).map(|(text, _)| text) {
                None => continue,
                Some([b'#', ..]) => comments += 1,
                Some(text) => {
                    bytes += text.len();
                    piece.push(ListLine::of(text, number));
                }
            }
            if piece.len() >= most || bytes >= most * LINE_BYTES {
                break;
            }
        }
        if piece.is_empty() {
            return Ok(comments);
        }
        each(find_lines(piece, &mut find)?)?;
    }
}

/// Returns the distinct pages at which readers start, from a list of URLs: known ones first, and a number beyond all
/// pages for each of the others.
pub fn seeds_of(
    snapshot: &Snapshot,
    lines: impl IntoIterator<Item = Result<Vec<u8>>>,
    memory: Option<u64>,
) -> Result<(Vec<u32>, SkippedLines)> {
    let (mut seeds, mut others) = (Vec::new(), NameSet::new(memory));
    let mut other_shards = 0;
    let mut skipped = each_listed(lines, Some(snapshot), |pages| {
        for (line, page) in pages {
            if !snapshot.is_local(&line.name) {
                other_shards += 1;
                continue;
            }
            match page {
                Some(page) => seeds.push(page.0 as u32),
                None => {
                    others.add(&line.name)?;
                }
            }
        }
        seeds.sort_unstable();
        seeds.dedup();
        Ok(())
    })?;
    skipped.other_shards = other_shards;
    let unknown = u32::try_from(others.len())
        .map_err(|_| Error::Usage("a list of more than 2^32 seeds".into()))?;
    seeds.extend((0..unknown).map(|number| u32::MAX - number));
    Ok((seeds, skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> (Vec<String>, SkippedLines) {
        let mut names = Vec::new();
        let lines = list.split('\n').map(|line| Ok(line.as_bytes().to_vec()));
        let skipped = each_listed(lines, None, |pages| {
            let all = pages
                .into_iter()
                .map(|(line, _)| String::from_utf8(line.name).unwrap());
            names.extend(all);
            Ok(())
        });
        (names, skipped.unwrap())
    }

    /// Lists as Nutch, browsers and crawlers write them: lines that are not URLs are counted and are no pages.
    #[test]
    fn what_is_no_url_is_counted() {
        let list = "\u{feff}http://A.example\r\n# seeds\n\n  https://b.example/x#top \nexample.net\n//c.example/\n\
                    ftp://a.example/f\nmailto:me@a.example\nhttp://a.example/s1\tnutch.score=10\tk=v\n\thttp://d.example/\n\
                    http://[\njavascript:void(0)\n\t#late\nhttp://e.example/c # a comment\n";
        let (names, skipped) = read(list);
        assert_eq!(
            names,
            [
                "http://a.example/",
                "https://b.example/x",
                "http://a.example/s1",
                "http://d.example/",
                "http://e.example/c"
            ]
        );
        assert_eq!(
            skipped,
            SkippedLines {
                comments: 2,
                no_scheme: 2,
                other_scheme: 3,
                invalid: 1,
                other_shards: 0
            }
        );
        assert_eq!(
            skipped.to_string(),
            "8 lines skipped: comments (2), no http:// or https:// (2), another scheme (3), no URL (1)"
        );
        assert!(read("\n \r\n").1.is_none());
    }
}
