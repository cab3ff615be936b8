//! Tests of a frontier's state, at times that the tests choose.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::item::{Key, UrlState};
use super::state::{Ack, Put, State, UrlQuery};
use super::{FrontierLimits, Now, in_turn};
use cashrank_serve::{NextList, NextPage, Problem};

const SECOND: u64 = 1_000;

/// Folder that is removed with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("frontier")
    }
}

/// Returns a time `ms` after 1970, on a clock that nobody sets.
fn at(ms: u64) -> Now {
    Now {
        unix_s: ms / SECOND,
        passed_ms: ms,
    }
}

fn open(path: &Path) -> State {
    State::open(path.into(), FrontierLimits::default()).unwrap()
}

fn found(queue: &str, url: &str) -> Put {
    Put {
        url: url.into(),
        canonical: url.into(),
        crawl: "c".into(),
        queue: queue.into(),
        ..Put::default()
    }
}

fn fetched(queue: &str, url: &str, again: u64) -> Put {
    Put {
        known: Some(again),
        ..found(queue, url)
    }
}

/// Returns a request for everything available.
fn all() -> UrlQuery {
    UrlQuery {
        queues: usize::MAX,
        per_queue: usize::MAX,
        urls: usize::MAX,
        bytes: usize::MAX,
        lease: 30,
        ..UrlQuery::default()
    }
}

fn get(state: &mut State, wanted: &UrlQuery, now_ms: u64) -> Vec<String> {
    let given = state.get(wanted, at(now_ms)).unwrap();
    let url = |key: &str| Key::parse(key).unwrap().url().to_owned();
    given.iter().map(|given| url(&given.key)).collect()
}

fn counts(state: &State) -> Vec<(String, u64, u64, u64)> {
    let count = |(name, queue): (&str, &super::queue::Queue)| {
        (name.to_owned(), queue.active, queue.leased, queue.completed)
    };
    state.queues("c", None).map(count).collect()
}

#[test]
fn urls_come_as_they_were_found_each_queue_at_its_pace() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    let puts = [
        found("a", "a1"),
        found("b", "b1"),
        found("a", "a2"),
        found("a", "a1"),
        found("a", "a3"),
    ];
    let acks = state.put(&puts, at(0)).unwrap();
    assert_eq!(acks, [Ack::Ok, Ack::Ok, Ack::Ok, Ack::Skipped, Ack::Ok]);
    let two = UrlQuery {
        per_queue: 2,
        ..all()
    };
    let now = 100 * SECOND;
    assert_eq!(get(&mut state, &two, now), ["a1", "a2", "b1"]);
    assert_eq!(
        counts(&state),
        [("a".into(), 3, 2, 0), ("b".into(), 1, 1, 0)]
    );
    // The default delay of a second has not passed; then two are still handed out, which is the maximum.
    assert_eq!(get(&mut state, &all(), now + SECOND - 1), [""; 0]);
    assert_eq!(get(&mut state, &two, now + SECOND), [""; 0]);
    assert_eq!(get(&mut state, &all(), now + SECOND), ["a3"]);
    // A URL without a result comes again when its time is up; a fetched one does not.
    state
        .put(&[fetched("a", "a2", 0)], at(now + 2 * SECOND))
        .unwrap();
    assert_eq!(get(&mut state, &all(), now + 29 * SECOND), [""; 0]);
    assert_eq!(get(&mut state, &all(), now + 30 * SECOND), ["a1", "b1"]);
    assert_eq!(get(&mut state, &all(), now + 31 * SECOND), ["a3"]);
    assert_eq!(
        counts(&state),
        [("a".into(), 2, 2, 1), ("b".into(), 1, 1, 0)]
    );
}

#[test]
fn refetches_come_on_their_dates() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    state.put(&[found("a", "x")], at(0)).unwrap();
    assert_eq!(get(&mut state, &all(), 10 * SECOND), ["x"]);
    state
        .put(&[fetched("a", "x", 500)], at(11 * SECOND))
        .unwrap();
    assert_eq!(counts(&state), [("a".into(), 1, 0, 0)]);
    assert_eq!(get(&mut state, &all(), 499 * SECOND), [""; 0]);
    assert_eq!(get(&mut state, &all(), 500 * SECOND), ["x"]);
    // A URL that was never put before may also be fetched; discovered later, it stays fetched.
    state.put(&[fetched("b", "y", 0)], at(0)).unwrap();
    assert_eq!(
        state.put(&[found("b", "y")], at(0)).unwrap(),
        [Ack::Skipped]
    );
    assert_eq!(counts(&state)[1], ("b".into(), 0, 0, 1));
}

#[test]
fn scores_decide_within_queues_and_among_them() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    let puts = [
        found("a", "a1"),
        found("a", "a2"),
        found("b", "b1"),
        found("b", "b2"),
        found("c", "c1"),
    ];
    state.put(&puts, at(0)).unwrap();
    // Queues by their best score times their URLs: two of b, and three of a including the one that comes later.
    let scores = [("a2", 0.2), ("b2", 0.5), ("b1", 0.1), ("later", 0.3)];
    let list: HashMap<String, f64> = scores.map(|(url, score)| (url.to_owned(), score)).into();
    let names: Vec<String> = scores.map(|(url, _)| url.to_owned()).into();
    state.begin_list(list).unwrap();
    state.reorder(names.iter().map(String::as_str)).unwrap();
    // A page in the list has its position as soon as it is put, also under another spelling.
    let later = Put {
        canonical: "later".into(),
        ..found("a", "LATER")
    };
    state.put(&[later], at(0)).unwrap();
    let right = ["b2", "b1", "LATER", "a2", "a1", "c1"];
    assert_eq!(get(&mut state, &all(), 10 * SECOND), right);
    // The order outlives the process once something durable follows.
    state.put(&[found("d", "d1")], at(0)).unwrap();
    drop(state);
    let mut state = open(&folder.file());
    let mut right = right.to_vec();
    right.push("d1");
    assert_eq!(get(&mut state, &all(), 1_000 * SECOND), right);
    // A newer list takes precedence over the older one, whatever the scores.
    state.begin_list([("c1".to_owned(), 0.01)].into()).unwrap();
    state.reorder(["c1"].into_iter()).unwrap();
    assert_eq!(get(&mut state, &all(), 2_000 * SECOND)[0], "c1");
}

/// A queue's position is its best score times its known URLs divided by the fetched ones, so none is read to its end
/// before others begin.
#[test]
fn a_queue_that_was_read_more_of_comes_later() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    let urls = |queue: &str| (1..=4).map(|n| format!("{queue}{n}")).collect::<Vec<_>>();
    for queue in ["a", "b"] {
        let puts: Vec<Put> = urls(queue).iter().map(|url| found(queue, url)).collect();
        state.put(&puts, at(0)).unwrap();
    }
    state.set_usual_delay(0).unwrap();
    let score = |queue: &str| if queue == "a" { 0.4 } else { 0.11 };
    let scores: HashMap<String, f64> = ["a", "b"]
        .into_iter()
        .flat_map(|queue| urls(queue).into_iter().map(move |url| (url, score(queue))))
        .collect();
    let names: Vec<String> = ["a", "b"].into_iter().flat_map(urls).collect();
    state.begin_list(scores).unwrap();
    state.reorder(names.iter().map(String::as_str)).unwrap();
    let one = UrlQuery {
        queues: 1,
        per_queue: 1,
        ..all()
    };
    let mut order = Vec::new();
    for second in 10..18 {
        let [url] = &get(&mut state, &one, second * SECOND)[..] else {
            panic!("one URL a call");
        };
        state
            .put(&[fetched(&url[..1], url, 0)], at(second * SECOND))
            .unwrap();
        order.push(url.clone());
    }
    // 4 x 0.4 / (1 + fetched of a) against 4 x 0.11 / (1 + fetched of b): 1.6, 0.8, 0.53 and then 0.4 against 0.44.
    assert_eq!(order, ["a1", "a2", "a3", "b1", "a4", "b2", "b3", "b4"]);
}

#[test]
fn queues_are_blocked_delayed_and_limited() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    state
        .put(
            &[found("a", "a1"), found("a", "a2"), found("a", "a3")],
            at(0),
        )
        .unwrap();
    let one = UrlQuery {
        per_queue: 1,
        lease: 1,
        ..all()
    };
    assert!(
        state
            .set("c", "a", |queue| queue.blocked_until = 50)
            .unwrap()
    );
    assert!(!state.set("c", "none", |queue| queue.limit = 1).unwrap());
    assert_eq!(get(&mut state, &one, 49 * SECOND), [""; 0]);
    assert_eq!(get(&mut state, &one, 50 * SECOND), ["a1"]);
    state.set("c", "a", |queue| queue.delay = Some(10)).unwrap();
    assert_eq!(get(&mut state, &one, 59 * SECOND), [""; 0]);
    assert_eq!(get(&mut state, &one, 60 * SECOND), ["a1"]);
    state.set("c", "a", |queue| queue.limit = 1).unwrap();
    state
        .put(&[fetched("a", "a1", 0)], at(61 * SECOND))
        .unwrap();
    assert_eq!(get(&mut state, &one, 100 * SECOND), [""; 0]);
    // All this is durable, including the pause.
    state.set_active(false).unwrap();
    drop(state);
    let mut state = open(&folder.file());
    assert!(!state.is_active);
    state.set_active(true).unwrap();
    assert_eq!(get(&mut state, &one, 200 * SECOND), [""; 0]);
    state.set("c", "a", |queue| queue.limit = 0).unwrap();
    assert_eq!(get(&mut state, &one, 200 * SECOND), ["a2"]);
    assert_eq!(
        get(&mut state, &one, 205 * SECOND),
        [""; 0],
        "the delay is still 10 s"
    );
    state.set_active(false).unwrap();
    assert_eq!(get(&mut state, &all(), 300 * SECOND), [""; 0]);
}

#[test]
fn one_crawl_or_queue_may_be_selected() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    let other = Put {
        crawl: "other".into(),
        ..found("a", "o1")
    };
    state
        .put(&[found("a", "a1"), other, found("b", "b1")], at(0))
        .unwrap();
    assert_eq!(state.crawls(), ["c", "other"]);
    let of = |crawl: &str, queue: Option<&str>| UrlQuery {
        crawl: Some(crawl.into()),
        queue: queue.map(str::to_owned),
        ..all()
    };
    assert_eq!(get(&mut state, &of("c", Some("b")), 10 * SECOND), ["b1"]);
    assert_eq!(get(&mut state, &of("other", None), 10 * SECOND), ["o1"]);
    assert_eq!(get(&mut state, &of("c", None), 10 * SECOND), ["a1"]);
}

#[test]
fn removal_leaves_no_entries() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    state
        .put(
            &[
                found("a", "a1"),
                found("a", "a2"),
                fetched("a", "a3", 0),
                fetched("a", "a4", 99),
            ],
            at(0),
        )
        .unwrap();
    get(
        &mut state,
        &UrlQuery {
            per_queue: 1,
            ..all()
        },
        10 * SECOND,
    );
    let mut keys = Vec::new();
    state
        .all()
        .unwrap()
        .each(|_, key, _| {
            keys.push(key.to_owned());
            true
        })
        .unwrap();
    assert_eq!(keys.len(), 4);
    assert_eq!(state.remove(&keys).unwrap(), 4);
    assert_eq!(state.remove(&keys).unwrap(), 0);
    assert_eq!(counts(&state), []);
    assert_eq!(get(&mut state, &all(), 1_000 * SECOND), [""; 0]);
    drop(state);
    assert_eq!(counts(&open(&folder.file())), []);
}

#[test]
fn limits_hold() {
    let folder = Folder::new();
    let limits = FrontierLimits {
        urls: 4,
        queues: 2,
        url_bytes: 10,
        name_bytes: 5,
        metadata_bytes: 3,
        ..FrontierLimits::default()
    };
    let mut state = State::open(folder.file(), limits).unwrap();
    let with = |metadata: &[u8]| Put {
        metadata: metadata.into(),
        ..found("a", "m")
    };
    let puts = [
        found("a", "01234567890"),
        found("abcdef", "u"),
        found("", "u"),
        found("a", ""),
        found("a", "u\0v"),
        with(b"1234"),
    ];
    assert_eq!(state.put(&puts, at(0)).unwrap(), [Ack::Skipped; 6]);
    let puts = [
        found("a", "1"),
        found("b", "2"),
        found("c", "3"),
        found("a", "4"),
        with(b"123"),
        found("a", "6"),
    ];
    let acks = state.put(&puts, at(0)).unwrap();
    use Ack::{Failed, Ok};
    assert_eq!(acks, [Ok, Ok, Failed, Ok, Ok, Failed]);
    // Existing URLs may still be reported.
    assert_eq!(state.put(&[fetched("a", "1", 0)], at(0)).unwrap(), [Ok]);
}

/// A call ends once its length limit is reached; the remaining URLs are there for the next one.
#[test]
fn a_call_hands_out_so_many_bytes() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    let long = |name: &str| Put {
        metadata: vec![b'm'; 1_000],
        ..found("a", name)
    };
    state
        .put(&[long("1"), long("2"), long("3"), found("b", "4")], at(0))
        .unwrap();
    let some = UrlQuery {
        bytes: 1_500,
        ..all()
    };
    assert_eq!(get(&mut state, &some, 10 * SECOND), ["1", "2"]);
    assert_eq!(get(&mut state, &some, 20 * SECOND), ["3", "4"]);
}

/// Random calls, compared with a model that keeps everything in one list.
#[test]
fn random_calls_do_what_a_simple_model_does() {
    struct Known {
        key: String,
        queue: String,
        place: UrlState,
        date: u64,
        number: usize,
    }
    let mut seed = 1u64;
    let mut roll = |sides: u64| {
        // xorshift64: any generator will do here.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % sides
    };
    let folder = Folder::new();
    let mut state = open(&folder.file());
    state.set_usual_delay(0).unwrap();
    let mut model: Vec<Known> = Vec::new();
    let mut came = 0;
    for now in 1..400u64 {
        if roll(20) == 0 {
            // Leases may be lost: a put makes them durable first.
            state.put(&[found("q0", "")], at(0)).unwrap();
            state.set_usual_delay(0).unwrap();
            drop(state);
            state = open(&folder.file());
        }
        let queue = format!("q{}", roll(3));
        let url = format!("u{}", roll(40));
        match roll(3) {
            0 => {
                let known = (roll(2) == 0).then(|| [0, now + roll(50)][roll(2) as usize]);
                let put = Put {
                    known,
                    ..found(&queue, &url)
                };
                let key = format!("{queue} {url}");
                let place = model.iter().position(|item| item.key == key);
                let expected = if place.is_some() && known.is_none() {
                    Ack::Skipped
                } else {
                    Ack::Ok
                };
                assert_eq!(state.put(&[put], at(now * SECOND)).unwrap(), [expected]);
                if expected == Ack::Ok {
                    let number = place.map_or(came, |at| model.remove(at).number);
                    came = came.max(number + 1);
                    let place = match known {
                        Some(0) => UrlState::Completed,
                        Some(date) if date > now => UrlState::Waiting,
                        _ => UrlState::Ready,
                    };
                    model.push(Known {
                        key,
                        queue,
                        place,
                        date: known.unwrap_or(0),
                        number,
                    });
                }
            }
            _ => {
                let most = 1 + roll(3) as usize;
                let lease = 1 + roll(20);
                let wanted = UrlQuery {
                    per_queue: most,
                    lease,
                    queue: Some(queue.clone()),
                    ..all()
                };
                let given = get(&mut state, &wanted, now * SECOND);
                for item in &mut model {
                    if matches!(item.place, UrlState::Waiting | UrlState::Leased)
                        && item.date <= now
                    {
                        item.place = UrlState::Ready;
                    }
                }
                let out = model
                    .iter()
                    .filter(|item| item.queue == queue && item.place == UrlState::Leased);
                let mut expected = Vec::new();
                if out.count() < most {
                    let mut ready: Vec<&mut Known> = model
                        .iter_mut()
                        .filter(|item| item.queue == queue && item.place == UrlState::Ready)
                        .collect();
                    ready.sort_by_key(|item| item.number);
                    for item in ready.into_iter().take(most) {
                        (item.place, item.date) = (UrlState::Leased, now + lease);
                        expected.push(item.key.split_once(' ').unwrap().1.to_owned());
                    }
                }
                assert_eq!(given, expected, "at {now}");
            }
        }
        for (name, active, leased, completed) in counts(&state) {
            let of = |place: &dyn Fn(UrlState) -> bool| {
                model
                    .iter()
                    .filter(|item| item.queue == name && place(item.place))
                    .count() as u64
            };
            assert_eq!(active, of(&|place| place != UrlState::Completed));
            assert_eq!(leased, of(&|place| place == UrlState::Leased));
            assert_eq!(completed, of(&|place| place == UrlState::Completed));
        }
    }
}

/// The wall clock is set before every call. Leases are durations: nothing is handed out while it is leased, and
/// everything else is, at once.
#[test]
fn no_clock_that_is_set_ends_or_extends_a_lease() {
    let mut seed = 7u64;
    let mut roll = |sides: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % sides
    };
    let folder = Folder::new();
    let mut state = open(&folder.file());
    state.set_usual_delay(0).unwrap();
    let puts: Vec<Put> = (0..20)
        .map(|queue| found(&format!("q{queue}"), &format!("u{queue}")))
        .collect();
    state.put(&puts, at(0)).unwrap();
    let mut until = vec![0; puts.len()];
    let mut passed = 0;
    for _ in 0..2_000 {
        passed += roll(5) * SECOND;
        let now = Now {
            unix_s: 1_000_000_000 + roll(200_000),
            passed_ms: passed,
        };
        let lease = 1 + roll(30);
        let some = UrlQuery {
            urls: 3,
            lease,
            ..all()
        };
        let given = state.get(&some, now).unwrap();
        let free = until.iter().filter(|&&until| until <= passed).count();
        assert_eq!(given.len(), free.min(3));
        for given in given {
            let url = Key::parse(&given.key).unwrap().url().to_owned();
            let number: usize = url[1..].parse().unwrap();
            assert!(until[number] <= passed, "{url} at {passed}");
            until[number] = passed + lease * SECOND;
        }
    }
}

#[test]
fn the_best_of_a_list_come_first_and_all_others_in_turn() {
    let turn = |parts, left| in_turn(parts, left).collect::<Vec<_>>();
    assert_eq!(turn(5, 0), [0, 1, 2, 3, 4]);
    assert_eq!(turn(5, 3), [0, 3, 4, 1, 2]);
    // A list may be shorter than the one before.
    assert_eq!(turn(2, 4), [0, 1]);
    assert_eq!(turn(1, 1), [0]);
    assert_eq!(turn(0, 3), [0; 0]);
}

/// Regression: scores of 0 or less, as those of `fica` and `breadth-first` are, all counted as 0, so that their pages came as
/// they were put.
#[test]
fn any_scores_keep_the_order_of_their_list() {
    let given = |scores: &[f64]| {
        let pages = scores.iter().map(|score| NextPage {
            url: format!("http://a/{score}"),
            score: *score,
        });
        let list = NextList {
            snapshot: String::new(),
            version: String::new(),
            records: 0,
            made: None,
            pages: pages.collect(),
        };
        let of = super::scores(&list);
        list.pages
            .iter()
            .map(|page| of[&page.url])
            .collect::<Vec<_>>()
    };
    assert_eq!(given(&[0.5, 0.25, 0.0]), [0.5, 0.25, 0.0]);
    assert_eq!(given(&[0.0, -1.0, -3.0]), [1.0, 0.5, 0.25]);
    assert_eq!(given(&[]), [0.0; 0]);
    let mixed = given(&[2.0, 0.0, -1e9, -1e9 - 1.0, f64::NEG_INFINITY]);
    assert!(mixed.is_sorted_by(|one, next| one > next), "{mixed:?}");
}

/// Regression: a disk that was full for a moment disabled the frontier until a restart, since redb refuses all work on
/// a file once an operation on it failed. Now the file is closed, and the next call opens it and counts from it.
#[test]
fn a_failure_is_over_when_its_cause_is() {
    let folder = Folder::new();
    // Without a cache, every read reaches the file.
    let limits = FrontierLimits {
        cache_bytes: 0,
        ..FrontierLimits::default()
    };
    let mut state = State::open(folder.file(), limits).unwrap();
    let puts = [found("a", "a1"), found("a", "a2"), found("b", "b1")];
    state.put(&puts, at(0)).unwrap();
    let one = UrlQuery {
        per_queue: 1,
        ..all()
    };
    state
        .set("c", "a", |queue| queue.delay = Some(100))
        .unwrap();
    assert_eq!(get(&mut state, &one, 10 * SECOND), ["a1", "b1"]);
    let before = counts(&state);
    let whole = std::fs::read(folder.file()).unwrap();
    std::fs::write(folder.file(), &whole[..4096]).unwrap();
    for _ in 0..2 {
        assert!(state.put(&[found("a", "a3")], at(11 * SECOND)).is_err());
    }
    std::fs::write(folder.file(), &whole).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let put = state.put(&[found("b", "b2")], at(12 * SECOND)).unwrap();
    assert_eq!(put, [Ack::Ok]);
    let mut after = counts(&state);
    after[1].1 -= 1;
    assert_eq!(after.len(), before.len());
    assert_eq!((&after[0].0, after[0].1), (&before[0].0, before[0].1));
    assert_eq!((&after[1].0, after[1].1), (&before[1].0, before[1].1));
    // The delay of 100 s since a queue was served is kept, too.
    assert_eq!(get(&mut state, &all(), 109 * SECOND), ["b1", "b2"]);
    assert_eq!(get(&mut state, &all(), 110 * SECOND), ["a1", "a2"]);
}

/// Regression: one flipped bit made redb panic, when the file was opened or in a call. Now all pages are checked when
/// the file is opened, and panics on pages that rot later are caught by a fence.
#[test]
fn damage_is_an_error_and_never_a_panic() {
    let folder = Folder::new();
    let mut state = open(&folder.file());
    for part in 0..6 {
        let puts: Vec<Put> = (0..500)
            .map(|n| found(&format!("q{}", n % 40), &format!("http://{n}/{part}")))
            .collect();
        state.put(&puts, at(0)).unwrap();
    }
    drop(state);
    let whole = std::fs::read(folder.file()).unwrap();
    let used: Vec<usize> = (0..whole.len())
        .step_by(4096)
        .filter(|&page| whole[page..].iter().take(4096).any(|&byte| byte != 0))
        .collect();
    let mut refused = 0;
    for round in 0..60 {
        let flip = |bytes: &mut [u8]| {
            let page = used[round * 7 % used.len()];
            bytes[page + round * 31 % 100] ^= 1 << (round % 8);
        };
        let mut bytes = whole.clone();
        flip(&mut bytes);
        std::fs::write(folder.file(), &bytes).unwrap();
        match State::open(folder.file(), FrontierLimits::default()) {
            Err(_) => refused += 1,
            Ok(mut state) => drop(state.get(&all(), at(SECOND))),
        }
        // The same while it is open; a panic leaves the file open.
        let path = folder.0.path().join(format!("open-{round}"));
        std::fs::write(&path, &whole).unwrap();
        let limits = FrontierLimits {
            cache_bytes: 0,
            ..FrontierLimits::default()
        };
        let mut state = State::open(path.clone(), limits).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let _ = state.get(&all(), at(SECOND));
        let _ = state.put(&[found("new", "new")], at(SECOND));
        let _ = state.all().and_then(|all| all.each(|_, _, _| true));
        drop(state);
    }
    assert!(refused > 30, "{refused} of 60");
}

/// Regression: `--frontier ranks/store.redb` was accepted: its tables were written into the store's database, and the
/// store was lost. Now a database without the frontier's own mark is refused, and no byte of it changes, even if redb
/// would repair it.
#[test]
fn a_database_of_others_is_left_as_it_is() {
    use redb::TableDefinition;
    const OTHER: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("manifest");
    let folder = Folder::new();
    let db = redb::Database::create(folder.file()).unwrap();
    let writing = db.begin_write().unwrap();
    let bytes = &b"of others"[..];
    writing
        .open_table(OTHER)
        .unwrap()
        .insert("manifest", bytes)
        .unwrap();
    writing.commit().unwrap();
    let is_refused = |path: PathBuf| {
        let before = std::fs::read(&path).unwrap();
        let why = State::open(path.clone(), FrontierLimits::default()).err();
        assert!(matches!(why, Some(Problem::Asked(_))), "{why:?}");
        assert!(std::fs::read(&path).unwrap() == before);
    };
    // As left by a process that is killed, and by one that ends.
    let killed = folder.0.path().join("killed");
    std::fs::copy(folder.file(), &killed).unwrap();
    is_refused(killed);
    drop(db);
    is_refused(folder.file());
    // A file whose creation was interrupted is a frontier.
    let unfinished = folder.0.path().join("unfinished");
    drop(redb::Database::create(&unfinished).unwrap());
    open(&unfinished);
}

/// Regression: after the clock was set back by an hour, no queue that had been served was served again for an hour,
/// since delays and leases were counted by it. Now they are durations; dates that clients give refer to the clock.
#[test]
fn a_clock_that_is_set_changes_no_delay_and_no_lease() {
    for set in [-3_600, 3_600] {
        let folder = Folder::new();
        let mut state = open(&folder.file());
        state
            .put(&[found("a", "a1"), found("a", "a2")], at(0))
            .unwrap();
        let start = 1_000_000;
        let mut urls = |passed_s: u64, set: i64| {
            let now = Now {
                unix_s: (start + passed_s).saturating_add_signed(set),
                passed_ms: passed_s * SECOND,
            };
            let two = UrlQuery {
                per_queue: 2,
                ..all()
            };
            state.get(&two, now).unwrap().len()
        };
        assert_eq!(urls(0, 0), 2);
        // Leases of 30 s last for 30 s.
        assert_eq!([urls(10, set), urls(29, set), urls(30, set)], [0, 0, 2]);
        assert_eq!([urls(31, 0), urls(59, 0), urls(60, 0)], [0, 0, 2]);
        // They outlive the process, on the clock as it is then.
        drop(state);
        let mut state = open(&folder.file());
        let now = |unix_s| Now {
            unix_s,
            passed_ms: 5,
        };
        let late = start + 60 + 29;
        assert_eq!(state.get(&all(), now(late)).unwrap().len(), 0);
        assert_eq!(state.get(&all(), now(late + 1)).unwrap().len(), 2);
    }
}
