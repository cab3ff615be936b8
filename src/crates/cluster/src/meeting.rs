//! Meeting of processes: each connects to those before it, and waits for those after it. Addresses and a secret, by which
//! they find each other, are settings, as are values that must be equal in all.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use blake2::{Blake2s256, Digest};
use cashrank_base::{Error, Result};

use crate::exchange::Event;
use crate::line::PeerLink;
use crate::noise::{Greeting, Keys, Refused, answer, greet};
use crate::{failed, no_thread, reason};

const PROCESSES_MAX: usize = 256;
const LEN_MIN: usize = 16;
const LEN_MAX: u64 = 4096;

#[derive(Clone)]
pub struct Joining {
    /// Address of each process, `HOST:PORT`, at which it listens while others connect.
    pub addresses: Vec<String>,
    pub process: usize,
    pub secret: Secret,
    /// Version of the program. It must be equal in all processes, and so must `shards` and `digest`.
    pub program: String,
    pub shards: u64,
    pub digest: u128,
    pub wait: Duration,
    /// Silence after which a process is considered lost. The others send a sign of life six times in this time.
    pub silence: Duration,
    /// Callback for a line about each stranger.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Joining {
    /// Returns settings with default times, for no shards, that drop messages about strangers.
    pub fn new(addresses: Vec<String>, process: usize, secret: Secret) -> Joining {
        Joining {
            addresses,
            process,
            secret,
            program: env!("CARGO_PKG_VERSION").into(),
            shards: 0,
            digest: 0,
            wait: Duration::from_secs(60),
            silence: Duration::from_secs(30),
            tell: Arc::new(|_| {}),
        }
    }

    pub(crate) fn name(&self, process: usize) -> String {
        match self.addresses.get(process) {
            Some(address) => format!("process {process} ({address})"),
            None => format!("process {process}"),
        }
    }
}

/// Parses a list of addresses: one per line, `HOST:PORT`; process 0 is the first. Empty lines, and lines that begin
/// with `#`, are ignored.
pub fn addresses(text: &str, file: &Path) -> Result<Vec<String>> {
    let refused = |what: String| Err(Error::Usage(format!("{}: {what}", file.display())));
    let mut all: Vec<String> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !is_address(line) {
            let number = number + 1;
            return refused(format!("line {number} is no HOST:PORT: {line:?}"));
        }
        if all.iter().any(|address| address == line) {
            return refused(format!("{line} is there twice"));
        }
        all.push(line.into());
    }
    match all.len() {
        0 => refused("there is no address".into()),
        len if len > PROCESSES_MAX => refused(format!(
            "{len} addresses: there can be {PROCESSES_MAX} processes"
        )),
        _ => Ok(all),
    }
}

fn is_address(line: &str) -> bool {
    line.rsplit_once(':').is_some_and(|(host, port)| {
        let is_bare = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
        !host.is_empty() && is_bare && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// Shared secret, which is never displayed.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Creates a secret from bytes that cannot be guessed. Fails with [`Error::Usage`] if there are fewer than 16.
    pub fn of(bytes: &[u8]) -> Result<Secret> {
        if bytes.len() < LEN_MIN {
            return Err(Error::Usage(format!(
                "a secret has {LEN_MIN} bytes at least, and this one {}",
                bytes.len()
            )));
        }
        let mut hash = Blake2s256::new();
        hash.update(b"cashrank: secret of processes\0");
        hash.update(bytes);
        Ok(Secret(hash.finalize().into()))
    }

    /// Reads a secret from a file, without surrounding white space. Fails with [`Error::Usage`] if everybody may read
    /// the file, or it is too short or too long.
    pub fn read(path: &Path) -> Result<Secret> {
        let refused = |what: &str| Err(Error::Usage(format!("{}: {what}", path.display())));
        let about = fs::metadata(path).map_err(Error::io(path, "read"))?;
        if about.len() > LEN_MAX {
            return refused(&format!("a secret has {LEN_MAX} bytes at most"));
        }
        if about.permissions().mode() & 0o007 != 0 {
            return refused("everybody may read this secret: `chmod o= FILE`, and use another one");
        }
        let bytes = fs::read(path).map_err(Error::io(path, "read"))?;
        Secret::of(bytes.trim_ascii()).or_else(|error| refused(&error.to_string()))
    }

    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.0
    }
}

const GREETING: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(50);
/// Maximum number of connections being answered; further ones wait.
const ANSWERS_MAX: usize = 64;
const NAMED_MAX: usize = 100;

/// Lines to all other processes, by number; `None` for this one.
pub(crate) struct PeerLinks {
    pub lines: Vec<Option<PeerLink>>,
    pub events: (Sender<Event>, Receiver<Event>),
}

enum Arrival {
    Met(Greeting, TcpStream, Keys),
    /// A process could not be reached so far, and why.
    NotYet(usize, String),
    Failed(Error),
}

struct Meeting {
    joining: Joining,
    end: Instant,
    is_over: AtomicBool,
    answers: AtomicUsize,
    strangers: AtomicUsize,
    arrivals: Sender<Arrival>,
}

pub(crate) fn meet(joining: &Joining, is_stopped: &dyn Fn() -> bool) -> Result<PeerLinks> {
    let processes = joining.addresses.len();
    if joining.process >= processes || processes > PROCESSES_MAX {
        return Err(Error::Usage(format!(
            "`index` {}: there are {processes} processes, which count from 0, and there can be {PROCESSES_MAX}",
            joining.process
        )));
    }
    let (arrivals, arrived) = channel();
    let now = Instant::now();
    let meeting = Arc::new(Meeting {
        end: now
            .checked_add(joining.wait)
            .unwrap_or(now + Duration::from_secs(1 << 30)),
        joining: joining.clone(),
        is_over: AtomicBool::new(false),
        answers: AtomicUsize::new(0),
        strangers: AtomicUsize::new(0),
        arrivals,
    });
    let mut threads = Vec::new();
    if joining.process + 1 < processes {
        let address = &joining.addresses[joining.process];
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| cannot_wait(address, &error))?;
        threads.push(begin(&meeting, move |meeting| listen(meeting, listener))?);
    }
    for process in 0..joining.process {
        threads.push(begin(&meeting, move |meeting| connect(meeting, process))?);
    }
    let mut met = PeerLinks {
        lines: vec![None; processes],
        events: channel(),
    };
    let gathered = gather(&meeting, &arrived, &mut met, is_stopped);
    meeting.is_over.store(true, Ordering::Relaxed);
    if let Err(error) = &gathered {
        let why = reason(error);
        met.lines
            .iter()
            .flatten()
            .for_each(|line| line.abandon(&why));
    }
    // The port is closed when these have ended.
    for thread in threads {
        let _ = thread.join();
    }
    gathered.map(|()| met)
}

fn begin(
    meeting: &Arc<Meeting>,
    work: impl FnOnce(&Arc<Meeting>) + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    let meeting = meeting.clone();
    thread::Builder::new()
        .name("meeting".into())
        .spawn(move || work(&meeting))
        .map_err(no_thread)
}

/// Waits until all are connected, and adds the connections to `met`.
fn gather(
    meeting: &Meeting,
    arrived: &Receiver<Arrival>,
    met: &mut PeerLinks,
    is_stopped: &dyn Fn() -> bool,
) -> Result<()> {
    let joining = &meeting.joining;
    let mut why = vec!["it did not come".to_owned(); met.lines.len()];
    let others = met.lines.len() - 1;
    while met.lines.iter().flatten().count() < others {
        let left = meeting.end.saturating_duration_since(Instant::now());
        if let Ok(Event::Failed(error)) = met.events.1.try_recv() {
            return Err(error);
        }
        if is_stopped() {
            return Err(failed("it was stopped"));
        }
        match arrived.recv_timeout(left.min(AGAIN)) {
            Err(_) if Instant::now() < meeting.end => {}
            Ok(Arrival::Met(other, socket, keys)) => {
                let process = usize::from(other.from);
                let name = joining.name(process);
                if met.lines[process].is_some() {
                    (joining.tell)(&format!("refused a second {name}"));
                    continue;
                }
                let events = met.events.0.clone();
                let silences = (joining.silence, other.silence);
                let line = PeerLink::new(name.clone(), socket, keys, silences, events);
                let line = line.map_err(|error| failed(format!("{name}: {error}")))?;
                met.lines[process] = Some(line);
            }
            Ok(Arrival::NotYet(process, reason)) => why[process] = reason,
            Ok(Arrival::Failed(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let lines = met.lines.iter().enumerate();
                let missing =
                    lines.filter(|(process, line)| line.is_none() && *process != joining.process);
                let missing = missing
                    .map(|(process, _)| format!("{}: {}", joining.name(process), why[process]));
                let missing: Vec<String> = missing.collect();
                let waited = format!("after {:?} not all processes are there: ", joining.wait);
                return Err(failed(waited + &missing.join("; ")));
            }
        }
    }
    Ok(())
}

impl Meeting {
    fn own(&self, to: u16) -> Greeting {
        Greeting {
            program: self.joining.program.clone(),
            shards: self.joining.shards,
            digest: self.joining.digest,
            silence: self.joining.silence,
            processes: self.joining.addresses.len() as u16,
            from: self.joining.process as u16,
            to,
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || Instant::now() >= self.end
    }

    fn say(&self, arrival: Arrival) {
        // A missing receiver means that nobody waits any more.
        let _ = self.arrivals.send(arrival);
    }

    fn name_stranger(&self, from: SocketAddr, what: &str) {
        match self.strangers.fetch_add(1, Ordering::Relaxed) {
            before if before < NAMED_MAX => {
                (self.joining.tell)(&format!("refused a connection from {from}: {what}"));
            }
            NAMED_MAX => (self.joining.tell)("more strangers connect, and are not reported"),
            _ => {}
        }
    }

    fn greeting_end(&self) -> Instant {
        self.end.min(Instant::now() + GREETING)
    }
}

fn cannot_wait(address: &str, error: &io::Error) -> Error {
    failed(format!("{address}: cannot wait for others there: {error}"))
}

fn listen(meeting: &Arc<Meeting>, listener: TcpListener) {
    while !meeting.is_over() {
        if meeting.answers.load(Ordering::Relaxed) >= ANSWERS_MAX {
            thread::sleep(AGAIN);
            continue;
        }
        match accept(&listener) {
            Ok(None) => thread::sleep(AGAIN),
            Ok(Some((socket, from))) => {
                meeting.answers.fetch_add(1, Ordering::Relaxed);
                let begun = begin(meeting, move |meeting| {
                    answer_one(meeting, socket, from);
                    meeting.answers.fetch_sub(1, Ordering::Relaxed);
                });
                if let Err(error) = begun {
                    return meeting.say(Arrival::Failed(error));
                }
            }
            Err(error) => {
                let address = &meeting.joining.addresses[meeting.joining.process];
                return meeting.say(Arrival::Failed(cannot_wait(address, &error)));
            }
        }
    }
}

/// Accepts a connection, if one waits, whose other end is not gone already.
fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    match listener.accept() {
        Ok((socket, from)) => {
            let prepared = socket
                .set_nonblocking(false)
                .and_then(|()| socket.set_nodelay(true));
            Ok(prepared.ok().map(|()| (socket, from)))
        }
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted => Ok(None),
            _ => Err(error),
        },
    }
}

fn answer_one(meeting: &Meeting, socket: TcpStream, from: SocketAddr) {
    let joining = &meeting.joining;
    let own = |to| meeting.own(to);
    let stranger = match answer(&socket, &joining.secret, own, meeting.greeting_end()) {
        Ok((other, keys)) => {
            let process = usize::from(other.from);
            if process > joining.process && process < joining.addresses.len() {
                return meeting.say(Arrival::Met(other, socket, keys));
            }
            format!("it calls itself process {process}")
        }
        Err((None, Refused::Stranger(what))) => what,
        Err((Some(process), Refused::Stranger(what))) => {
            format!("it calls itself process {process}, but {what}")
        }
        Err((process, Refused::Differs(what))) => {
            let name = process.map(|process| joining.name(process.into()));
            format!("{} {what}", name.as_deref().unwrap_or("the process"))
        }
    };
    meeting.name_stranger(from, &stranger);
}

fn connect(meeting: &Meeting, process: usize) {
    let joining = &meeting.joining;
    while !meeting.is_over() {
        let end = meeting.greeting_end();
        let met = open(&joining.addresses[process], end)
            .map_err(|error| Refused::Stranger(format!("cannot connect: {error}")))
            .and_then(|socket| {
                let own = meeting.own(process as u16);
                greet(&socket, &joining.secret, &own, end).map(|met| (socket, met))
            });
        match met {
            Ok((socket, (other, keys))) => {
                return meeting.say(Arrival::Met(other, socket, keys));
            }
            Err(Refused::Differs(what)) => {
                let error = Error::Usage(format!("{} {what}", joining.name(process)));
                return meeting.say(Arrival::Failed(error));
            }
            Err(Refused::Stranger(what)) => {
                let what = match what.as_str() {
                    "it hung up" => "it hung up: does it have the same secret?".into(),
                    _ => what,
                };
                meeting.say(Arrival::NotYet(process, what));
                thread::sleep(AGAIN);
            }
        }
    }
}

fn open(address: &str, end: Instant) -> io::Result<TcpStream> {
    let left = end.saturating_duration_since(Instant::now());
    let mut last = io::Error::other("it has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_addresses() {
        let text = "# three machines\n10.0.0.1:7400\n\n  b.example:7400 \n[::1]:7\n";
        let all = addresses(text, Path::new("hosts")).unwrap();
        assert_eq!(all, ["10.0.0.1:7400", "b.example:7400", "[::1]:7"]);
    }

    #[test]
    fn other_lines_are_refused() {
        let of = |text: &str| addresses(text, Path::new("hosts")).unwrap_err().to_string();
        for text in [
            "a", "a:", ":7", "a:0", "a:70000", "::1:7", "a:7 b", "/run/a",
        ] {
            assert!(of(text).starts_with("hosts: line 1 "), "{text}");
        }
        assert_eq!(of("#\n"), "hosts: there is no address");
        assert_eq!(of("a:7\na:7"), "hosts: a:7 is there twice");
        let many: String = (1..=257).map(|port| format!("a:{port}\n")).collect();
        assert!(of(&many).contains("257 addresses"));
    }

    #[test]
    fn a_file_has_a_secret() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secret");
        fs::write(&path, "123456789 1234567").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let read = || Secret::read(&path);
        let one = read().unwrap();
        assert_eq!(one.key(), read().unwrap().key());
        let text = fs::read(&path).unwrap();
        fs::write(&path, [b" ", text.as_slice(), b"\n"].concat()).unwrap();
        assert_eq!(one.key(), read().unwrap().key());
        fs::write(&path, &text[1..]).unwrap();
        assert_ne!(one.key(), read().unwrap().key());
        let refused = || read().err().unwrap().to_string();
        fs::write(&path, "123456789 12345").unwrap();
        assert!(refused().contains("16 bytes at least, and this one 15"));
        fs::write(&path, "1".repeat(4097)).unwrap();
        assert!(refused().contains("4096 bytes at most"));
        fs::write(&path, "1".repeat(16)).unwrap();
        read().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused().contains("everybody may read"));
    }
}
