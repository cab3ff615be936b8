//! Malicious clients against a running ingest: whatever they send, the ingest continues, the next client is answered,
//! and memory stays bounded. On this machine only. The attacks are bounded by amount; no test depends on how long
//! things take.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Lab, Running};

/// Maximum memory that all attacks together may add to the process, in KiB: untaken answers (128 MiB), the frontier's
/// cache (64 MiB), connections, and what the allocator keeps of lists and answers in progress. Without a limit, the
/// answers of the last attack alone would take some 900 MiB.
const MARGIN_KIB: u64 = 448 << 10;

/// Waits until the condition holds. The limit is far longer than that takes on any machine.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "never: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Running ingest with the service and a frontier.
struct Victim {
    lab: Lab,
    running: Running,
    address: SocketAddr,
    records: u64,
}

impl Victim {
    fn start() -> Victim {
        let lab = Lab::on_disk();
        let line = "ingest - --format records --store s --listen 127.0.0.1:0 --frontier f --frontier-urls 2000 --snapshot-every 40";
        let mut running = lab.start(line);
        let mut lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("serving at http://")?;
            address.strip_suffix('/')?.parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        let mut victim = Victim {
            lab,
            running,
            address: address.expect("it says where it serves"),
            records: 0,
        };
        // With these, lists of pages to crawl next take some 7 MB.
        victim.ingests(700);
        victim
    }

    /// Sends records with `links` links each, and waits until they are durable.
    fn ingests(&mut self, links: u32) {
        for _ in 0..40 {
            let page = self.records;
            self.records += 1;
            let long = "x".repeat(180);
            let links: Vec<String> = (0..links)
                .map(|link| format!("http://h{page}.example/{long}/{link}"))
                .collect();
            let record = json!({"url": format!("http://a.example/{page}"), "links": links});
            let line = format!("{record}\n");
            self.running.write(line.as_bytes());
        }
        eventually("what was sent is in a snapshot", || {
            std::thread::sleep(Duration::from_millis(100));
            let done = self.lab.run("stat --json --store s");
            done.code == Some(0) && done.json()["records"] == self.records
        });
    }

    /// Returns the peak memory of the process, in KiB.
    fn peak_kib(&self) -> u64 {
        let told = std::fs::read_to_string(format!("/proc/{}/status", self.running.child.id()));
        let told = told.unwrap();
        let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap()
    }

    /// Returns whether a well-behaved client is answered.
    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address) else {
            return false;
        };
        let request = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut answer = Vec::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_end(&mut answer).is_ok()
            && answer.starts_with(b"HTTP/1.1 200")
    }
}

/// Opens a connection whose writes time out if they are not taken.
fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .ok()?;
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .ok()?;
    Some(stream)
}

/// Sends until everything was sent, or nothing more is taken.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const RESET: u8 = 3;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// Encodes the headers of a request (HPACK, literal without indexing).
fn headers(method: &str, path: &str) -> Vec<u8> {
    let all = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ];
    let mut out = Vec::new();
    for (name, value) in all {
        assert!(name.len().max(value.len()) < 127);
        out.push(0);
        for text in [name, value] {
            out.push(text.len() as u8);
            out.extend(text.as_bytes());
        }
    }
    out
}

/// Opens an HTTP/2 connection that takes no answers, or nothing of them.
fn http2(address: SocketAddr, window: u32) -> Option<TcpStream> {
    let mut stream = connect(address)?;
    let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut setting = 4u16.to_be_bytes().to_vec();
    setting.extend(window.to_be_bytes());
    begin.extend(frame(SETTINGS, 0, 0, &setting));
    send(&mut stream, &begin).then_some(stream)
}

const GET_STATS: &str = "/urlfrontier.URLFrontier/GetStats";
const GET_URLS: &str = "/urlfrontier.URLFrontier/GetURLs";
const PUT_URLS: &str = "/urlfrontier.URLFrontier/PutURLs";

/// Encodes a length-delimited field of a protobuf message.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = value.len();
    while length >= 128 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(value);
    out
}

/// Encodes a gRPC message: a URL that was found, in this queue.
fn found(url: &str, queue: &str) -> Vec<u8> {
    let info = [field(1, url.as_bytes()), field(2, queue.as_bytes())].concat();
    let message = field(1, &field(1, &info));
    [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
}

/// Sends a body in frames, as far as it is taken.
fn send_body(stream: &mut TcpStream, number: u32, body: &[u8]) -> bool {
    body.chunks(16 << 10)
        .all(|piece| send(stream, &frame(DATA, 0, number, piece)))
}

type Attack = fn(SocketAddr) -> Vec<TcpStream>;

fn slow_headers(address: SocketAddr) -> Vec<TcpStream> {
    let mut streams: Vec<TcpStream> = (0..300).filter_map(|_| connect(address)).collect();
    for byte in b"GET /status HTTP/1.1\r\nHost: local" {
        for stream in &mut streams {
            send(stream, &[*byte]);
        }
    }
    streams
}

fn a_thousand_connections(address: SocketAddr) -> Vec<TcpStream> {
    // If the system's queue is full, stop trying.
    (0..1000).map_while(|_| connect(address)).collect()
}

fn huge_bodies(address: SocketAddr) -> Vec<TcpStream> {
    let block = vec![b'x'; 1 << 20];
    let mut streams = Vec::new();
    for _ in 0..20 {
        let Some(mut stream) = connect(address) else {
            break;
        };
        let head =
            "POST /next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n";
        send(&mut stream, head.as_bytes());
        (0..32).all(|_| send(&mut stream, &block));
        streams.push(stream);
        // A gRPC message of four gigabytes, as far as it is taken.
        if let Some(mut stream) = http2(address, 65_535) {
            send(
                &mut stream,
                &frame(HEADERS, 4, 1, &headers("POST", GET_STATS)),
            );
            let message = [&[0, 0xff, 0xff, 0xff, 0xff][..], &block].concat();
            (0..32).all(|_| send_body(&mut stream, 1, &message));
            streams.push(stream);
        }
    }
    streams
}

fn malformed_calls(address: SocketAddr) -> Vec<TcpStream> {
    let bodies: [&[u8]; 9] = [
        b"",
        b"\x00",
        b"\x00\x00\x00\x00\x09short",
        b"\x01\x00\x00\x00\x04\x1f\x8b\x08\x00",
        b"\xff\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x03\xff\xff\xff",
        b"\x00\x00\x00\x00\x06\x0a\xff\xff\xff\xff\x0f",
        b"\x00\x00\x00\x00\x04\x0a\x02\xc3\x28",
        b"\x00\xff\xff\xff\xff",
    ];
    let mut streams = Vec::new();
    for path in [
        GET_STATS,
        GET_URLS,
        PUT_URLS,
        "/urlfrontier.URLFrontier/None",
    ] {
        let Some(mut stream) = http2(address, 65_535) else {
            continue;
        };
        for (at, body) in bodies.iter().enumerate() {
            let number = 2 * at as u32 + 1;
            send(
                &mut stream,
                &frame(HEADERS, 4, number, &headers("POST", path)),
            );
            // Some end, and some never do.
            send(&mut stream, &frame(DATA, (at % 2) as u8, number, body));
        }
        // Frames that are invalid here, or anywhere.
        send(&mut stream, &frame(DATA, 0, 0, b"x"));
        send(&mut stream, &frame(0xee, 0xff, 7, &[0; 100]));
        streams.push(stream);
    }
    streams
}

fn endless_puts(address: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for client in 0..10 {
        let Some(mut stream) = http2(address, 65_535) else {
            break;
        };
        for call in 0..16 {
            send(
                &mut stream,
                &frame(HEADERS, 4, 2 * call + 1, &headers("POST", PUT_URLS)),
            );
        }
        for url in 0..40_000u32 {
            let message = found(&format!("http://p{client}.example/{url}"), "");
            if !send(&mut stream, &frame(DATA, 0, 2 * (url % 16) + 1, &message)) {
                break;
            }
        }
        streams.push(stream);
    }
    streams
}

fn giant_names(address: SocketAddr) -> Vec<TcpStream> {
    let giant = "q".repeat(900_000);
    let mut streams = Vec::new();
    for _ in 0..10 {
        let Some(mut stream) = http2(address, 65_535) else {
            break;
        };
        send(
            &mut stream,
            &frame(HEADERS, 4, 1, &headers("POST", PUT_URLS)),
        );
        let message = found("http://g.example/", &giant);
        (0..50).all(|_| send_body(&mut stream, 1, &message));
        streams.push(stream);
    }
    streams
}

fn rapid_resets(address: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..4 {
        let Some(mut stream) = http2(address, 65_535) else {
            break;
        };
        let head = headers("POST", GET_URLS);
        for call in 0..20_000u32 {
            let number = 2 * call + 1;
            let mut burst = frame(HEADERS, 4, number, &head);
            burst.extend(frame(DATA, 1, number, &[0; 5]));
            burst.extend(frame(RESET, 0, number, &8u32.to_be_bytes()));
            if !send(&mut stream, &burst) {
                break;
            }
        }
        streams.push(stream);
    }
    streams
}

fn floods_of_frames(address: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    // Headers without an end.
    if let Some(mut stream) = http2(address, 65_535) {
        send(
            &mut stream,
            &frame(HEADERS, 0, 1, &headers("GET", "/status")),
        );
        let more = frame(CONTINUATION, 0, 1, &[0, 1, b'x', 1, b'y'].repeat(3_000));
        (0..4_000).all(|_| send(&mut stream, &more));
        streams.push(stream);
    }
    // Frames that require an answer; none is taken.
    for (kind, payload) in [(PING, &[0; 8][..]), (SETTINGS, &[0, 4, 0, 0, 1, 0][..])] {
        if let Some(mut stream) = http2(address, 65_535) {
            let burst = frame(kind, 0, 0, payload).repeat(1_000);
            (0..500).all(|_| send(&mut stream, &burst));
            streams.push(stream);
        }
    }
    // One long header, added to the table and then referred to repeatedly.
    if let Some(mut stream) = http2(address, 65_535) {
        let mut bomb = headers("GET", "/status");
        bomb.extend([0x40, 1, b'b', 127, 0x81, 0x1d]);
        bomb.extend(vec![b'v'; 127 + 0x1d * 128 + 1]);
        bomb.extend(vec![0xbe; 8_000]);
        send(&mut stream, &frame(HEADERS, 5, 1, &bomb));
        streams.push(stream);
    }
    streams
}

/// Requests long answers and lets them wait: the client is alive, but takes none of them.
fn answers_that_wait(address: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..8 {
        let Some(mut stream) = http2(address, 0) else {
            break;
        };
        for call in 0..16 {
            let head = headers("GET", "/next?n=100000");
            send(&mut stream, &frame(HEADERS, 5, 2 * call + 1, &head));
        }
        // Either their headers come, or a message that there is no room for them.
        let mut some = vec![0; 1 << 16];
        while matches!(stream.read(&mut some), Ok(read) if read > 0) {}
        streams.push(stream);
    }
    streams
}

/// One attack after another, each held open while records are read; then all clients disconnect.
#[test]
fn hostile_clients_take_no_memory_and_stop_nothing() {
    if !cfg!(target_os = "linux") {
        eprintln!("SKIPPED: how much memory a process has is asked of Linux");
        return;
    }
    let mut victim = Victim::start();
    eventually("it answers", || victim.answers());
    let before = victim.peak_kib();
    let attacks: [(&str, Attack); 9] = [
        ("slow headers", slow_headers),
        ("a thousand connections", a_thousand_connections),
        ("huge bodies", huge_bodies),
        ("malformed calls", malformed_calls),
        ("endless puts", endless_puts),
        ("giant names", giant_names),
        ("rapid resets", rapid_resets),
        ("floods of frames", floods_of_frames),
        ("answers that wait", answers_that_wait),
    ];
    for (name, attack) in attacks {
        let held = attack(victim.address);
        victim.ingests(3);
        let clients = held.len();
        drop(held);
        eventually("the next client is answered", || victim.answers());
        let peak = victim.peak_kib();
        eprintln!("{name}: {clients} clients; at most {peak} KiB so far, {before} before");
        assert!(
            peak < before + MARGIN_KIB,
            "{name}: {peak} KiB, {before} before"
        );
    }
    drop(victim.running.stdin.take());
    eventually("it ends", || {
        victim.running.child.try_wait().unwrap().is_some()
    });
    let stat = victim.lab.stat("s");
    assert_eq!(stat["records"], victim.records);
}
