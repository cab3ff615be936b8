//! Help in two steps, and its extent.

use cashrank_base::model::require_feature;

use crate::support::Lab;

/// Parses the options of a help text, in order, each with its heading.
fn options(help: &str) -> Vec<(String, String)> {
    let (mut heading, mut found) = ("", Vec::new());
    for line in help.lines() {
        if !line.starts_with(' ') && line.ends_with(':') {
            heading = line.trim_end_matches(':');
        }
        // Values and descriptions are indented further.
        if line.starts_with("  -") || line.starts_with("      --") {
            let text = line.trim_start();
            let long = text.split([' ', ',']).find(|word| word.starts_with("--"));
            let name = long.unwrap_or(text.split(' ').next().unwrap());
            found.push((name.to_owned(), heading.to_owned()));
        }
    }
    found
}

fn help(lab: &Lab, line: &str) -> String {
    lab.run(line).exits(0).out
}

/// Parses the commands of the help, in their two lists.
fn commands(help: &str) -> [Vec<&str>; 2] {
    ["\nEvery day:\n", "\nSpecial:\n"].map(|title| {
        let (_, list) = help.split_once(title).unwrap();
        let (list, _) = list.split_once("\n\n").unwrap();
        let names = list.lines().map(|line| line.split_whitespace().next());
        names.map(Option::unwrap).collect()
    })
}

#[test]
fn what_everybody_needs_comes_first() {
    let lab = Lab::new();
    let first = options(&help(&lab, "ingest -h"));
    assert!(first.len() <= 20, "{first:?}");
    let all = options(&help(&lab, "ingest --help"));
    let mut headings: Vec<&str> = first.iter().map(|(_, heading)| &**heading).collect();
    headings.dedup();
    assert_eq!(headings, ["Options", "Input", "Ranking", "Output"]);
    for option in &first {
        assert!(all.contains(option), "{option:?}");
    }
    // Short help takes one line per option, name, heading and example.
    assert!(
        help(&lab, "ingest -h").lines().count() < help(&lab, "ingest --help").lines().count() / 3
    );
}

/// Each heading describes the options below it.
#[test]
fn headings_cover_what_they_name() {
    let lab = Lab::new();
    let all = options(&help(&lab, "ingest --help"));
    let under = |heading: &str| -> Vec<&str> {
        let of = all.iter().filter(|(_, of)| of == heading);
        of.map(|(name, _)| &**name).collect()
    };
    assert_eq!(
        under("Options"),
        ["--store", "--memory", "--threads", "--help"]
    );
    assert_eq!(
        under("Streams on standard input"),
        ["--spool", "--ack", "--new-stream", "--resume"]
    );
    assert!(
        under("Limits on input")
            .iter()
            .all(|name| name.starts_with("--limit-"))
    );
    assert_eq!(under("Reading a crawl several times"), ["--repeat"]);
    for common in ["--json", "--quiet", "--top"] {
        assert!(under("Output").contains(&common), "{common}");
    }
}

/// Every option is explained exactly once; those of many commands in one place, to which the others refer.
#[test]
fn options_are_few_and_explained_once() {
    let lab = Lab::new();
    let whole = help(&lab, "--help");
    let [every_day, special] = commands(&whole);
    assert!(every_day.len() >= 5 && special.len() >= 5);
    let common = options(&whole);
    let reading = options(&help(&lab, "ingest --help"));
    let mut count = common.len();
    // A command that the build lacks has no options.
    let built = |command: &&&str| require_feature(command).is_ok();
    for command in every_day.iter().chain(&special).filter(built) {
        let help = help(&lab, &format!("{command} --help"));
        let found = options(&help);
        count += found.len();
        let mut names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), found.len(), "{command}: {found:?}");
        for (title, place) in [
            ("`cashrank --help`", &common),
            ("`cashrank ingest --help`", &reading),
        ] {
            let notes = help.split("\n\n").map(|note| note.replace('\n', " "));
            let notes = notes.filter(|note| note.starts_with("Also ") && note.contains(title));
            let notes: String = notes.collect();
            for name in notes.split([' ', ',', ':', '`']) {
                let is_there = place.iter().any(|(option, _)| option == name);
                let is_option = name.starts_with("--") && name != "--help";
                assert!(is_there || !is_option, "{command}: {name}");
            }
        }
    }
    assert!(count <= 220, "{count} options");
}
