//! The rooms of this house as a ladder: each uses only those below it. `src/README.md` says what each is for.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up. What a room takes of another it takes from below; so there are no circles.
const LADDER: &[&str] = &[
    "model", "codec", "threads", "disk", "url", "rules", // words, numbers, bytes
    "rows", "graph", "engine", "memory", // applying
    "decode", "source", "batch", "formats", // reading
    "store", "metrics", "sites", "rank", "local", "snapshot", "records",
    "schedule", // keeping, ranking
    "answers",  // asking
    "pipeline", "session", "load", "ingest", // the run
    "shards", // several stores of one crawl
    "inspect", "check", "internal", // around it
    "fuzz",
];

/// Names that the crate's root hands on, and the rooms that they come from.
const HANDED_ON: [(&str, &str); 3] = [("Error", "model"), ("Limits", "model"), ("Result", "model")];

fn files(of: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(of).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// The library's code: each file's path below `src`, its room, and its text without its tests. Apart are the root, the
/// binary, members of the workspace, and what stands beside what it tests.
fn sources() -> Vec<(String, String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let source = |path: PathBuf| {
        let inner = path.strip_prefix(&src).unwrap().to_str().unwrap();
        let room = inner.split('/').next().unwrap().trim_end_matches(".rs");
        let is_apart = ["lib", "main", "cli", "crates", "ladder"].contains(&room);
        let is_test = inner.contains("fuzz") || inner.ends_with("tests.rs");
        let is_code = inner.ends_with(".rs") && !is_apart && !is_test;
        is_code.then(|| {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            (inner.to_owned(), room.to_owned(), code.to_owned())
        })
    };
    all.into_iter().filter_map(source).collect()
}

/// The name behind `crate::` in code.
fn taken(code: &str) -> Vec<String> {
    let code: String = code
        .lines()
        .map(|line| format!("{}\n", line.split("//").next().unwrap()))
        .collect();
    let mut names = Vec::new();
    for part in code.split("crate::").skip(1) {
        let group = part
            .strip_prefix('{')
            .map(|group| group.split(';').next().unwrap());
        let mut depth = 0;
        for name in group.unwrap_or(part).split_inclusive([',', '{', '}']) {
            let word: String = name
                .trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if depth == 0 && !word.is_empty() {
                names.push(word);
            }
            depth += name.matches('{').count() as i32 - name.matches('}').count() as i32;
            if group.is_none() || depth < 0 {
                break;
            }
        }
    }
    names
}

fn step(name: &str) -> Option<usize> {
    let handed_on = HANDED_ON.iter().find(|(handed, _)| *handed == name);
    let room = handed_on.map_or(name, |(_, room)| room);
    LADDER.iter().position(|step| *step == room)
}

#[test]
fn no_room_uses_one_above_it() {
    let mut wrong = Vec::new();
    for (path, room, code) in sources() {
        let Some(here) = step(&room) else {
            wrong.push(format!("{room} is not on the ladder"));
            continue;
        };
        for name in taken(&code) {
            if step(&name).is_none_or(|there| there > here) {
                wrong.push(format!("{path}: {room} must not use {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_has_every_room() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let readme = fs::read_to_string(src.join("README.md")).unwrap();
    for entry in fs::read_dir(&src).unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap();
        if step(room).is_some() && room != "fuzz" {
            let named = [format!("`{room}/`"), format!("`{room}.rs`")];
            let found = named.iter().any(|name| readme.contains(name));
            assert!(found, "{room} has no row in src/README.md");
        }
    }
}

#[test]
fn what_is_taken_is_found() {
    let text = "use crate::a::B;\nuse crate::{Error, c::{D, e::F}, g};\nlet x = crate::h::i(crate::j::K);\n// crate::no";
    assert_eq!(taken(text), ["a", "Error", "c", "g", "h", "j"]);
}

/// The library names settings, and the command says what they are there: options ([`crate::name_settings`]). Options of cargo
/// are not the command's.
#[test]
fn no_message_of_the_library_names_an_option() {
    let mut wrong = Vec::new();
    for (path, _, code) in sources() {
        let lines = code.lines().map(|line| line.split("//").next().unwrap());
        for (at, line) in lines.enumerate() {
            let is_option = |after: &str| after.starts_with(|c: char| c.is_ascii_lowercase());
            if !line.contains("cargo install") && line.split("--").skip(1).any(is_option) {
                wrong.push(format!("{path}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
