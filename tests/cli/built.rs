//! Builds that lack a feature: a command that needs it is refused at once, with instructions. `full` lacks nothing, so
//! run `cargo test --test cli built` without it as well.

use cashrank_base::model::require_feature;

use crate::support::Lab;

/// A command, and the help that lists it or its option.
const NEEDS: &[(&str, &str, &str)] = &[
    ("frontier", "serve --store s --frontier f", "serve --help"),
    (
        "frontier",
        "ingest log --store s --listen 127.0.0.1:0 --frontier f",
        "ingest --help",
    ),
    ("man", "man pages", "--help"),
    (
        "parquet",
        "export --to parquet -o t --store s",
        "export --help",
    ),
    ("parquet", "next --to parquet --store s", "next --help"),
    ("serve", "serve --store s --listen 127.0.0.1:0", "--help"),
    (
        "serve",
        "ingest log --store s --listen 127.0.0.1:0",
        "ingest --help",
    ),
    (
        "sqlite",
        "export --to sqlite -o t --store s",
        "export --help",
    ),
    (
        "sqlite",
        "compute log --measure pagerank --to sqlite -o t",
        "compute --help",
    ),
];

#[test]
fn what_a_build_lacks_is_named_in_errors_and_help() {
    let lab = Lab::new();
    lab.file("log", "{\"url\":\"http://a.example/\",\"links\":[]}\n");
    lab.run("ingest log --store s").exits(0);
    for (feature, line, help) in NEEDS {
        let advice = format!("cargo install --features {feature}");
        let help = lab.run(help).exits(0);
        // Help is wrapped.
        let words: Vec<&str> = help.out.split_whitespace().collect();
        let is_named = words.join(" ").contains(&advice);
        let why = require_feature(feature);
        assert_eq!(is_named, why.is_err(), "{feature}: {}", help.out);
        let Err(why) = why else { continue };
        assert!(
            why.ends_with(&advice) && why.starts_with("this build has no "),
            "{why}"
        );
        lab.run(line).exits(2).says(&[&why]);
        assert!(!lab.path("t").exists(), "{line}");
    }
}
