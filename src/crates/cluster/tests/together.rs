//! Tests of processes, here as threads: they meet over loopback sockets, exchange messages, and lose each other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cashrank_base::Error;
use cashrank_cluster::{Cluster, Joining, Secret, join};

#[path = "../../../../tests/common/address.rs"]
mod address;
use address::free_address;

const SECRET: &[u8] = b"0123456789abcdef";

/// Returns addresses at which nobody listens.
fn free(count: usize) -> Vec<String> {
    (0..count).map(|_| free_address()).collect()
}

fn process(addresses: &[String], process: usize) -> Joining {
    Joining {
        program: "1".into(),
        shards: 4,
        digest: 5,
        wait: Duration::from_secs(20),
        silence: Duration::from_secs(2),
        ..Joining::new(addresses.to_vec(), process, Secret::of(SECRET).unwrap())
    }
}

/// Collects what it reports about strangers.
fn heard(joining: &mut Joining) -> Arc<Mutex<Vec<String>>> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let said = all.clone();
    joining.tell = Arc::new(move |what| said.lock().unwrap().push(what.to_owned()));
    all
}

fn begin(joining: Joining) -> JoinHandle<Result<Cluster, Error>> {
    thread::spawn(move || join(joining, &|| false))
}

fn together(count: usize) -> Vec<Cluster> {
    let addresses = free(count);
    let begun: Vec<_> = (0..count)
        .map(|at| begin(process(&addresses, at)))
        .collect();
    begun
        .into_iter()
        .map(|it| it.join().unwrap().unwrap())
        .collect()
}

/// Returns a message from one process to another in a round, sometimes of many pieces.
fn message(from: usize, to: usize, round: usize) -> Vec<u8> {
    let len = match (from + to + round) % 4 {
        0 => 0,
        1 => 1,
        2 => 1 << 15,
        _ => 300_000,
    };
    (0..len)
        .map(|at| (at * 7 + from * 31 + to * 5 + round) as u8)
        .collect()
}

#[test]
fn messages_arrive_whole_and_in_order() {
    for count in 1..=4 {
        let each = together(count).into_iter().enumerate();
        let threads = each.map(|(process, mut cluster)| {
            thread::spawn(move || {
                for round in 0..8 {
                    let messages = (0..count).map(|to| message(process, to, round));
                    let got = cluster.exchange(messages.collect()).unwrap();
                    let expected: Vec<_> = (0..count)
                        .map(|from| message(from, process, round))
                        .collect();
                    assert!(got == expected, "round {round} of process {process}");
                }
                cluster.finish().unwrap();
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
    }
}

/// Messages are encrypted: their plain text never passes the network.
#[test]
fn nobody_on_the_way_reads() {
    let addresses = free(2);
    // Process 1 connects through an eavesdropper.
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut far = addresses.clone();
    far[0] = between.local_addr().unwrap().to_string();
    let (one, other) = (begin(process(&addresses, 0)), begin(process(&far, 1)));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let looks = seen.clone();
    thread::spawn(move || {
        // Until process 0 listens, connections fail; the eavesdropper tries again.
        loop {
            let (mut from, _) = between.accept().unwrap();
            let Ok(mut to) = TcpStream::connect(&addresses[0]) else {
                continue;
            };
            let (mut back, mut into) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back, &mut into));
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                looks.lock().unwrap().extend_from_slice(&bytes[..read]);
                to.write_all(&bytes[..read]).unwrap();
            }
        }
    });
    let (mut one, mut other) = (one.join().unwrap().unwrap(), other.join().unwrap().unwrap());
    let text = b"nobody but process 0 reads this".to_vec();
    let sent = vec![text.clone(), Vec::new()];
    let other = thread::spawn(move || {
        other.exchange(sent).unwrap();
        other.finish()
    });
    assert_eq!(one.exchange(vec![Vec::new(); 2]).unwrap()[1], text);
    one.finish().unwrap();
    other.join().unwrap().unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() > text.len());
    assert!(!seen.windows(8).any(|bytes| bytes == &text[..8]));
}

/// Noise, wrong secrets and replayed messages are refused and reported, and the others meet.
#[test]
fn strangers_are_refused_and_named() {
    let addresses = free(2);
    let mut first = process(&addresses, 0);
    let said = heard(&mut first);
    let one = begin(first);
    let connect = || loop {
        match TcpStream::connect(&addresses[0]) {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    let said_of = |what: &str| {
        let end = Instant::now() + Duration::from_secs(10);
        while !said.lock().unwrap().iter().any(|it| it.contains(what)) {
            assert!(Instant::now() < end, "{what}: {:?}", said.lock().unwrap());
            thread::sleep(Duration::from_millis(10));
        }
    };
    for noise in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        &[0xff; 2000],
        &[0; 8],
        &[0, 4, 1, 2, 3, 4],
    ] {
        connect().write_all(noise).unwrap();
    }
    said_of("something else than processes of cashrank");
    said_of("does not know the secret");
    // A silent connection delays nobody.
    let silent = connect();
    // The right number with a wrong secret.
    let wrong = Joining {
        secret: Secret::of(b"another secret that is as long").unwrap(),
        wait: Duration::from_millis(500),
        ..process(&addresses, 1)
    };
    let error = join(wrong, &|| false).err().unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(
        error.to_string().contains("does it have the same secret?"),
        "{error}"
    );
    // A greeting recorded from a process that knows the secret, sent again.
    let recorder = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut towards = addresses.clone();
    towards[0] = recorder.local_addr().unwrap().to_string();
    let recorded = begin(Joining {
        wait: Duration::from_millis(500),
        ..process(&towards, 1)
    });
    let (mut stream, _) = recorder.accept().unwrap();
    let mut greeting = vec![0; 4096];
    let read = stream.read(&mut greeting).unwrap();
    assert!(recorded.join().unwrap().is_err());
    let mut again = connect();
    again.write_all(&greeting[..read]).unwrap();
    let mut answer = [0; 4096];
    assert!(again.read(&mut answer).unwrap() > 50);
    again.write_all(&[&[0, 25][..], &[7; 25]].concat()).unwrap();
    said_of("it calls itself process 1, but it sent an old greeting again");
    // The others meet undisturbed.
    let other = begin(process(&addresses, 1));
    let (one, other) = (one.join().unwrap().unwrap(), other.join().unwrap().unwrap());
    let other = thread::spawn(|| other.finish());
    one.finish().unwrap();
    other.join().unwrap().unwrap();
    drop(silent);
    // Nobody listens any more.
    assert!(TcpStream::connect(&addresses[0]).is_err());
}

#[test]
fn other_settings_are_refused_on_both_sides() {
    type Change = fn(&mut Joining);
    let changes: [(Change, &str); 4] = [
        (|it| it.program = "2".into(), "version"),
        (|it| it.shards = 64, "shards"),
        (|it| it.digest = 6, "another --until"),
        (|it| it.addresses.push("127.0.0.1:1".into()), "processes"),
    ];
    // At the same time, since each waits for two seconds.
    thread::scope(|scope| {
        for (change, what) in changes {
            scope.spawn(move || refused_on_both_sides(change, what));
        }
    });
}

/// Checks that a process whose settings were changed is refused, and that both sides say `what`.
fn refused_on_both_sides(change: fn(&mut Joining), what: &str) {
    let addresses = free(2);
    let mut first = process(&addresses, 0);
    first.wait = Duration::from_secs(2);
    let said = heard(&mut first);
    let one = begin(first);
    let mut second = process(&addresses, 1);
    change(&mut second);
    let error = join(second, &|| false).err().unwrap();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    assert!(
        error.to_string().starts_with("process 0 (127.0.0.1:"),
        "{error}"
    );
    assert!(error.to_string().contains(what), "{error}");
    let error = one.join().unwrap().err().unwrap().to_string();
    assert!(
        error.contains("process 1 (127.0.0.1:") && error.contains("did not come"),
        "{error}"
    );
    assert!(said.lock().unwrap().iter().any(|it| it.contains(what)));
}

/// The error in each of the others names the lost process, whichever waits for which.
#[test]
fn a_process_that_ends_is_named() {
    let mut all = together(3);
    drop(all.remove(1));
    for mut cluster in all {
        let error = cluster.exchange(vec![Vec::new(); 3]).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
        let error = error.to_string();
        assert!(error.contains("process 1 (127.0.0.1:"), "{error}");
        assert!(cluster.exchange(vec![Vec::new(); 3]).is_err());
        assert!(cluster.finish().is_err());
    }
}

#[test]
fn a_process_reports_why_it_ends() {
    let mut all = together(2);
    all[1].abandon("its disk is full");
    let error = all[0]
        .exchange(vec![Vec::new(); 2])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("is lost: it ended: its disk is full"),
        "{error}"
    );
}

/// Exchanges with one other until that fails.
fn until_lost(mut cluster: Cluster) -> Error {
    loop {
        match cluster.exchange(vec![Vec::new(); 2]) {
            Ok(_) => thread::sleep(Duration::from_millis(10)),
            Err(error) => return error,
        }
    }
}

/// A link over which nothing arrives any more, though it is not closed: an error after the silence, on both sides.
#[test]
fn a_deaf_link_is_noticed() {
    let addresses = free(2);
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut far = addresses.clone();
    far[0] = between.local_addr().unwrap().to_string();
    let is_deaf = Arc::new(Mutex::new(false));
    let (one, other) = (begin(process(&addresses, 0)), begin(process(&far, 1)));
    let deaf = is_deaf.clone();
    thread::spawn(move || {
        loop {
            let (from, _) = between.accept().unwrap();
            let Ok(to) = TcpStream::connect(&addresses[0]) else {
                continue;
            };
            for (mut from, mut to) in [
                (from.try_clone().unwrap(), to.try_clone().unwrap()),
                (to, from),
            ] {
                let deaf = deaf.clone();
                thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        if !*deaf.lock().unwrap() && to.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    let (mut one, mut other) = (one.join().unwrap().unwrap(), other.join().unwrap().unwrap());
    let other = thread::spawn(move || {
        other.exchange(vec![Vec::new(); 2]).unwrap();
        // Long work is not silence.
        thread::sleep(Duration::from_secs(4));
        other.exchange(vec![Vec::new(); 2]).unwrap();
        until_lost(other)
    });
    one.exchange(vec![Vec::new(); 2]).unwrap();
    one.exchange(vec![Vec::new(); 2]).unwrap();
    *is_deaf.lock().unwrap() = true;
    let since = Instant::now();
    for error in [until_lost(one), other.join().unwrap()] {
        let error = error.to_string();
        assert!(
            error.contains("is lost: it was silent for 2s") || error.contains("it ended"),
            "{error}"
        );
    }
    assert!(since.elapsed() < Duration::from_secs(10));
}

fn finish(all: Vec<Cluster>) {
    let all = all.into_iter();
    let ended: Vec<_> = all
        .map(|cluster| thread::spawn(move || cluster.finish()))
        .collect();
    for ended in ended {
        ended.join().unwrap().unwrap();
    }
}

/// Each sends signs of life as often as the other requires.
#[test]
fn times_of_silence_may_differ() {
    let addresses = free(2);
    let of = |at: usize, silence: u64| Joining {
        silence: Duration::from_millis(silence),
        ..process(&addresses, at)
    };
    let begun = [begin(of(0, 1000)), begin(of(1, 60_000))];
    let both = begun.map(|it| it.join().unwrap().unwrap());
    thread::sleep(Duration::from_secs(3));
    finish(both.into());
}

/// Process 0 is lost while process 1 waits for process 2.
#[test]
fn a_process_that_is_lost_while_others_are_waited_for_is_named() {
    let addresses = free(3);
    let is_lost = Arc::new(Mutex::new(false));
    let lost = is_lost.clone();
    let first = process(&addresses, 0);
    let first = thread::spawn(move || join(first, &|| *lost.lock().unwrap()).map(drop));
    let second = begin(process(&addresses, 1));
    thread::sleep(Duration::from_secs(1));
    let since = Instant::now();
    *is_lost.lock().unwrap() = true;
    first.join().unwrap().unwrap_err();
    let error = second.join().unwrap().err().unwrap().to_string();
    assert!(error.contains("process 0 (127.0.0.1:"), "{error}");
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_address_in_use_is_named() {
    let addresses = free(2);
    let _held = TcpListener::bind(&addresses[0]).unwrap();
    let error = begin(process(&addresses, 0)).join().unwrap().err().unwrap();
    let error = error.to_string();
    assert!(error.contains(&addresses[0]), "{error}");
    assert!(error.contains("in use"), "{error}");
}
