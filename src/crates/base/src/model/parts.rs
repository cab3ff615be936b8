//! Files of a store: what works without each, and what to do about damage. A test compares this with the table in
//! `formats/guide/reliability.md` ("Damaged stores").

use std::path::Path;

/// Kind of file in a store.
pub struct StoreFile {
    /// Name in the store's directory; `*` stands for a number.
    pub name: &'static str,
    /// Consequences of its absence: what still works, and what does not.
    pub meaning: &'static str,
    /// Advice if it is damaged.
    pub remedy: &'static str,
}

const RESTORE: &str = "restore the whole store from a copy, or ingest the inputs into a new store";

/// All kinds of files that may be damaged.
pub const PARTS: [StoreFile; 17] = [
    StoreFile {
        name: "identity.json",
        meaning: "nothing can be read",
        remedy: "put back a copy of this store's own identity.json (it never changes), or ingest the \
                 inputs into a new store",
    },
    StoreFile {
        name: "store.redb",
        meaning: "ingesting stops; published snapshots stay readable",
        remedy: RESTORE,
    },
    StoreFile {
        name: "cash",
        meaning: "ingesting stops; published snapshots stay readable",
        remedy: RESTORE,
    },
    StoreFile {
        name: "marks/*",
        meaning: "no more snapshots are made from it; published ones stay readable",
        remedy: RESTORE,
    },
    StoreFile {
        name: "rows/*",
        meaning: "commands that need links stop, and so does ingesting where it meets the damage; published snapshots \
                  stay readable",
        remedy: "continue ingesting with `keep_links` none, which drops them; or restore the whole store from a copy, \
                 or ingest the inputs into a new store",
    },
    StoreFile {
        name: "rows/*.places",
        meaning: "nothing stops; looking up the links of one page takes longer",
        remedy: "remove it: an ingest rebuilds it",
    },
    StoreFile {
        name: "warm",
        meaning: "nothing stops; the next ranking is computed from the start, which takes longer; it agrees with the one that \
                  would have been made within the bounds of both",
        remedy: "nothing needs to be done: the next ranking of an ingest or of `cashrank settle` writes another",
    },
    StoreFile {
        name: "urls",
        meaning: "snapshots are not shown with names; ingesting continues unless the end is damaged",
        remedy: RESTORE,
    },
    StoreFile {
        name: "urls.index",
        meaning: "single names cannot be looked up (top); exports and ingesting continue unless the end is damaged",
        remedy: RESTORE,
    },
    StoreFile {
        name: "fingerprints",
        meaning: "ingesting stops, and pages are not found by name (rank); export and top work unless the end is \
                  damaged",
        remedy: RESTORE,
    },
    StoreFile {
        name: "fingerprints.index",
        meaning: "nothing stops unless the end is damaged",
        remedy: RESTORE,
    },
    StoreFile {
        name: "index",
        meaning: "nothing stops; an ingest takes longer to start, and pages are found by name more slowly",
        remedy: "nothing needs to be done: the next ingest that reads new records writes another",
    },
    StoreFile {
        name: "remote",
        meaning: "nothing stops; of a shard only: the next ranking of all shards asks for the numbers of its remote pages \
                  again",
        remedy: "nothing needs to be done: the next `cashrank-cluster settle` writes another",
    },
    StoreFile {
        name: "snapshots/*.snapshot",
        meaning: "this ranking is lost; others stay readable, and ingesting continues",
        remedy: "if it is the current one, run the same ingest again to publish it; otherwise delete it",
    },
    StoreFile {
        name: "snapshots/*.ranking",
        meaning: "this ranking by a measure is lost; all else stays readable, and ingesting continues",
        remedy: "delete it; `cashrank compute` makes one of the current snapshot again",
    },
    StoreFile {
        name: "spool/*",
        meaning: "the spooled stream cannot continue; everything else can, once it has ended",
        remedy: "restore this file alone, if the copy is of the same moment; or abandon the stream (`new_stream`) and \
                 send the part that was not counted as a new one",
    },
    StoreFile {
        name: "snapshots/latest.json",
        meaning: "readers do not know which snapshot is current; the snapshots are whole",
        remedy: "run the same ingest again to publish the current snapshot",
    },
];

pub fn part_of(path: &Path) -> Option<&'static StoreFile> {
    let name = path.file_name()?.to_str()?;
    let parent = path.parent().and_then(Path::file_name);
    let within = |dir: &str| parent.is_some_and(|parent| parent == dir);
    let name = match name {
        "latest.json" => "snapshots/latest.json",
        name if name.ends_with(".snapshot") => "snapshots/*.snapshot",
        name if name.ends_with(".ranking") => "snapshots/*.ranking",
        _ if within("marks") => "marks/*",
        name if within("rows") && name.ends_with(".places") => "rows/*.places",
        _ if within("rows") => "rows/*",
        _ if within("spool") => "spool/*",
        name => name,
    };
    PARTS.iter().find(|part| part.name == name)
}

/// Returns what to do about a damaged file.
pub fn remedy(path: &Path) -> &'static str {
    part_of(path).map_or(RESTORE, |part| part.remedy)
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
        for part in &PARTS {
            let row = format!("| `{}` | {} | {} |", part.name, part.meaning, part.remedy);
            // The guide is about the command, where settings are options.
            let option = |name: &str| format!("`--{}`", name.replace('_', "-"));
            let plain = |name: &str| format!("--{}", name.replace('_', "-"));
            let rows = [name_settings(&row, option), name_settings(&row, plain)];
            assert!(
                guide.lines().any(|line| rows.iter().any(|row| line == row)),
                "{row}"
            );
        }
    }

    #[test]
    fn parts_are_known_by_their_paths() {
        for (path, name) in [
            ("s/cash", "cash"),
            ("s/marks/12", "marks/*"),
            ("s/warm", "warm"),
            ("s/rows/3.index", "rows/*"),
            ("s/rows/3.places", "rows/*.places"),
            ("s/snapshots/000000000012.snapshot", "snapshots/*.snapshot"),
            ("s/snapshots/latest.json", "snapshots/latest.json"),
            ("s/urls.index", "urls.index"),
        ] {
            assert_eq!(part_of(Path::new(path)).map(|part| part.name), Some(name));
        }
        assert!(part_of(Path::new("memory")).is_none());
    }
}
