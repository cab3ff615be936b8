//! Ranks of hosts or domains in the layout that Common Crawl publishes.
//!
//! A line per host or domain, in the order of harmonic centrality: position and value by both measures, the labels of
//! the name, the last first, and for a domain the number of its hosts, without a leading `www.`. Positions have no
//! ties: of equal scores the site whose first page appeared earlier comes first.

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};

use super::export::reversed;
use super::{LevelRanking, Snapshot};
use crate::model::{Page, PageId, check_room};
use crate::sites::Level;
use crate::url::{domain, without_www};
use crate::{Error, Result};

/// Memory for a site besides its name, in bytes.
const SITE_BYTES: u64 = 64;

/// Writes the ranks of one level by both measures, which were computed beside one snapshot. Returns the number of lines
/// after the header. Holds the names in memory, up to `memory` bytes. `path` names `out` in errors.
pub fn write_ranks(
    harmonic: &LevelRanking,
    pagerank: &LevelRanking,
    memory: Option<u64>,
    out: impl Write,
    path: &std::path::Path,
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
    let beside = pagerank.rows().filter(listed);
    let beside = beside.map(|row| row.map(|row| (row.rank, row.page, row.importance)));
    let mut beside: Vec<(u64, PageId, f64)> = beside.collect::<Result<_>>()?;
    beside.sort_unstable_by_key(|of| (of.0, of.1));
    let mut places = vec![(0, 0.0); pagerank.len() as usize];
    for (place, (_, site, score)) in (1..).zip(beside) {
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
pub(super) fn hosts_of(snapshot: &Snapshot, memory: Option<u64>) -> Result<HashMap<String, u64>> {
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
