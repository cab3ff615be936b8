//! Damage of a store's files: what works without each, and what to do. A test compares this with the table in
//! `formats/guide/reliability.md` ("Damaged stores").

use std::path::Path;

const RESTORE: &str = "restore the whole store from a copy, or ingest the inputs into a new store";

/// Returns what works without a file of a store and what does not, and advice if it is damaged; `None` for other files.
pub fn part_of(path: &Path) -> Option<(&'static str, &'static str)> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    Some(match (folder.to_str().unwrap_or_default(), name) {
        (_, "latest.json") => (
            "readers do not know which snapshot is current; the snapshots are whole",
            "run the same ingest again to publish the current snapshot",
        ),
        (_, name) if name.ends_with(".snapshot") => (
            "this ranking is lost; others stay readable, and ingesting continues",
            "if it is the current one, run the same ingest again to publish it; otherwise delete it",
        ),
        (_, name) if name.ends_with(".ranking") => (
            "this ranking by a measure is lost; all else stays readable, and ingesting continues",
            "delete it; `cashrank compute` makes one of the current snapshot again",
        ),
        ("marks", _) => (
            "no more snapshots are made from it; published ones stay readable",
            RESTORE,
        ),
        ("rows", _) => (
            "commands that need links stop, and so does ingesting where it meets the damage; published snapshots stay \
             readable",
            "continue ingesting with `keep_links` none, which drops them; or restore the whole store from a copy, or \
             ingest the inputs into a new store",
        ),
        ("spool", _) => (
            "the spooled stream cannot continue; everything else can, once it has ended",
            "restore this file alone, if the copy is of the same moment; or abandon the stream (`new_stream`) and send \
             the part that was not counted as a new one",
        ),
        (_, "identity.json") => (
            "nothing can be read",
            "put back a copy of this store's own identity.json (it never changes), or ingest the inputs into a new store",
        ),
        (_, "store.redb" | "cash") => (
            "ingesting stops; published snapshots stay readable",
            RESTORE,
        ),
        (_, "warm") => (
            "nothing stops; the next ranking is computed from the start, which takes longer; it agrees with the one that \
             would have been made within the bounds of both",
            "nothing needs to be done: the next ranking of an ingest or of `cashrank settle` writes another",
        ),
        (_, "urls") => (
            "snapshots are not shown with names; ingesting continues unless the end is damaged",
            RESTORE,
        ),
        (_, "urls.index") => (
            "single names cannot be looked up (top); exports and ingesting continue unless the end is damaged",
            RESTORE,
        ),
        (_, "fingerprints") => (
            "ingesting stops, and pages are not found by name (rank); export and top work unless the end is damaged",
            RESTORE,
        ),
        (_, "fingerprints.index") => ("nothing stops unless the end is damaged", RESTORE),
        (_, "index") => (
            "nothing stops; an ingest takes longer to start, and pages are found by name more slowly",
            "nothing needs to be done: the next ingest that reads new records writes another",
        ),
        (_, "remote") => (
            "nothing stops; of a shard only: the next ranking of all shards asks for the numbers of its remote pages again",
            "nothing needs to be done: the next `cashrank-cluster settle` writes another",
        ),
        _ => return None,
    })
}

/// Returns what to do about a damaged file.
pub fn remedy(path: &Path) -> &'static str {
    part_of(path).map_or(RESTORE, |(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::name_settings;

    #[test]
    fn the_guide_has_every_part() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../formats/guide/reliability.md"
        );
        let guide = std::fs::read_to_string(path).unwrap();
        let table = guide.split("| damaged |").nth(1).unwrap();
        let rows = table.lines().skip(2).take_while(|row| !row.is_empty());
        let mut files = 0;
        for row in rows.filter(|row| !row.starts_with("| `lock` |")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let file = cells[0].trim().trim_matches('`').replace('*', "12");
            let (meaning, remedy) = part_of(&Path::new("s").join(file)).unwrap();
            // The guide is about the command, where settings are options.
            let remedy = name_settings(remedy, |name| format!("--{}", name.replace('_', "-")));
            assert_eq!([cells[1], cells[2].trim()], [meaning, &remedy], "{row}");
            files += 1;
        }
        assert_eq!(files, 16);
        assert!(part_of(Path::new("memory")).is_none());
    }
}
