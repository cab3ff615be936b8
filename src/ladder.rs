//! The rooms of this house as a ladder: each uses only those below it. `src/README.md` says what each is for.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up. What a room takes of another it takes from below; so there are no circles.
const LADDER: &[&str] = &[
    "model", "codec", "threads", "disk", "url", "rules", // words, numbers, bytes
    "rows", "engine", "memory", // applying
    "decode", "source", "batch", "cza", "formats", "order", // reading
    "store", "metrics", "settle", "local", "snapshot", "schedule", // keeping, ranking
    "pipeline", "session", "ingest", // the run
    "inspect", "check", "sim", // around it
    "fuzz",
];

/// Names that the crate's root hands on, and the rooms that they come from.
const HANDED_ON: [(&str, &str); 3] = [("Error", "model"), ("Limits", "model"), ("Result", "model")];

fn files(of: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(of).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// What follows `crate::` in code, but not in tests: those may look wherever they like.
fn taken(text: &str) -> Vec<String> {
    let code: String = text
        .split("#[cfg(test)]\nmod ")
        .next()
        .unwrap()
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
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let mut wrong = Vec::new();
    for path in all
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        let inner = path.strip_prefix(&src).unwrap();
        let room = inner
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        // The root, the binary, members of the workspace, and what stands beside what it tests.
        let is_apart = ["lib", "main", "cli", "crates", "ladder"].contains(&room);
        if is_apart || inner.to_str().unwrap().contains("fuzz") || inner.ends_with("tests.rs") {
            continue;
        }
        let Some(here) = step(room) else {
            wrong.push(format!("{room} is not on the ladder"));
            continue;
        };
        for name in taken(&fs::read_to_string(path).unwrap()) {
            if step(&name).is_none_or(|there| there > here) {
                wrong.push(format!("{}: {room} must not use {name}", inner.display()));
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
    let text = "use crate::a::B;\nuse crate::{Error, c::{D, e::F}, g};\nlet x = crate::h::i(crate::j::K);\n// crate::no\n\
                #[cfg(test)]\nmod tests {\n use crate::none;";
    assert_eq!(taken(text), ["a", "Error", "c", "g", "h", "j"]);
}

/// The library names settings, and the command says what they are there: options ([`crate::name_settings`]).
#[test]
fn no_message_of_the_library_names_an_option() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let mut wrong = Vec::new();
    for path in all
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        let inner = path.strip_prefix(&src).unwrap().to_str().unwrap();
        let is_apart = ["lib.rs", "main.rs", "ladder.rs"].contains(&inner);
        let is_apart = is_apart
            || ["cli/", "crates/"]
                .iter()
                .any(|room| inner.starts_with(room));
        if is_apart || inner.contains("fuzz") || inner.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let lines = code.lines().map(|line| line.split("//").next().unwrap());
        for (at, line) in lines.enumerate() {
            let is_option = |after: &str| after.starts_with(|c: char| c.is_ascii_lowercase());
            if line.split("--").skip(1).any(is_option) {
                wrong.push(format!("{inner}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
