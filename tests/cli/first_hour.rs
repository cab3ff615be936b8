//! The first hour: a wrong first attempt costs nothing, and a run that read nothing gives advice.

use crate::support::{Lab, await_that, crawl};

/// Ingests the same records straight into a new store.
fn straight(lab: &Lab, options: &str) -> Vec<u8> {
    lab.run(&format!("ingest a {options} --store straight"))
        .exits(0);
    lab.snapshot("straight")
}

fn lab() -> Lab {
    let lab = Lab::on_disk();
    lab.file("a", crawl(91, 80).concat());
    lab
}

#[test]
fn a_wrong_field_is_mended_by_the_advice() {
    let lab = Lab::on_disk();
    lab.file(
        "a",
        "{\"response_url\":\"http://a.example/\",\"links\":[\"http://b.example/\"]}\n",
    );
    lab.run("ingest a --store s").exits(3).says(&[
        "nothing was read",
        "a: record 1 at byte 0",
        "--field url=NAME",
        "starts over",
    ]);
    lab.run("ingest a --store s --field url=response_url")
        .exits(0)
        .says(&["1 record, 1 link, 2 new pages"]);
    let whole = straight(&lab, "--field url=response_url");
    assert!(lab.snapshot("s") == whole);
    // Now the store has pages, so its settings are fixed.
    lab.run("ingest a --store s --field url=url")
        .exits(2)
        .says(&[
            "--field url=response_url, not url=url",
            "made with: --damping 0.85",
        ]);
}

#[test]
fn a_wrong_format_is_forgotten() {
    let lab = lab();
    lab.run("ingest a --format warc --store s").exits(3).says(&[
        "nothing was read",
        "record 1 at byte 0",
        "Without --format",
        "cashrank inspect a",
    ]);
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == straight(&lab, ""));
    lab.run("verify --deep --store s").exits(0);
}

#[test]
fn a_scope_that_matches_nothing_is_not_locked_in() {
    let lab = lab();
    lab.run("ingest a --scope host:nothing.example --store s")
        .exits(3)
        .says(&["nothing was read", "--scope host:nothing.example"]);
    // The second attempt is not a success either.
    lab.run("ingest a --scope host:nothing.example --store s")
        .exits(3)
        .says(&["nothing was read"]);
    lab.run("ingest a --scope url:* --store s").exits(0);
    assert!(lab.snapshot("s") == straight(&lab, "--scope url:*"));
}

/// Regression: the settings of a first run were forgotten if it found no page, so the next run without them silently
/// made a store of all pages with the default damping. Settings that are left out are the store's.
#[test]
fn settings_of_a_run_without_pages_are_kept() {
    let lab = lab();
    let rules = "--scope host:nothing.example --damping 0.5";
    lab.run(&format!("ingest a {rules} --store s")).exits(3);
    lab.run("ingest a --store s").exits(3).says(&[
        "outside --scope host:nothing.example",
        "Options left out stay as they were (--scope host:nothing.example)",
    ]);
    lab.run("ingest a --scope url:* --store s").exits(0);
    assert!(lab.snapshot("s") == straight(&lab, "--scope url:* --damping 0.5"));
}

#[test]
fn a_store_without_pages_takes_all_settings() {
    let lab = lab();
    lab.file("none", "");
    lab.run("ingest none --marks 3 --damping 0.5 --store s")
        .exits(3)
        .says(&["none is empty"]);
    lab.run("ingest a --damping 0.7 --store s").exits(0);
    assert!(lab.snapshot("s") == straight(&lab, "--marks 3 --damping 0.7"));
    lab.run("ingest none --store t").exits(3);
    lab.run("ingest a --marks 3 --store t").exits(0);
    lab.run("verify --deep --store t").exits(0);
    lab.run("ingest a --marks 3 --store u").exits(0);
    assert!(lab.snapshot("t") == lab.snapshot("u"));
}

#[test]
fn a_web_page_creates_no_store() {
    let lab = Lab::on_disk();
    lab.file("page.html", "<!doctype html><a href=\"http://x/\">x</a>");
    lab.run("ingest page.html --store s")
        .exits(2)
        .says(&["page.html", "HTML"]);
    assert_eq!(lab.names(), ["page.html"]);
}

/// Bytes that are not text are not names, whatever --format says: a file is refused at once; in a stream, the lines
/// that contain them.
#[test]
fn binary_noise_is_no_graph() {
    let lab = Lab::on_disk();
    let noise = b"a\tb\n\x01a\tb\x02\n\x7fELF\tx\nfine\tname\n".to_vec();
    lab.file("noise", &noise[4..]);
    for format in ["adjacency", "edges"] {
        lab.run(&format!("ingest noise --format {format} --store none"))
            .exits(2)
            .says(&["noise: line 1, byte 0", "control byte (0x01)", format]);
        assert!(!lab.path("none").exists());
        let line = format!("ingest - --format {format} --store {format}");
        lab.feed(&line, &noise).exits(3).says(&[
            "record 2 at byte 4",
            "control byte (0x01) at byte 1",
            "control byte (0x7f) at byte 1",
        ]);
        let stat = lab.stat(format);
        assert_eq!((&stat["pages"], &stat["skipped"]), (&4.into(), &2.into()));
    }
}

/// Bytes that were acknowledged to a sender are not forgotten with the settings.
#[test]
fn a_spooled_stream_keeps_its_settings() {
    let lab = Lab::on_disk();
    let line = "{\"response_url\":\"http://a.example/\",\"links\":[]}\n";
    let mut running = lab.start("ingest - --spool --ack acked --store s");
    running.write(line.repeat(10).as_bytes());
    crate::support::await_that("it is acknowledged", || {
        std::fs::read_to_string(lab.path("acked")).is_ok_and(|text| text.trim() != "0")
    });
    assert!(running.kill());
    lab.feed("ingest - --spool --store s --field url=response_url", b"")
        .exits(2)
        .says(&["no --field, not url=response_url"]);
}

/// Regression: a store whose first ingest was killed before it read anything was started over by the same command
/// without its options, silently and with default settings. Settings that are left out are the store's.
#[test]
fn a_store_killed_at_its_start_keeps_its_settings() {
    let lab = lab();
    lab.run("ingest a --window whole --damping 0.5 --store whole")
        .exits(0);
    let mut running = lab.start("ingest - --format records --window whole --damping 0.5 --store s");
    running.write(b"{");
    await_that("the store is made", || lab.path("s/identity.json").exists());
    assert!(running.kill());
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
    // Other settings are accepted if they are given.
    let mut running = lab.start("ingest - --format records --window whole --damping 0.5 --store t");
    running.write(b"{");
    await_that("the store is made", || lab.path("t/identity.json").exists());
    assert!(running.kill());
    lab.run("ingest a --window auto --damping 0.85 --store t")
        .exits(0);
    assert!(lab.snapshot("t") == straight(&lab, ""));
}

/// Regression: lines of JSON, and WARC files, became pages named by their lines when they were declared a graph.
#[test]
fn crawl_records_are_no_graph() {
    let lab = lab();
    lab.file(
        "log",
        "{\"url\":\"http://a.example/\",\"links\":[\"/b\"]}\n",
    );
    lab.file(
        "warc",
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
    );
    for format in ["adjacency", "edges"] {
        for (file, right) in [("log", "--format records"), ("warc", "--format warc")] {
            lab.run(&format!("ingest {file} --format {format} --store s"))
                .exits(2)
                .says(&["is not a graph in the format", right]);
            assert!(!lab.path("s").exists());
            lab.run(&format!("compute --until 1e-12 {file} --format {format}"))
                .exits(2)
                .says(&["is not a graph in the format"]);
        }
    }
    lab.run("ingest log --store s").exits(0);
}
