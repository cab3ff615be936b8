//! The library's public names: the list grows on purpose only.

use std::path::Path;

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
