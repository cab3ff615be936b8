//! The rank of a page over the snapshots that a store keeps.

use crate::support::Lab;

/// Pages appear in order, and each one gets one more link: the contents of each snapshot are known by hand.
fn days(lab: &Lab) {
    for day in 1..=4 {
        let line = format!(
            "{{\"url\":\"http://h{day}.example/\",\"fetched_at\":\"2026-01-0{day}T12:00:00Z\",\
             \"links\":[\"http://hub.example/\",\"http://late{day}.example/\"]}}\n"
        );
        lab.file(&format!("d{day}"), line);
        lab.run(&format!("ingest d{day} --store s")).exits(0);
    }
}

#[test]
fn each_snapshot_s_rank_is_that_of_the_snapshot() {
    let lab = Lab::new();
    days(&lab);
    let urls = ["http://HUB.example", "http://late3.example/"];
    let line = format!("history {} --json --store s", urls.join(" "));
    let out = lab.run(&line).exits(0).out;
    let histories: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(histories.len(), 2);
    for (url, history) in urls.iter().zip(&histories) {
        assert_eq!(history["url"], *url);
        let moments = history["history"].as_array().unwrap();
        assert_eq!(moments.len(), 4);
        for (day, moment) in (1..).zip(moments) {
            assert_eq!(moment["snapshot"], day);
            assert_eq!(moment["time"], format!("2026-01-0{day}T12:00:00Z"));
            // The hub, and two pages per day.
            assert_eq!(moment["count"], 1 + 2 * day);
            let then = lab.run(&format!("rank {url} --json --store s --snapshot {day}"));
            let then: serde_json::Value = serde_json::from_str(&then.out).unwrap();
            assert_eq!(moment["rank"], then["rank"], "{url} {day}");
            assert_eq!(moment["importance"], then["importance"]);
        }
    }
    let known = |history: &serde_json::Value| -> Vec<bool> {
        let moments = history["history"].as_array().unwrap();
        moments
            .iter()
            .map(|moment| !moment["rank"].is_null())
            .collect()
    };
    assert_eq!(known(&histories[0]), [true; 4]);
    assert_eq!(known(&histories[1]), [false, false, true, true]);
    // The hub is first from the second day on, since all other pages link to it.
    assert_eq!(histories[0]["history"][3]["rank"], 1);
    let newest = lab.run("history http://hub.example/ -n 2 --json --store s");
    let newest = newest.exits(0).json();
    assert_eq!(
        newest["history"].as_array().unwrap()[..],
        histories[0]["history"].as_array().unwrap()[2..]
    );
    let plain = lab.run("history http://late3.example/ --store s").exits(0);
    assert!(plain.out.contains("not known yet"), "{}", plain.out);
}

/// Sites are found by name in each snapshot, measures only where they were computed.
#[test]
fn sites_and_measures_have_histories() {
    let lab = Lab::new();
    days(&lab);
    let hub = lab
        .run("history hub.example --level domain --json --store s")
        .exits(0)
        .json();
    let pages = lab
        .run("history http://hub.example/ --json --store s")
        .exits(0)
        .json();
    // The domain has this one page.
    for (site, page) in hub["history"]
        .as_array()
        .unwrap()
        .iter()
        .zip(pages["history"].as_array().unwrap())
    {
        assert_eq!(
            (&site["rank"], &site["snapshot"]),
            (&page["rank"], &page["snapshot"])
        );
    }
    lab.run("history http://hub.example/ --measure in-degree --store s")
        .exits(2)
        .says(&["in-degree", "cashrank compute"]);
    lab.run("compute --measure in-degree --store s").exits(0);
    let measured = lab
        .run("history http://hub.example/ --measure in-degree --json --store s")
        .exits(0)
        .json();
    let moments = measured["history"].as_array().unwrap();
    assert_eq!(moments.len(), 1);
    assert_eq!(
        (&moments[0]["snapshot"], &moments[0]["rank"]),
        (&4.into(), &1.into())
    );
}

/// Four snapshots per day, each six hours after the last: by default the newest ten stay, and the last of each day.
#[test]
fn snapshots_are_thinned_by_their_times() {
    let lab = Lab::new();
    let record = |at: u64| {
        let seconds = at * 6 * 3_600;
        format!("{{\"url\":\"http://a.example/{at}\",\"fetched_at\":{seconds},\"links\":[]}}\n")
    };
    let numbers = |store: &str| -> Vec<u64> {
        let list = lab
            .run(&format!("snapshots --json --store {store}"))
            .exits(0)
            .out;
        let number = |line: &str| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["number"].as_u64()
        };
        list.lines().filter_map(number).collect()
    };
    lab.file("a", (0..40).map(record).collect::<String>());
    lab.run("ingest a --store s --snapshot-every 1").exits(0);
    // Snapshot 4 is that of the first day's last fetch.
    let expected: Vec<u64> = (1..=7).map(|day| 4 * day).chain(31..=40).collect();
    assert_eq!(numbers("s"), expected);
    lab.run("ingest a --store t --snapshot-every 1 --keep-snapshots hourly=2,daily=3")
        .exits(0)
        .says(&["removed", "recent=0,hourly=2,daily=3"]);
    assert_eq!(numbers("t"), [32, 36, 39, 40]);
    // A damaged snapshot counts as one without a time.
    lab.file("s/snapshots/000000000008.snapshot", "damaged");
    lab.file("b", record(40));
    lab.run("ingest b --store s").exits(0);
    let expected: Vec<u64> = [4, 12, 16, 20, 24, 28].into_iter().chain(32..=41).collect();
    assert_eq!(numbers("s"), expected);
    lab.run("ingest b --store s --keep-snapshots weekly=1")
        .exits(2)
        .says(&["recent=10,hourly=24"]);
}

#[test]
fn what_is_not_known_or_damaged_is_reported() {
    let lab = Lab::new();
    lab.run("history http://a.example/ --store none")
        .exits(2)
        .says(&["not a cashrank store"]);
    days(&lab);
    lab.run("history http://nowhere.example/ http://hub.example/ --store s")
        .exits(1);
    lab.file("s/snapshots/000000000002.snapshot", "damaged");
    let rest = lab.run("history http://hub.example/ --json --store s");
    let rest = rest.exits(5).says(&["000000000002.snapshot"]).json();
    let numbers: Vec<u64> = rest["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["snapshot"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 3, 4]);
}
