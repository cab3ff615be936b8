//! Public names of the library, which grow on purpose only; its messages; and the map of its code.

use std::path::{Path, PathBuf};

/// Returns the names that `lib.rs` exports, except for hidden ones.
fn exported(root: &str) -> Vec<String> {
    let mut names = Vec::new();
    for item in root.split(';') {
        let lines = item
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let item = lines.collect::<Vec<_>>().join(" ");
        let (attributes, item) = item.split_once("pub ").unwrap_or((&item, ""));
        let is_hidden = attributes.contains("doc(hidden)");
        if item.is_empty() || is_hidden {
            continue;
        }
        let paths = item.strip_prefix("use ").unwrap_or(item);
        let group = paths.split_once('{').map_or(paths, |(_, group)| group);
        for name in group.trim_end().trim_end_matches('}').split(',') {
            let name = name.rsplit([' ', ':']).find(|name| !name.is_empty());
            names.extend(name.map(str::to_owned));
        }
    }
    names.sort();
    names
}

#[test]
fn the_public_names_are_those_of_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = std::fs::read_to_string(folder.join("src/lib.rs")).unwrap();
    let list = std::fs::read_to_string(folder.join("tests/public_names.txt")).unwrap();
    let listed: Vec<&str> = list.lines().collect();
    assert_eq!(
        exported(&root),
        listed,
        "a name that is public on purpose goes into tests/public_names.txt"
    );
}

#[test]
fn names_are_found() {
    let root = "//! pub use x::Y;\nmod a;\n// b\n#[doc(hidden)]\npub mod c;\npub mod d;\n\
        pub use a::{B,\n C};\npub use a::b::D as E;\n#[doc(hidden)]\npub use a::F;\n";
    assert_eq!(exported(root), ["B", "C", "E", "d"]);
}

/// Crates of the library.
const CRATES: [&str; 6] = ["base", "crawl", "graph", "ingest", "steer", "store"];

fn files(of: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(of).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// Returns the folder of a crate's code.
fn code_of(name: &str) -> PathBuf {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/crates");
    src.join(name).join("src")
}

/// A message of the library names a setting, which the command renders as an option: other programs have no options.
#[test]
fn no_message_of_the_library_names_an_option() {
    let mut all = Vec::new();
    CRATES
        .iter()
        .for_each(|name| files(&code_of(name), &mut all));
    assert!(all.len() > 100);
    let mut wrong = Vec::new();
    for path in all {
        let name = path.to_str().unwrap();
        if !name.ends_with(".rs") || name.contains("fuzz") || name.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for (at, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap();
            let is_option = |after: &str| after.starts_with(|c: char| c.is_ascii_lowercase());
            if !line.contains("cargo install") && line.split("--").skip(1).any(is_option) {
                wrong.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_map_of_the_code_has_every_room() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    for name in CRATES {
        for entry in std::fs::read_dir(code_of(name)).unwrap() {
            let room = entry.unwrap().path();
            let room = room.file_stem().unwrap().to_str().unwrap();
            if ["fuzz", "folder", "lib"].contains(&room) {
                continue;
            }
            let named = [format!("`{room}/`"), format!("`{room}.rs`")];
            let found = named.iter().any(|name| readme.contains(name));
            assert!(found, "{room} of {name} has no row in src/README.md");
        }
    }
}

/// The table of the path of a record names types that its files define, and its numbers are those of its rows.
#[test]
fn the_path_of_a_record_is_as_the_map_says() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let readme = std::fs::read_to_string(src.join("README.md")).unwrap();
    let (_, path) = readme.split_once("| file | types |\n|---|---|\n").unwrap();
    let rows = || path.lines().take_while(|line| line.starts_with('|'));
    let mut types = 0;
    for row in rows() {
        let mut names = row.split('`').skip(1).step_by(2);
        let file = names.next().unwrap();
        let code = std::fs::read_to_string(src.join(file)).unwrap();
        for name in names {
            let mut kinds = ["struct", "enum", "trait", "type"].into_iter();
            let is_defined = kinds.any(|kind| code.contains(&format!("{kind} {name}")));
            assert!(is_defined, "{file} has no {name}");
            types += 1;
        }
    }
    let numbers = format!("{types} types in {} files", rows().count());
    assert!(readme.contains(&numbers), "{numbers}");
}
