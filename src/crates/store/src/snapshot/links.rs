//! Export of the kept links, between pages or between sites, for other programs; and of ranks as Common Crawl publishes
//! them.
//!
//! Links of pages are those of a snapshot's rows: the distinct targets of each page's last visit, without those of
//! weight 0. They are sorted by source, then by target, so that the same records give the same bytes. If weights differ
//! (`follow`, or weights in records), each link has its weight; weights are comparable within a page only. Links of
//! sites are those of the site graph (`sites/`), with its weights, unless all are 1.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::export::{MOST_SORTING, name_without, reversed};
use super::{LevelRanking, Snapshot};
use crate::codec::varint::{be_number, number};
use crate::disk::ExternalSorter;
use crate::graph::Graph;
use crate::memory::{LOOK_EVERY, check_room, to_read};
use crate::model::{Page, PageId};
use crate::rows::{Rows, Stop};
use crate::sites::{Level, SiteLinks, site_graph};
use crate::url::{domain, without_www};
use crate::{Error, Result};

/// Callback for the links of a page or site: targets in the order of their numbers, each with its weight.
pub type PageLinks<'l> = dyn FnMut(u32, &[(u32, u64)]) -> Result<()> + 'l;

/// Bytes that end a name in files of lines.
const LINE_ENDS: &[u8] = b"\t\r\n";

pub struct LinkGraph<'g> {
    ranking: &'g LevelRanking,
    sites: Option<Graph>,
    is_weighted: bool,
    memory: Option<u64>,
    folder: &'g Path,
}

impl<'g> LinkGraph<'g> {
    /// Returns the graph of a ranking's pages or sites. Links, and names if they are written, take at most `memory`
    /// bytes; links beyond that are sorted in files in `folder`.
    pub fn of(
        ranking: &'g LevelRanking,
        links: SiteLinks,
        memory: Option<u64>,
        folder: &'g Path,
    ) -> Result<LinkGraph<'g>> {
        let rows = ranking.snapshot().rows()?;
        let is_weighted = if ranking.sites().is_some() {
            links != SiteLinks::Once
        } else {
            let follow = &ranking.snapshot().info().settings.config.follow;
            !follow.is_default() || rows.has_weights()?
        };
        let sites = ranking.sites();
        let sites = sites.map(|of| site_graph(&rows, of, links, memory, folder));
        let sites = sites.transpose()?;
        let taken = sites.as_ref().map_or(0, Graph::bytes);
        let memory = memory.map(|memory| memory.saturating_sub(taken));
        Ok(LinkGraph {
            ranking,
            sites,
            is_weighted,
            memory,
            folder,
        })
    }

    fn level(&self) -> Level {
        self.ranking.level()
    }

    pub fn names(&self) -> Box<dyn Iterator<Item = Result<String>> + '_> {
        match self.ranking.sites() {
            Some(sites) => Box::new(sites.names().map(|name| Ok(name.to_owned()))),
            None => Box::new(self.ranking.snapshot().names()),
        }
    }

    /// Calls `visit` with the links of each page or site that has any, by number. Returns the number of links.
    pub fn each_links(&self, visit: &mut PageLinks<'_>) -> Result<u64> {
        let Some(graph) = &self.sites else {
            return self.each_of_pages(visit);
        };
        let mut links = Vec::new();
        for (site, row) in (0..).zip(graph.all()) {
            links.clear();
            links.extend(row.linked());
            if !links.is_empty() {
                visit(site, &links)?;
            }
        }
        Ok(graph.links() as u64)
    }

    fn each_of_pages(&self, visit: &mut PageLinks<'_>) -> Result<u64> {
        let memory = MOST_SORTING.min(self.memory.unwrap_or(u64::MAX));
        let mut sorter = ExternalSorter::new(memory as usize, self.folder);
        let mut value = Vec::new();
        self.ranking.snapshot().rows()?.sweep(&mut |row| {
            value.clear();
            for (target, weight) in row.linked() {
                value.extend_from_slice(&target.to_le_bytes());
                value.extend_from_slice(&weight.to_le_bytes());
            }
            sorter
                .push(&row.page.to_be_bytes(), &value)
                .map_err(Stop::Failed)
        })?;
        let (mut links, mut count) = (Vec::new(), 0);
        for record in sorter.sorted()? {
            let (page, value) = record?;
            links.clear();
            links.extend(
                value
                    .chunks_exact(12)
                    .map(|link| (number(&link[..4]) as u32, number(&link[4..]))),
            );
            links.sort_unstable();
            count += links.len() as u64;
            if !links.is_empty() {
                visit(be_number(&page) as u32, &links)?;
            }
        }
        Ok(count)
    }
}

fn write_file<T>(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut (dyn Write + Send), &Path) -> Result<T>,
) -> Result<T> {
    let path = folder.join(name);
    let file = File::create_new(&path).map_err(Error::io(&path, "create"))?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out, &path)?;
    out.flush().map_err(Error::io(&path, "write"))?;
    Ok(written)
}

/// Writes all links, by numbers or by names. Returns their number. Fails if names do not fit in memory, or in a line.
pub fn write_tsv(
    graph: &LinkGraph<'_>,
    numbers: bool,
    out: &mut (dyn Write + Send),
    path: &Path,
) -> Result<u64> {
    let names = (!numbers).then(|| AllNames::of(graph)).transpose()?;
    let weighted = graph.is_weighted;
    graph.each_links(&mut |source, links| {
        let mut write = || -> std::io::Result<()> {
            for &(target, weight) in links {
                match &names {
                    Some(names) => write!(out, "{}\t{}", names.get(source), names.get(target))?,
                    None => write!(out, "{source}\t{target}")?,
                }
                if weighted {
                    write!(out, "\t{weight}")?;
                }
                out.write_all(b"\n")?;
            }
            Ok(())
        };
        write().map_err(Error::io(path, "write"))
    })
}

struct AllNames {
    text: String,
    ends: Vec<usize>,
}

impl AllNames {
    fn of(graph: &LinkGraph<'_>) -> Result<AllNames> {
        let reading = to_read(graph.ranking.snapshot().len());
        let budget = graph.memory.map(|memory| memory.saturating_sub(reading));
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

    fn get(&self, page: u32) -> &str {
        let page = page as usize;
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[page]]
    }
}

/// Writes the links of a snapshot into `folder`. Returns their number. Names stay on disk.
pub fn write_common_crawl(graph: &LinkGraph<'_>, folder: &Path) -> Result<u64> {
    let is_host = matches!(graph.level(), Level::Host | Level::BareHost | Level::Domain);
    let hosts = (graph.level() == Level::Domain)
        .then(|| hosts_of(graph.ranking.snapshot(), graph.memory))
        .transpose()?;
    let names = (0..).zip(graph.names()).map(|(at, name)| {
        let name = name?;
        name_without(&name, at, LINE_ENDS, "vertices", "the links as numbers")?;
        Ok(match &hosts {
            Some(hosts) => {
                let count = hosts.get(&name).copied().unwrap_or_default();
                format!("{}\t{count}", reversed(&name))
            }
            None if is_host => reversed(&name).into_owned(),
            None => name,
        })
    });
    write_folder(folder, names, |visit| graph.each_links(visit))
}

/// Writes any graph into `folder`: the lines of `names`, and the links with which `links` calls back.
pub fn write_folder(
    folder: &Path,
    names: impl Iterator<Item = Result<String>>,
    links: impl FnOnce(&mut PageLinks<'_>) -> Result<u64>,
) -> Result<u64> {
    write_file(folder, "vertices.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        for (at, name) in names.enumerate() {
            writeln!(out, "{at}\t{}", name?).map_err(Error::io(path, "write"))?;
        }
        out.finish().map_err(Error::io(path, "write"))?;
        Ok(())
    })?;
    write_file(folder, "edges.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        let count = links(&mut |source, links| {
            let mut write = || {
                links
                    .iter()
                    .try_for_each(|(target, _)| writeln!(out, "{source}\t{target}"))
            };
            write().map_err(Error::io(path, "write"))
        })?;
        out.finish().map_err(Error::io(path, "write"))?;
        Ok(count)
    })
}

/// Memory per site, without its name, in bytes.
const SITE_BYTES: u64 = 64;

/// Writes the ranks of hosts or domains in Common Crawl's layout, in the order of harmonic centrality, by both
/// measures, which were computed for one snapshot. Equal scores are in the order of first appearance.
pub fn write_ranks(
    harmonic: &LevelRanking,
    pagerank: &LevelRanking,
    memory: Option<u64>,
    out: impl Write,
    path: &Path,
) -> Result<u64> {
    let level = harmonic.level();
    if !matches!(level, Level::Host | Level::BareHost | Level::Domain) {
        return Err(Error::Usage(format!(
            "common-crawl ranks hosts or domains: the `level` is {level}; give barehost, host or domain"
        )));
    }
    let need = harmonic.len() * SITE_BYTES + harmonic.snapshot().len() * 4;
    check_room(
        memory,
        need,
        || format!("the ranks of {} {}", harmonic.len(), level.plural()),
        "export domains",
    )?;
    let hosts = (level == Level::Domain)
        .then(|| hosts_of(harmonic.snapshot(), memory))
        .transpose()?;
    let listed = |row: &Result<Page<'_>>| row.as_ref().map_or(true, |row| harmonic.lists(row));
    let mut all: Vec<_> = harmonic.rows().filter(listed).collect::<Result<_>>()?;
    all.sort_unstable_by_key(|row| (row.rank, row.page));
    let by_rank = pagerank.rows().filter(listed);
    let by_rank = by_rank.map(|row| row.map(|row| (row.rank, row.page, row.importance)));
    let mut by_rank: Vec<(u64, PageId, f64)> = by_rank.collect::<Result<_>>()?;
    by_rank.sort_unstable_by_key(|of| (of.0, of.1));
    let mut places = vec![(0, 0.0); pagerank.len() as usize];
    for (place, (_, site, score)) in (1..).zip(by_rank) {
        places[site.index()] = (place, score);
    }
    let mut out = BufWriter::new(out);
    let mut write = || -> std::io::Result<()> {
        write!(
            out,
            "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev"
        )?;
        writeln!(out, "{}", if hosts.is_some() { "\t#n_hosts" } else { "" })?;
        for (at, site) in (1..).zip(&all) {
            let (name, value) = (&*site.url, site.importance);
            let (place, pr) = places[site.page.index()];
            let reversed = reversed(name);
            write!(out, "{at}\t{value:?}\t{place}\t{pr:?}\t{reversed}")?;
            if let Some(hosts) = &hosts {
                write!(out, "\t{}", hosts.get(name).copied().unwrap_or(0))?;
            }
            writeln!(out)?;
        }
        out.flush()
    };
    write().map_err(Error::io(path, "write"))?;
    Ok(all.len() as u64)
}

/// Counts the hosts of each domain; those with and without `www.` count as one.
fn hosts_of(snapshot: &Snapshot, memory: Option<u64>) -> Result<HashMap<String, u64>> {
    let sites = snapshot.sites(Level::Host, memory)?;
    let mut seen = HashSet::new();
    let mut hosts: HashMap<String, u64> = HashMap::new();
    for host in sites.names() {
        let of = String::from_utf8_lossy(domain(host.as_bytes())).into_owned();
        let bare = without_www(host.as_bytes()).to_vec();
        if seen.insert((of.clone(), bare)) {
            *hosts.entry(of).or_default() += 1;
        }
    }
    Ok(hosts)
}
