//! `cashrank stat --record`: the origin of a ranking, so that it can be cited and reproduced.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use cashrank::{Config, WindowPolicy};
use cashrank_base::model::InputPosition;
use cashrank_graph::rank::Goal;
use cashrank_store::snapshot::{Info, Snapshot};
use cashrank_store::store::{Input, InputProgress, RealDisk, open_view};
use xxhash_rust::xxh3::Xxh3;

use super::json::object;

const RECORD: u32 = 1;

/// Returns the origin of a store's current snapshot as JSON; fails if the store has read more records since.
pub fn origin_of(store: &Path) -> anyhow::Result<impl serde::Serialize> {
    let snapshot = Snapshot::latest(&RealDisk, store)?;
    let view = open_view(&RealDisk, store)?;
    let (info, progress) = (snapshot.info(), &view.manifest.progress);
    anyhow::ensure!(
        info.counters == view.manifest.engine.counters,
        cashrank::Error::Conflict(format!(
            "{}: its current snapshot is older than what was read last: run the ingest to its end",
            store.display()
        ))
    );
    // The hash of damaged bytes would name a ranking that nobody can reproduce.
    snapshot.check_sums()?;
    let (bytes, hash) = hash_of(snapshot.path())?;
    let input = |input: &Input| {
        let place = input.end.unwrap_or(progress.place);
        object! {
            "name": input.name.clone(),
            "format": input.format.clone(),
            // Number of bytes read, decompressed, and their hash; null for a spooled stream.
            "bytes": place.offset,
            "xxh3_128": (place.prefix != 0).then(|| hex(place.prefix)),
            "records": place.records,
            // True if the input was read to its end.
            "whole": input.end.is_some(),
        }
    };
    Ok(object! {
        "record": RECORD,
        "program": "cashrank",
        "version": env!("CARGO_PKG_VERSION"),
        "ranking": object! {
            "file": snapshot.path().display().to_string(),
            "bytes": bytes,
            "xxh3_128": hex(hash),
            "pages": info.pages,
            "records": info.counters.records,
            "links": info.counters.links,
            "until": info.time.map(|at| super::common::time(Some(at))),
            "bound_l1": info.bound_l1(),
        },
        "inputs": progress.inputs.iter().map(input).collect::<Vec<_>>(),
        // Arguments of a command that reproduces the ranking, and why it may produce other bytes.
        "again": ingest_command(info, progress),
        "caveats": caveats(info, progress),
    })
}

fn is_usual(config: &Config) -> bool {
    config.window == WindowPolicy::Auto && config.max_age.is_none()
}

fn hex(hash: u128) -> String {
    format!("{hash:032x}")
}

fn hash_of(path: &Path) -> anyhow::Result<(u64, u128)> {
    let failed = || format!("{}: cannot read", path.display());
    let mut file = File::open(path).with_context(failed)?;
    let mut hash = Xxh3::new();
    let bytes = std::io::copy(&mut file, &mut hash).with_context(failed)?;
    Ok((bytes, hash.digest128()))
}

/// Returns the number of passes begun, and whether one after the first was stopped. Stores of earlier versions may have
/// ended before planned passes.
fn passes(progress: &InputProgress) -> (u32, bool) {
    let whole = progress.pass.saturating_sub(1);
    if progress.input == 0 && progress.place == InputPosition::start() || whole >= progress.repeat {
        (whole, false)
    } else {
        (progress.pass, whole > 0)
    }
}

fn caveats(info: &Info, progress: &InputProgress) -> Vec<String> {
    let mut all = Vec::new();
    let mut inputs = progress.inputs.iter();
    if let Some(input) = inputs.find(|input| input.end.is_none()) {
        all.push(format!(
            "{} was read up to record {} only: the command reads all of it",
            input.name, progress.place.records
        ));
    }
    let (pass, is_stopped) = passes(progress);
    if is_stopped {
        all.push(format!(
            "pass {pass} was stopped: the command makes whole passes"
        ));
    }
    let settled = info.window.settled.map(|effort| effort.until);
    if let Some(until) = settled.filter(|until| *until != Goal::default().until)
        && pass > 1
    {
        all.push(format!(
            "it was settled to {until}, which was asked for or is how near the passes came: the command asks for it, and its \
             ranking agrees with this one within the bounds of both, not to the byte"
        ));
    }
    if info.window.settled.is_some_and(|effort| effort.resumed) {
        all.push(
            "it was settled from the ranking before it: the command settles once, and its ranking agrees with this one \
             within the bounds of both, not to the byte"
                .into(),
        );
    }
    if progress.complete {
        all.push(
            "an earlier version visited pages without a record in this store: the command does not, and its ranking may \
             differ"
                .into(),
        );
    }
    all
}

/// Builds an `ingest` command with the inputs and all settings that differ from the defaults.
fn ingest_command(info: &Info, progress: &InputProgress) -> Vec<String> {
    let mut all: Vec<String> = vec!["cashrank".into(), "ingest".into()];
    all.extend(progress.inputs.iter().map(|input| input.name.clone()));
    let mut option = |name: &str, value: Option<String>| {
        all.push(format!("--{}", name.replace('_', "-")));
        all.extend(value);
    };
    option("store", Some("again".into()));
    let mut formats = progress.inputs.iter().map(|input| &input.format);
    if let Some(first) = formats.next()
        && formats.all(|format| format == first)
    {
        option("format", Some(first.clone()));
    }
    for (setting, value) in info.settings.chosen() {
        if setting == "scope" {
            let rules = value.split(' ');
            rules.for_each(|rule| option(setting, Some(rule.into())));
        } else {
            option(setting, Some(value));
        }
    }
    match info.window.settled {
        Some(effort) if effort.until == Goal::default().until => {}
        Some(effort) => option("settle", Some(effort.until.to_string())),
        // A ranking of a requested window is never settled.
        None if is_usual(&info.settings.config) => option("settle", Some("none".into())),
        None => {}
    }
    if let Some(after) = info.expire() {
        option("expire", Some(format!("{after}s")));
    }
    let passes = passes(progress).0;
    if passes > 1 {
        option("repeat", Some(passes.to_string()));
    }
    all
}
