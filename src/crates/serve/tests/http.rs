//! What programs and browsers get, and what happens to malicious clients. Everything runs on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cashrank_serve::{
    Backend, NextList, NextPage, NextQuery, Problem, Result, Service, ServiceLimits,
    ServiceOptions, Token,
};

/// A longer wait means that the service hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Backend with fixed answers. It knows one page.
struct Fixed;

const STATUS: &str = r#"{"records":7,"frontier":4}"#;
const METRICS: &str = "cashrank_records_total 7\n";

/// Most important pages as JSON, as long as 30 pages are.
fn top() -> String {
    format!(r#"{{"top":["{}"]}}"#, "x".repeat(3_000))
}

impl Backend for Fixed {
    fn status(&self) -> Result<Vec<u8>> {
        Ok(STATUS.into())
    }
    fn metrics(&self) -> Result<String> {
        Ok(METRICS.into())
    }
    fn questions(&self) -> &'static [&'static str] {
        &["top"]
    }
    fn answer(&self, _: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
        match parameters.first() {
            None => Ok(top().into()),
            Some((name, value)) => Err(Problem::Asked(format!("{name}={value}: not known here"))),
        }
    }
    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        if let Some((name, _)) = query.options.first() {
            return Err(Problem::Asked(format!("{name}: not known here")));
        }
        Ok(Some(Arc::new(NextList {
            snapshot: "s".into(),
            version: "s".into(),
            records: 7,
            made: None,
            pages: vec![NextPage {
                url: "http://example.org/new".into(),
                score: 0.5,
            }],
        })))
    }
    fn canonical(&self, url: &str) -> String {
        url.into()
    }
    fn log(&self, _: &str) {}
}

fn local() -> ServiceOptions {
    ServiceOptions {
        listen: ([127, 0, 0, 1], 0).into(),
        token: None,
        limits: ServiceLimits::default(),
        calls: None,
    }
}

fn start(limits: ServiceLimits) -> Service {
    let options = ServiceOptions { limits, ..local() };
    Service::start(options, Arc::new(Fixed)).unwrap()
}

fn connect(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and reads until the service closes.
fn exchange(service: &Service, request: &str) -> String {
    let mut stream = connect(service);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn get(service: &Service, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = exchange(service, &request);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.into())
}

fn json(service: &Service, path: &str) -> serde_json::Value {
    let (status, body) = get(service, path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn answers_are_those_of_the_backend() {
    let service = start(ServiceLimits::default());
    let status = json(&service, "/status");
    assert_eq!(
        (&status["records"], &status["frontier"]),
        (&7.into(), &4.into())
    );
    assert_eq!(get(&service, "/top"), (200, format!("{}\n", top())));
    assert_eq!(json(&service, "/next?n=5")["next"][0]["score"], 0.5);
    assert_eq!(
        get(&service, "/next?to=plain"),
        (200, "http://example.org/new\n".into())
    );
    let (status, page) = get(&service, "/");
    assert!(status == 200 && page.contains("<title>cashrank</title>"));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let service = start(ServiceLimits::default());
    for (path, status, reason) in [
        ("/nothing", 404, "/status"),
        ("/top?m=1", 400, "m=1: not known here"),
        ("/top/", 404, "/status, /top, /next"),
        ("/status?x=1", 400, "unknown parameter; there are none here"),
        ("/next?strategy=best", 400, "strategy"),
        ("/next?to=csv", 400, "json or plain"),
    ] {
        let (found, body) = get(&service, path);
        let error: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(found, status, "{path}");
        assert!(
            error["error"].as_str().unwrap().contains(reason),
            "{path}: {body}"
        );
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let request =
            format!("{method} /top HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(
            exchange(&service, &request).starts_with("HTTP/1.1 405"),
            "{method}"
        );
    }
}

#[test]
fn what_is_no_http_is_refused() {
    let service = start(ServiceLimits::default());
    for request in [
        "HELLO\r\n\r\n",
        "GET / HTTP/7.3\r\n\r\n",
        "GET / HTTP/1.1\r\nno header\r\n\r\n",
    ] {
        let answer = exchange(&service, request);
        assert!(answer.starts_with("HTTP/1.1 400"), "{request}: {answer}");
    }
}

/// A list has a mark and an age; a client that has the list already gets a short answer.
#[test]
fn a_list_is_sent_once_to_whoever_says_what_it_has() {
    let service = start(ServiceLimits::default());
    let by = |method: &str, header: &str| {
        exchange(
            &service,
            &format!(
                "{method} /next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n"
            ),
        )
    };
    let asked = |header: &str| by("GET", header);
    let first = asked("");
    assert!(first.contains("etag: \"s\"\r\n"), "{first}");
    for method in ["GET", "HEAD"] {
        let again = by(method, "If-None-Match: \"s\"\r\n");
        assert!(
            again.starts_with("HTTP/1.1 304") && again.ends_with("\r\n\r\n"),
            "{again}"
        );
        assert!(!again.contains("content-length"), "{again}");
    }
    assert!(asked("If-None-Match: \"older\"\r\n").contains("http://example.org/new"));
    let told = json(&service, "/next");
    assert_eq!(
        (&told["snapshot"], &told["records"]),
        (&"s".into(), &7.into())
    );
}

/// However many clients wait for lists in progress, all other requests are answered, and the clients are informed when
/// it takes too long.
#[test]
fn who_waits_for_a_list_keeps_nobody_waiting() {
    let options = ServiceOptions {
        limits: ServiceLimits {
            workers: 1,
            waiting: 1,
            answer_time: Duration::from_secs(2),
            ..ServiceLimits::default()
        },
        ..local()
    };
    let service = Service::start(options, Arc::new(Slow::default())).unwrap();
    let mut waiting: Vec<TcpStream> = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&service);
        let request = b"GET /next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        waiting.push(stream);
    }
    // There is one place, occupied for a short time by each: a few attempts suffice.
    let started = Instant::now();
    while get(&service, "/top").0 != 200 {
        assert!(started.elapsed() < PATIENCE);
    }
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("retry-after"), "{answer}");
    }
}

#[test]
fn metrics_are_text() {
    let service = start(ServiceLimits::default());
    assert_eq!(get(&service, "/metrics"), (200, METRICS.to_owned()));
}

#[test]
fn a_token_is_needed_if_there_is_one() {
    let options = ServiceOptions {
        token: Some(Token::new("0123456789abcdef").unwrap()),
        ..local()
    };
    let service = Service::start(options, Arc::new(Fixed)).unwrap();
    let with = |header: &str| {
        exchange(
            &service,
            &format!(
                "GET /status HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n{header}\r\n"
            ),
        )
    };
    let without = with("");
    assert!(without.starts_with("HTTP/1.1 401") && without.contains("www-authenticate: Basic"));
    assert!(!without.contains("records"));
    assert!(with("Authorization: Bearer 0123456789abcdee\r\n").starts_with("HTTP/1.1 401"));
    assert!(with("Authorization: Bearer 0123456789abcdef\r\n").starts_with("HTTP/1.1 200"));
}

/// If a site's name points to this machine, a browser sends that name.
#[test]
fn names_of_others_are_refused() {
    let service = start(ServiceLimits::default());
    let named = |host: &str| {
        exchange(
            &service,
            &format!("GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        )
    };
    assert!(named("evil.example").starts_with("HTTP/1.1 421"));
    assert!(named(&service.address().to_string()).starts_with("HTTP/1.1 200"));
}

/// Short deadlines, for tests of their expiry.
fn hurried() -> ServiceLimits {
    ServiceLimits {
        header_time: Duration::from_millis(300),
        idle_time: Duration::from_millis(600),
        write_time: Duration::from_millis(300),
        ..ServiceLimits::default()
    }
}

/// The service closes a connection that sends nothing, or a request without an end.
#[test]
fn slow_requests_are_cut_off() {
    let service = start(hurried());
    for begun in [
        "",
        "G",
        "GET /status HTTP/1.1\r\nHost: localhost\r\nX: ",
        "PRI * HTTP/2.0\r\n",
    ] {
        let mut stream = connect(&service);
        stream.write_all(begun.as_bytes()).unwrap();
        let mut rest = Vec::new();
        // Whether or not the service gives a reason, the connection ends.
        let _ = stream.read_to_end(&mut rest);
        assert!(
            !String::from_utf8_lossy(&rest).contains("200 OK"),
            "{begun:?}"
        );
    }
    // A byte at intervals does not help.
    let mut stream = connect(&service);
    let started = Instant::now();
    while stream.write_all(b"x").is_ok() {
        std::thread::sleep(Duration::from_millis(50));
        assert!(started.elapsed() < PATIENCE, "still open");
    }
    // Nor do those that HTTP/2 begins with.
    let mut stream = connect(&service);
    let is_open = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".iter().all(|byte| {
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(&[*byte]).is_ok()
    });
    assert!(!is_open, "still open");
    assert_eq!(get(&service, "/status").0, 200);
}

#[test]
fn huge_requests_are_cut_off() {
    let service = start(ServiceLimits::default());
    // Headers without an end.
    let mut stream = connect(&service);
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n");
    let line = format!("X-Long: {}\r\n", "y".repeat(1 << 10));
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(line.as_bytes()).is_ok() {
        sent += line.len();
    }
    assert!(sent < 64 << 20, "{sent} bytes of headers were taken");
    // A body, which no question takes: it is not read.
    let mut stream = connect(&service);
    let head = "POST /top HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let block = vec![0; 1 << 20];
    let mut sent = 0;
    while sent < 256 << 20 && stream.write_all(&block).is_ok() {
        sent += block.len();
    }
    assert!(sent < 256 << 20, "{sent} bytes of a body were taken");
    assert_eq!(get(&service, "/status").0, 200);
}

/// However many connections stay silent, the next one gets its answer once their time is up.
#[test]
fn a_thousand_silent_connections_keep_nobody_out() {
    let service = start(ServiceLimits {
        connections: 64,
        ..hurried()
    });
    let mut silent = Vec::new();
    for _ in 0..1000 {
        // The system's queue may be full: connections refused there are not under test.
        let address: SocketAddr = service.address();
        match TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            Ok(stream) => silent.push(stream),
            Err(_) => break,
        }
    }
    assert!(silent.len() > 64);
    drop(silent.split_off(silent.len().min(400)));
    assert_eq!(get(&service, "/status").0, 200);
}

/// Regression: a client without the token kept its connection after a 401; enough of them kept out all clients that
/// have the token. Now a refused connection ends, and one without an admissible request makes room for others.
#[test]
fn who_has_no_token_keeps_nobody_out_who_has() {
    let options = ServiceOptions {
        token: Some(Token::new("0123456789abcdef").unwrap()),
        limits: ServiceLimits {
            connections: 8,
            ..ServiceLimits::default()
        },
        ..local()
    };
    let service = Service::start(options, Arc::new(Fixed)).unwrap();
    let head = "GET /status HTTP/1.1\r\nHost: x\r\n";
    let refused = exchange(&service, &format!("{head}\r\n"));
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let known = || {
        let mut stream = connect(&service);
        let request = format!("{head}Authorization: Bearer 0123456789abcdef\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        stream
    };
    let first = known();
    let silent: Vec<TcpStream> = (0..8).map(|_| connect(&service)).collect();
    let started = Instant::now();
    let second = known();
    let waited = started.elapsed();
    assert!(
        waited < ServiceLimits::default().header_time / 2,
        "{waited:?}"
    );
    // A known connection stays.
    for mut stream in [first, second] {
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(String::from_utf8(answer).unwrap().contains(" 401 "));
    }
    drop(silent);
}

/// Requests answers and takes none of them: the service must not keep what it cannot send.
#[test]
fn answers_that_nobody_takes_are_dropped() {
    let service = start(hurried());
    let mut stream = connect(&service);
    let request = b"GET /top HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut sent = 0usize;
    while sent < 64 << 20 && stream.write_all(request).is_ok() {
        sent += request.len();
    }
    assert!(
        sent < 64 << 20,
        "{sent} bytes of requests were taken, and no answer"
    );
    assert_eq!(get(&service, "/status").0, 200);
}

/// Backend that takes its time, and counts concurrent calls.
#[derive(Default)]
struct Slow {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Slow {
    fn slowly<T: Default>(&self) -> Result<T> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        self.now.fetch_sub(1, Ordering::SeqCst);
        Ok(T::default())
    }
}

impl Backend for Slow {
    fn status(&self) -> Result<Vec<u8>> {
        self.slowly()
    }
    fn metrics(&self) -> Result<String> {
        self.slowly()
    }
    fn questions(&self) -> &'static [&'static str] {
        &["top", "movers", "hosts"]
    }
    fn answer(&self, question: &str, _: &[(String, String)]) -> Result<Vec<u8>> {
        match question {
            "top" => self.slowly(),
            "hosts" => Err(Problem::Failed("the disk is broken".into())),
            _ => panic!("a backend that fails"),
        }
    }
    /// Always in progress.
    fn next(&self, _: &NextQuery) -> Result<Option<Arc<NextList>>> {
        Ok(None)
    }
    fn canonical(&self, url: &str) -> String {
        url.into()
    }
    fn log(&self, _: &str) {}
}

#[test]
fn work_is_bounded_and_excess_requests_are_refused() {
    let backend = Arc::new(Slow::default());
    let options = ServiceOptions {
        limits: ServiceLimits {
            workers: 2,
            waiting: 4,
            ..ServiceLimits::default()
        },
        ..local()
    };
    let service = Service::start(options, backend.clone()).unwrap();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| get(&service, "/top").0))
            .collect();
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect()
    });
    assert!(
        statuses.iter().all(|status| [200, 503].contains(status)),
        "{statuses:?}"
    );
    assert!(
        statuses.iter().filter(|&&status| status == 200).count() >= 6,
        "{statuses:?}"
    );
    assert!(backend.most.load(Ordering::SeqCst) <= 2);
    // A failure and even a panic is an answer, and does not keep a place.
    for _ in 0..8 {
        assert_eq!(get(&service, "/hosts").0, 500);
        assert_eq!(get(&service, "/movers").0, 500);
    }
    assert_eq!(get(&service, "/top").0, 200);
}

/// Regression: while others waited for a connection, one whose client took nothing of an answer was not closed.
#[cfg(feature = "frontier")]
#[test]
fn who_takes_nothing_makes_room_for_others() {
    let service = start(ServiceLimits {
        connections: 1,
        write_time: Duration::from_secs(5),
        ..ServiceLimits::default()
    });
    let mut stream = connect(&service);
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // Settings: a window of 0 bytes for each answer.
    request.extend(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00");
    request.extend(b"\x00\x00\x13\x01\x05\x00\x00\x00\x01\x82\x86\x04\x04/top\x01\x09localhost");
    stream.write_all(&request).unwrap();
    assert_eq!(get(&service, "/status").0, 200);
}

/// Bytes that are not HTTP, and HTTP/2 frames that break its rules.
#[test]
fn what_is_no_http_is_dropped() {
    let service = start(hurried());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let framed = |frame: &[u8]| [&preface, frame].concat();
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS greeting goes here".to_vec(),
        vec![0; 1 << 16],
        vec![0xff; 1 << 16],
        // A frame of 16 MB; settings on a stream; data on a stream that is not open; headers that do not decode.
        framed(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"),
        framed(b"\x00\x00\x00\x04\x00\x00\x00\x00\x01"),
        framed(b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x"),
        framed(b"\x00\x00\x04\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff"),
    ] {
        let mut stream = connect(&service);
        let _ = stream.write_all(&bytes);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert_eq!(get(&service, "/status").0, 200);
}

#[test]
fn a_service_that_is_stopped_frees_its_address() {
    let service = start(ServiceLimits::default());
    let address = service.address();
    let _open = connect(&service);
    drop(service);
    assert!(TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err());
}
