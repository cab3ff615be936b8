//! `settle --processes` and `--hosts`: the same bytes as by one process, and what is said when others are lost, or are not
//! who they should be. All on the loopback.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::address::free_address;
use crate::support::{Done, Lab, Running, await_that, crawl};

const UNTIL: &str = "settle --until 1e-9";

/// A store of so many partitions, ranked roughly.
fn store(lab: &Lab, partitions: u32, records: u64) -> String {
    let name = format!("s{partitions}");
    lab.file("crawl", crawl(1, records).concat());
    lab.run(&format!(
        "ingest --store {name} --partitions {partitions} --settle 0.1 crawl"
    ))
    .exits(0);
    name
}

/// A file with a secret, and one with addresses of the loopback that are free.
pub fn hosts(lab: &Lab, count: usize) -> Vec<String> {
    let addresses: Vec<String> = (0..count).map(|_| free_address()).collect();
    lab.file("hosts", addresses.join("\n"));
    secret(lab, "secret", "sixteen bytes or more");
    addresses
}

pub fn secret(lab: &Lab, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.file(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn process(lab: &Lab, store: &str, number: usize, options: &str) -> Running {
    lab.start(&format!(
        "{UNTIL} --store {store} --hosts hosts --secret secret --process {number} {options}"
    ))
}

/// The settled bases of all partitions, with where they are.
fn bases(lab: &Lab, store: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for part in fs::read_dir(lab.path(store).join("parts")).unwrap() {
        let part = part.unwrap();
        for file in fs::read_dir(part.path().join("base")).unwrap() {
            let file = file.unwrap();
            let name = PathBuf::from(part.file_name())
                .join("base")
                .join(file.file_name());
            all.push((name, fs::read(file.path()).unwrap()));
        }
    }
    all.sort();
    all
}

/// Each begins with the bases that an ingest left, and leaves others: with those of one process, byte for byte.
#[test]
fn the_same_bytes_by_any_number_of_processes() {
    let lab = Lab::on_disk();
    lab.file("more", crawl(2, 60).concat());
    for partitions in [4, 64] {
        let store = store(&lab, partitions, 400);
        let of = |name: &str, options: &str| {
            let copy = lab.copy(&store, &format!("{store}-{name}"));
            let settle = || {
                let line = format!("{UNTIL} --store {copy} {options}");
                let said = lab.run(&line).exits(0).err;
                assert!(!said.contains("warning"), "{line}: {said}");
                lab.run(&format!("verify --deep --store {copy}")).exits(0);
                (lab.snapshot(&copy), bases(&lab, &copy))
            };
            let first = settle();
            lab.run(&format!("ingest --store {copy} --settle 0.1 more"))
                .exits(0);
            (first, settle())
        };
        let alone = of("alone", "");
        assert_eq!(alone.0.1.len(), partitions as usize);
        for count in 1..=3 {
            let several = of(&format!("{count}"), &format!("--processes {count}"));
            assert!(
                several == alone,
                "{partitions} partitions, {count} processes"
            );
        }
        // From nothing it is another: the bases were used.
        let nothing = lab.copy(&store, &format!("{store}-nothing"));
        for part in fs::read_dir(lab.path(&nothing).join("parts")).unwrap() {
            fs::remove_dir_all(part.unwrap().path().join("base")).unwrap();
        }
        lab.run(&format!("{UNTIL} --store {nothing} --processes 2"))
            .exits(0)
            .says(&["warning", "settled from the start"]);
        assert!(lab.snapshot(&nothing) != alone.0.0);
    }
}

/// What is wrong with a base in one process, the first says: all begin with nothing, and leave bases that are sound.
#[test]
fn a_damaged_base_is_named() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    let (file, mut bytes) = bases(&lab, &store).swap_remove(1);
    let nothing = lab.copy(&store, "nothing");
    let path = |store: &str| lab.path(store).join("parts").join(&file);
    fs::remove_file(path(&nothing)).unwrap();
    lab.run(&format!("{UNTIL} --store {nothing}"))
        .exits(0)
        .says(&["warning"]);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path(&store), bytes).unwrap();
    lab.run(&format!("{UNTIL} --store {store} --processes 2"))
        .exits(0)
        .says(&["process 1: ", "parts/001/base", "settled from the start"]);
    assert!(lab.snapshot(&store) == lab.snapshot(&nothing));
    lab.run(&format!("verify --deep --store {store}")).exits(0);
    assert!(bases(&lab, &store) == bases(&lab, &nothing));
}

/// Whichever process is killed, whenever: the store is sound, its ranking is the one before or the next, and the same command
/// makes the latter.
#[test]
fn kills_leave_the_bases_before_or_the_next() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    hosts(&lab, 3);
    let before = (lab.snapshot(&store), bases(&lab, &store));
    let alone = lab.copy(&store, "alone");
    let started = Instant::now();
    lab.run(&format!("{UNTIL} --store {alone} --processes 3"))
        .exits(0);
    let takes = started.elapsed();
    let after = lab.snapshot(&alone);
    for kill in 0..12 {
        let copy = lab.copy(&store, &format!("copy{kill}"));
        let mut all: Vec<Running> = (0..3)
            .map(|number| process(&lab, &copy, number, "--silence 2s --wait 2s"))
            .collect();
        thread::sleep(takes * kill / 12);
        all.swap_remove(kill as usize % 3).kill();
        all.iter_mut().for_each(|process| drop(process.join()));
        lab.run(&format!("verify --deep --store {copy}")).exits(0);
        let now = lab.snapshot(&copy);
        assert!(now == before.0 || now == after, "kill {kill}");
        lab.run(&format!("{UNTIL} --store {copy} --processes 2"))
            .exits(0);
        assert!(lab.snapshot(&copy) == after, "kill {kill}");
        lab.run(&format!("verify --deep --store {copy}")).exits(0);
    }
}

/// Processes find each other in a folder of their own, which goes with them.
#[test]
fn nothing_is_left_in_the_temporary_folder() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 40);
    std::fs::create_dir(lab.path("tmp")).unwrap();
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args(["settle", "--until", "1e-9", "--store", &store])
        .args([
            "--processes",
            "3",
            "--silence",
            "5500ms",
            "--wait",
            "59500ms",
        ])
        .current_dir(lab.path(""))
        .env("TMPDIR", "tmp")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("warning"), "{said}");
    let left = std::fs::read_dir(lab.path("tmp")).unwrap().count();
    assert_eq!(left, 0);
}

/// Several processes of a machine take no less than one: what has no room alone has none in pieces.
#[test]
fn memory_is_that_of_all_processes() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    let with = |count: u32, bytes: u64| {
        let copy = lab.copy(&store, &format!("{store}-{count}-{bytes}"));
        lab.run(&format!(
            "{UNTIL} --store {copy} --processes {count} --memory {bytes}"
        ))
    };
    let mut bytes = 10_000;
    while with(1, bytes * 3 / 2).code != Some(0) {
        bytes = bytes * 3 / 2;
    }
    with(1, bytes).exits(8).says(&["settling"]);
    with(4, bytes).exits(8).says(&["by 4 processes"]);
    with(4, 100 * bytes).exits(0);
}

/// Each process has a copy of the store; strangers knock while the first waits.
#[test]
fn machines_and_strangers() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    let alone = lab.copy(&store, "alone");
    lab.run(&format!("{UNTIL} --store {alone} --processes 1"))
        .exits(0);
    let addresses = hosts(&lab, 3);
    let copies: Vec<String> = (0..3)
        .map(|at| lab.copy(&store, &format!("copy{at}")))
        .collect();
    // What the others do not need.
    for (process, copy) in (1..).zip(&copies[1..]) {
        std::fs::remove_dir_all(lab.path(copy).join("snapshots")).unwrap();
        for part in (0..4).filter(|&part| part != process) {
            std::fs::remove_dir_all(lab.path(copy).join(format!("parts/00{part}"))).unwrap();
        }
    }
    let mut first = process(&lab, &copies[0], 0, "");
    await_that("process 0 waits", || {
        TcpStream::connect(&addresses[0]).is_ok()
    });
    let mut noise = TcpStream::connect(&addresses[0]).unwrap();
    noise.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    // The right number with a wrong secret.
    secret(&lab, "wrong", "another secret altogether");
    lab.run(&format!(
        "settle --store {} --hosts hosts --process 1 --secret wrong --wait 1s",
        copies[1]
    ))
    .exits(7)
    .says(&["process 0", &addresses[0], "same secret?"]);
    // The right secret, and another checkpoint.
    lab.run("ingest --store other --partitions 4 --settle 0.1 crawl")
        .exits(0);
    lab.run("settle --store other --hosts hosts --process 1 --secret secret")
        .exits(2)
        .says(&["process 0", "another checkpoint"]);
    lab.run("ingest --store five --partitions 5 --settle 0.1 crawl")
        .exits(0);
    lab.run("settle --store five --hosts hosts --process 1 --secret secret")
        .exits(2)
        .says(&["4 partitions", "of 5"]);
    let mut second = process(&lab, &copies[1], 1, "");
    let mut third = process(&lab, &copies[2], 2, "");
    for done in [second.join(), third.join()] {
        done.exits(0);
    }
    first.join().exits(0).says(&[
        "something else than processes of cashrank do",
        "it does not know the secret",
        "another checkpoint",
        "5 partitions",
        "accuracy",
    ]);
    assert!(lab.snapshot(&copies[0]) == lab.snapshot(&alone));
    // The others write the bases of their own partitions, and nothing else.
    assert!(!lab.path(&copies[1]).join("snapshots").exists());
    let base = |store: &str| {
        let mut of_one = bases(&lab, store);
        of_one.retain(|(file, _)| file.starts_with("001"));
        of_one
    };
    assert!(base(&copies[1]) == base(&alone));
    assert!(base(&copies[0]) != base(&alone));
    // The next one begins with these.
    let closer = "settle --until 1e-11";
    lab.run(&format!("{closer} --store {alone}")).exits(0);
    let with = "--hosts hosts --secret secret";
    let others = [1, 2].map(|number| {
        let store = &copies[number];
        lab.start(&format!("settle --store {store} {with} --process {number}"))
    });
    let store = &copies[0];
    let first = format!("{closer} --store {store} {with} --process 0");
    let said = lab.run(&first).exits(0).err;
    assert!(!said.contains("warning"), "{said}");
    for mut other in others {
        other.join().exits(0);
    }
    assert!(lab.snapshot(store) == lab.snapshot(&alone));
    assert!(base(&copies[1]) == base(&alone));
    // A second run: nothing to do, and all processes end.
    let mut second = process(&lab, &copies[1], 1, "");
    let mut third = process(&lab, &copies[2], 2, "");
    lab.run(&format!(
        "settle --until 1e-6 --store {store} --hosts hosts --secret secret --process 0"
    ))
    .exits(0)
    .says(&["nothing to do"]);
    for done in [second.join(), third.join()] {
        done.exits(0);
    }
}

/// A way between two processes that takes its time, and may go deaf.
struct Between {
    address: String,
    is_deaf: Arc<AtomicBool>,
    /// Bytes that went through.
    passed: Arc<AtomicUsize>,
}

impl Between {
    fn to(target: String) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let between = Between {
            address: listener.local_addr().unwrap().to_string(),
            is_deaf: Arc::default(),
            passed: Arc::default(),
        };
        let (deaf, passed) = (between.is_deaf.clone(), between.passed.clone());
        thread::spawn(move || {
            while let Ok((from, _)) = listener.accept() {
                let Ok(to) = TcpStream::connect(&target) else {
                    continue;
                };
                let ways = [
                    (from.try_clone().unwrap(), to.try_clone().unwrap()),
                    (to, from),
                ];
                for (from, to) in ways {
                    let (deaf, passed) = (deaf.clone(), passed.clone());
                    thread::spawn(move || pass(from, to, &deaf, &passed));
                }
            }
        });
        between
    }

    /// Waits until they are in the midst of it: each sweep takes several times as long as a way.
    fn await_midst(&self) {
        await_that("they settle", || {
            self.passed.load(Ordering::Relaxed) > 10_000
        });
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, deaf: &AtomicBool, passed: &AtomicUsize) {
    let mut bytes = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        thread::sleep(Duration::from_millis(20));
        if deaf.load(Ordering::Relaxed) {
            continue;
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
        passed.fetch_add(read, Ordering::Relaxed);
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// Two processes that settle, the second over a slow way; the latter's address, and the first's.
fn slow_pair(lab: &Lab, store: &str) -> (Running, Running, Between, String) {
    let addresses = hosts(lab, 2);
    let between = Between::to(addresses[0].clone());
    lab.file("far", format!("{}\n{}", between.address, addresses[1]));
    let first = process(lab, store, 0, "--silence 2s");
    let second = lab.start(&format!(
        "settle --store {store} --hosts far --secret secret --process 1 --silence 2s"
    ));
    between.await_midst();
    (first, second, between, addresses[1].clone())
}

/// One is killed, or nothing comes from it: the other ends soon, and says which; nothing is published, and what then is, is
/// right.
#[test]
fn a_lost_process_is_named() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    let alone = lab.copy(&store, "alone");
    lab.run(&format!("{UNTIL} --store {alone} --processes 1"))
        .exits(0);
    let before = lab.snapshot(&store);
    let lost = |done: Done, who: &str, why: &str| {
        assert!(!done.err.contains("panicked"), "{}", done.err);
        done.exits(7).says(&[who, "is lost", why]);
    };

    let (mut first, second, _, address) = slow_pair(&lab, &store);
    assert!(second.kill());
    lost(first.join(), &format!("process 1 ({address})"), "it ended");

    let (first, mut second, between, _) = slow_pair(&lab, &store);
    assert!(first.kill());
    lost(
        second.join(),
        &format!("process 0 ({})", between.address),
        "it ended",
    );

    // Stopped, it holds its sockets open.
    let (mut first, second, _, address) = slow_pair(&lab, &store);
    let since = Instant::now();
    second.signal("STOP");
    lost(
        first.join(),
        &format!("process 1 ({address})"),
        "it was silent for 2s",
    );
    assert!(since.elapsed() < Duration::from_secs(30));
    drop(second);

    let (mut first, mut second, between, _) = slow_pair(&lab, &store);
    between.is_deaf.store(true, Ordering::Relaxed);
    lost(first.join(), "process 1", "");
    lost(second.join(), "process 0", "");

    assert!(lab.snapshot(&store) == before);
    lab.run(&format!("{UNTIL} --store {store} --processes 2"))
        .exits(0);
    assert!(lab.snapshot(&store) == lab.snapshot(&alone));
}

/// A signal while others are awaited is no failure.
#[test]
fn an_interrupt_while_waiting_for_others_stops() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 20);
    for number in [0, 1] {
        hosts(&lab, 3);
        let mut alone = process(&lab, &store, number, "--wait 200s");
        alone.await_handler();
        alone.signal("INT");
        let done = alone.join().exits(130);
        assert!(!done.err.contains("processes: cannot"), "{}", done.err);
    }
}

/// Whoever was started by a process that is gone does not wait for it.
#[test]
fn an_orphan_does_not_wait() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 20);
    hosts(&lab, 2);
    let line = format!(
        "{UNTIL} --store {store} --hosts hosts --secret secret --process 1 --wait 200s --parent"
    );
    let started = Instant::now();
    let orphan = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("\"$0\" {line} $$ & sleep 0.2"),
            env!("CARGO_BIN_EXE_cashrank"),
        ])
        .current_dir(lab.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&orphan.stderr);
    assert!(
        said.contains("the process that started this one is gone"),
        "{said}"
    );
    assert!(started.elapsed() < Duration::from_secs(100));
    // As long as it is there, it does.
    let line = format!("{line} {}", std::process::id());
    let mut waits = lab.start(&line.replace("200s", "1s"));
    waits
        .join()
        .exits(7)
        .says(&["after 1s not all processes are there"]);
}

/// What only the first process checks, it checks before it starts others: here none can be.
#[test]
fn nothing_is_started_for_what_is_refused() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 20);
    let processes = |folder: &str, option: &str| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(format!("{UNTIL} --store {store} --processes 2").split(' '))
            .args(option.split_whitespace())
            .current_dir(lab.path(""))
            .env("TMPDIR", folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    };
    let (code, said) = processes("nowhere", "");
    let advises = said.contains("make this folder, or set TMPDIR");
    assert!(
        code == Some(7) && said.contains("nowhere") && advises,
        "{said}"
    );
    let (code, said) = processes(&"long/".repeat(20), "");
    assert!(code == Some(2) && said.contains("too long"), "{said}");
    let (code, said) = processes("nowhere", "--expire 30d");
    assert!(code == Some(2) && said.contains("--partitions"), "{said}");
}

/// The name of a store may begin as an option does.
#[test]
fn a_store_may_be_named_like_an_option() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 20);
    std::fs::rename(lab.path(&store), lab.path("-T")).unwrap();
    lab.run(&format!("{UNTIL} --store=-T --processes 2"))
        .exits(0);
}

/// A way of 20 ms makes it slower, and not different; neither does an interrupt make anything wrong.
#[test]
fn slow_ways_and_interrupts() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 60);
    let alone = lab.copy(&store, "alone");
    lab.run(&format!("{UNTIL} --store {alone} --processes 1"))
        .exits(0);
    let before = lab.snapshot(&store);
    let (mut first, mut second, ..) = slow_pair(&lab, &store);
    first.signal("INT");
    first.join().exits(130).says(&["nothing was published"]);
    second.join().exits(130).says(&["process 0 was stopped"]);
    assert!(lab.snapshot(&store) == before);
    let (mut first, mut second, ..) = slow_pair(&lab, &store);
    second.signal("INT");
    let who = "process 1 was stopped: nothing was published";
    first.join().exits(130).says(&[who]);
    second.join().exits(130);
    assert!(lab.snapshot(&store) == before);
    let (mut first, mut second, ..) = slow_pair(&lab, &store);
    first.join().exits(0);
    second.join().exits(0);
    assert!(lab.snapshot(&store) == lab.snapshot(&alone));
}

#[test]
fn what_cannot_be_is_refused() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 20);
    lab.run("ingest --store one --settle 0.1 crawl").exits(0);
    hosts(&lab, 2);
    lab.run(&format!("{UNTIL} --store {store} --processes 5"))
        .exits(2)
        .says(&["5 processes", "4 --partitions"]);
    for count in 1..=2 {
        lab.run(&format!("{UNTIL} --store one --processes {count}"))
            .exits(2)
            .says(&["no --partitions"]);
    }
    lab.run(&format!("{UNTIL} --store {store} --processes 0"))
        .exits(2);
    let with = |process: &str| format!("{UNTIL} --store {store} --hosts hosts {process}");
    lab.run(&with("--process 1")).exits(2).says(&["--secret"]);
    lab.run(&with("--process 2 --secret secret"))
        .exits(2)
        .says(&["count from 0"]);
    lab.run(&with("--process 1 --secret none")).exits(7);
    lab.run(&with("--process 1 --secret secret --wait 1s"))
        .exits(7)
        .says(&[
            "after 1s not all processes are there: process 0",
            "cannot connect",
        ]);
    lab.run(&with("--process 0 --secret secret --wait 1s"))
        .exits(7)
        .says(&["process 1", "did not come"]);
    lab.file("secret", "sixteen bytes or more");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(lab.path("secret"), open).unwrap();
    lab.run(&with("--process 0 --secret secret"))
        .exits(2)
        .says(&["everybody may read"]);
    lab.file("hosts", "nonsense");
    lab.run(&with("--process 0 --secret secret"))
        .exits(2)
        .says(&["hosts: line 1"]);
}

/// Copies of a store that went on with different inputs have as many commits, records and partitions; and a copy may have one
/// partition of another.
#[test]
fn copies_that_went_on_differently_are_refused() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    let copies = [2, 3].map(|seed| {
        let copy = lab.copy(&store, &format!("copy{seed}"));
        lab.file(&format!("more{seed}"), crawl(seed, 100).concat());
        lab.run(&format!("ingest --store {copy} --settle 0.1 more{seed}"))
            .exits(0);
        copy
    });
    let before = lab.snapshot(&copies[0]);
    hosts(&lab, 2);
    let mut first = process(&lab, &copies[0], 0, "--wait 3s");
    let mut second = process(&lab, &copies[1], 1, "");
    second
        .join()
        .exits(2)
        .says(&["process 0", "another checkpoint"]);
    first
        .join()
        .exits(7)
        .says(&["process 1", "another checkpoint"]);

    let mixed = lab.copy(&copies[0], "mixed");
    let part = |of: &str| format!("{of}/parts/001");
    std::fs::remove_dir_all(lab.path(&part(&mixed))).unwrap();
    lab.copy(&part(&copies[1]), &part(&mixed));
    let mut first = process(&lab, &copies[0], 0, "--wait 3s");
    let mut second = process(&lab, &mixed, 1, "");
    second
        .join()
        .exits(5)
        .says(&["mixed/parts/001", "went on with other records"]);
    first.join().exits(7).says(&["process 1"]);
    assert!(lab.snapshot(&copies[0]) == before);
}

/// What one process finds damaged in its copy, it says; and the first, that it did not come.
#[test]
fn damage_at_another_process_is_said() {
    let lab = Lab::on_disk();
    let store = store(&lab, 4, 400);
    let copy = lab.copy(&store, "copy");
    for entry in std::fs::read_dir(lab.path("copy/parts/001/rows")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none() {
            let mut bytes = std::fs::read(&path).unwrap();
            let len = bytes.len();
            bytes[len / 2] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
    }
    hosts(&lab, 2);
    let mut second = process(&lab, &copy, 1, "");
    let mut first = process(&lab, &store, 0, "--wait 3s");
    second.join().exits(5).says(&["copy/parts/001/rows"]);
    first.join().exits(7).says(&["process 1", "did not come"]);
}
