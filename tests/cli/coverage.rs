//! `coverage`: bounds on what was read, against closed forms.

use crate::support::{Done, Lab};

/// Two pages read of three known ones.
const READ: &str = r#"
{"url":"http://a.example/","links":["http://b.example/","http://c.example/"]}
{"url":"http://b.example/","links":["http://a.example/"]}"#;

const D: f64 = 0.85;

/// Solves the flow of readers from a, if a has `start`: a = start + d b, b = d a/2. As much waits at c as at b.
fn flow(start: f64) -> (f64, f64) {
    let a = start / (1.0 - D * D / 2.0);
    (a, D * a / 2.0)
}

fn bounds(done: &Done) -> [f64; 2] {
    let answer = done.json();
    ["at_least", "at_most"].map(|name| answer[name].as_f64().unwrap())
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.feed("ingest - --store s --quiet", READ.trim().as_bytes())
        .exits(0);
    lab
}

#[test]
fn bounds_are_those_of_the_closed_form() {
    let lab = lab();
    let (a, b) = flow(1.0 - D);
    let done = lab.run("coverage --store s --json").exits(0);
    let [least, most] = bounds(&done);
    // The remaining pushes add less than this.
    assert!((0.0..0.02).contains(&(a + b - least)), "{least}");
    assert!((0.0..0.02).contains(&(most - (1.0 - b))), "{most}");
    let answer = done.json();
    assert_eq!((&answer["seeds"], &answer["read"]), (&1.into(), &2.into()));
    let said = lab.run("coverage --store s").exits(0);
    assert!(said.out.contains("2 of 3 known pages read"), "{said:?}");

    // All known pages are read, and a page without links leads back to the seed.
    lab.feed(
        "ingest - --store s --quiet",
        br#"{"url":"http://c.example/","links":[]}"#,
    )
    .exits(0);
    let [least, most] = bounds(&lab.run("coverage --store s --json").exits(0));
    assert!(least > 0.999 && most == 1.0, "{least} {most}");
}

#[test]
fn readers_start_at_the_given_seeds() {
    let lab = lab();
    // The store does not know the second seed: readers who start there see nothing that was read.
    lab.file("seeds", "http://A.example\nhttp://z.example/\n");
    let (a, b) = flow((1.0 - D) / 2.0);
    let done = lab.run("coverage --store s --seeds seeds --json").exits(0);
    let [least, most] = bounds(&done);
    assert!((0.0..0.02).contains(&(a + b - least)), "{least}");
    let other = (1.0 - D) / 2.0;
    assert!((0.0..0.02).contains(&(most - (1.0 - b - other))), "{most}");
    assert_eq!(done.json()["seeds_read"], 1);

    lab.file("unknown", "http://z.example/\n");
    lab.run("coverage --store s --seeds unknown")
        .exits(2)
        .says(&["none of the seeds is known"]);
    lab.run("coverage --store none")
        .exits(2)
        .says(&["not a cashrank store"]);
    lab.feed(
        "ingest - --store bare --keep-links none --quiet",
        READ.trim().as_bytes(),
    )
    .exits(0);
    lab.run("coverage --store bare")
        .exits(2)
        .says(&["--keep-links"]);
}

#[test]
fn hosts_share_what_was_read() {
    let lab = lab();
    let done = lab.run("coverage --store s --json --by-host").exits(0);
    let answer = done.json();
    let hosts = answer["hosts"].as_array().unwrap();
    let sum = |name: &str| -> f64 { hosts.iter().map(|host| host[name].as_f64().unwrap()).sum() };
    let [least, most] = bounds(&done);
    // The bound of each host covers what settling leaves: 1e-6.
    assert!((sum("at_least") - least).abs() < 1e-5);
    assert!((1.0 - sum("unread") - most).abs() < 1e-5);
    assert_eq!(hosts[0]["host"], "c.example");
    let one = lab.run("coverage --store s --by-host -n 1").exits(0);
    assert!(
        one.out.ends_with("c.example\n") && !one.out.contains("a.example"),
        "{one:?}"
    );
}
