//! Meeting of processes: each connects to those before it, and waits for those after it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::exchange::Event;
use crate::greeting::Greeting;
use crate::line::PeerLink;
use crate::noise::{Keys, Refused, answer, greet};
use crate::socket::{self, Listener, Socket};
use crate::{ClusterError, Joining, PROCESSES_MAX};

const GREETING: Duration = Duration::from_secs(5);
/// Interval between attempts to connect, and between checks for connections.
const AGAIN: Duration = Duration::from_millis(50);
/// Maximum number of connections being answered; further ones wait.
const ANSWERS_MAX: usize = 64;
/// Maximum number of strangers that are reported.
const NAMED_MAX: usize = 100;

/// Lines to all other processes, by number; `None` for this one.
pub(crate) struct PeerLinks {
    pub lines: Vec<Option<PeerLink>>,
    pub events: (Sender<Event>, Receiver<Event>),
}

/// Message of a worker thread to the waiting thread.
enum Arrival {
    /// A process is connected, with its greeting.
    Met(Greeting, Socket, Keys),
    /// A process could not be reached so far, and why.
    NotYet(usize, String),
    /// Waiting is pointless.
    Failed(ClusterError),
}

/// Shared state of the threads of a meeting.
struct Meeting {
    joining: Joining,
    end: Instant,
    is_over: AtomicBool,
    answers: AtomicUsize,
    strangers: AtomicUsize,
    arrivals: Mutex<Sender<Arrival>>,
}

pub(crate) fn meet(
    joining: &Joining,
    hopeless: &dyn Fn() -> Option<String>,
) -> Result<PeerLinks, ClusterError> {
    let processes = joining.addresses.len();
    if joining.process >= processes || processes > PROCESSES_MAX {
        return Err(ClusterError::Usage(format!(
            "there is no process {} of {processes}: they count from 0, and there can be {PROCESSES_MAX}",
            joining.process
        )));
    }
    // Until all are connected, reserves as many threads as the exchange takes: one worker, and two for each of the
    // others.
    let _reserved = Reserved::threads(2 * processes - 1)?;
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
        arrivals: Mutex::new(arrivals),
    });
    let mut threads = Vec::new();
    if joining.process + 1 < processes {
        let address = &joining.addresses[joining.process];
        let listener = Listener::open(address).map_err(|error| {
            ClusterError::Io(format!("{address}: cannot wait for others there"), error)
        })?;
        threads.push(begin(&meeting, move |meeting| listen(meeting, listener))?);
    }
    for process in 0..joining.process {
        threads.push(begin(&meeting, move |meeting| connect(meeting, process))?);
    }
    let met = gather(&meeting, &arrived, &mut threads, hopeless);
    meeting.is_over.store(true, Ordering::Relaxed);
    // The port is closed when these have ended.
    for thread in threads {
        let _ = thread.join();
    }
    met
}

fn begin(
    meeting: &Arc<Meeting>,
    work: impl FnOnce(&Arc<Meeting>) + Send + 'static,
) -> Result<thread::JoinHandle<()>, ClusterError> {
    let meeting = meeting.clone();
    thread::Builder::new()
        .name("meeting".into())
        .spawn(move || work(&meeting))
        .map_err(ClusterError::no_thread)
}

/// Waits until all are connected. `threads` are those that look for them.
fn gather(
    meeting: &Arc<Meeting>,
    arrived: &Receiver<Arrival>,
    threads: &mut Vec<thread::JoinHandle<()>>,
    hopeless: &dyn Fn() -> Option<String>,
) -> Result<PeerLinks, ClusterError> {
    let joining = &meeting.joining;
    let mut met = PeerLinks {
        lines: vec![None; joining.addresses.len()],
        events: channel(),
    };
    let mut why = vec!["it did not come".to_owned(); met.lines.len()];
    let others = met.lines.len() - 1;
    let mut count = 0;
    while met.lines.iter().flatten().count() < others {
        let left = meeting.end.saturating_duration_since(Instant::now());
        // A process that was connected is lost, and may come again.
        while let Ok(Event::Failed(number, error)) = met.events.1.try_recv() {
            let is_it =
                |line: &Option<PeerLink>| line.as_ref().is_some_and(|it| it.number() == number);
            if let Some(process) = met.lines.iter().position(is_it) {
                (joining.tell)(&error.to_string());
                met.lines[process] = None;
                why[process] = error.to_string();
                if process < joining.process {
                    match begin(meeting, move |meeting| connect(meeting, process)) {
                        Ok(thread) => threads.push(thread),
                        Err(error) => return Err(abandoned(&met, error)),
                    }
                }
            }
        }
        if let Some(why) = hopeless() {
            return Err(abandoned(&met, ClusterError::Missing(why)));
        }
        match arrived.recv_timeout(left.min(AGAIN)) {
            Err(_) if Instant::now() < meeting.end => {}
            Ok(Arrival::Met(other, socket, keys)) => {
                let process = usize::from(other.from);
                let name = joining.name(process);
                let events = met.events.0.clone();
                let number = count;
                count += 1;
                let of = (name.clone(), number);
                let silences = (joining.silence, other.silence);
                let line = PeerLink::new(of, socket, keys, silences, events);
                let line = line.map_err(|error| ClusterError::Io(name.clone(), error))?;
                // The process was restarted.
                if let Some(before) = met.lines[process].replace(line) {
                    (joining.tell)(&format!(
                        "{name} came again: the connection before is closed"
                    ));
                    before.abandon("another process came with the same number");
                }
            }
            Ok(Arrival::NotYet(process, reason)) => why[process] = reason,
            Ok(Arrival::Failed(error)) => return Err(abandoned(&met, error)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let lines = met.lines.iter().enumerate();
                let missing =
                    lines.filter(|(process, line)| line.is_none() && *process != joining.process);
                let missing = missing
                    .map(|(process, _)| format!("{}: {}", joining.name(process), why[process]));
                let missing: Vec<String> = missing.collect();
                let waited = format!("after {:?} not all processes are there: ", joining.wait);
                return Err(abandoned(
                    &met,
                    ClusterError::Missing(waited + &missing.join("; ")),
                ));
            }
        }
    }
    Ok(met)
}

fn abandoned(met: &PeerLinks, error: ClusterError) -> ClusterError {
    met.lines
        .iter()
        .flatten()
        .for_each(|line| line.abandon(&error.to_string()));
    error
}

impl Meeting {
    fn own(&self, to: u16) -> Greeting {
        Greeting {
            plan: self.joining.plan.clone(),
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
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        // A missing receiver means that nobody waits any more.
        let _ = arrivals.send(arrival);
    }

    fn name_stranger(&self, from: &str, what: &str) {
        match self.strangers.fetch_add(1, Ordering::Relaxed) {
            before if before < NAMED_MAX => {
                (self.joining.tell)(&format!("refused a connection from {from}: {what}"));
            }
            NAMED_MAX => (self.joining.tell)("more strangers connect: no more of them is said"),
            _ => {}
        }
    }

    fn greeting_end(&self) -> Instant {
        self.end.min(Instant::now() + GREETING)
    }
}

/// Accepts connections of the processes after this one.
fn listen(meeting: &Arc<Meeting>, listener: Listener) {
    while !meeting.is_over() {
        if meeting.answers.load(Ordering::Relaxed) >= ANSWERS_MAX {
            thread::sleep(AGAIN);
            continue;
        }
        match listener.accept() {
            Ok(None) => thread::sleep(AGAIN),
            Ok(Some((socket, from))) => {
                meeting.answers.fetch_add(1, Ordering::Relaxed);
                let begun = begin(meeting, move |meeting| {
                    answer_one(meeting, socket, &from);
                    meeting.answers.fetch_sub(1, Ordering::Relaxed);
                });
                if let Err(error) = begun {
                    return meeting.say(Arrival::Failed(error));
                }
            }
            Err(error) => {
                let address = &meeting.joining.addresses[meeting.joining.process];
                let error =
                    ClusterError::Io(format!("{address}: cannot wait for others there"), error);
                return meeting.say(Arrival::Failed(error));
            }
        }
    }
}

fn answer_one(meeting: &Meeting, socket: Socket, from: &str) {
    let own = |to| meeting.own(to);
    let end = meeting.greeting_end();
    match answer(&socket, &meeting.joining.secret, own, end) {
        Ok((other, keys)) => {
            let process = usize::from(other.from);
            if process > meeting.joining.process && process < meeting.joining.addresses.len() {
                meeting.say(Arrival::Met(other, socket, keys));
            } else {
                meeting.name_stranger(from, &format!("it calls itself process {process}"));
            }
        }
        Err((None, Refused::Stranger(what))) => meeting.name_stranger(from, &what),
        Err((Some(process), Refused::Stranger(what))) => {
            meeting.name_stranger(
                from,
                &format!("it calls itself process {process}, but {what}"),
            );
        }
        Err((process, Refused::Differs(what))) => {
            let name = match process {
                Some(process) => meeting.joining.name(process.into()),
                None => "the process".into(),
            };
            meeting.name_stranger(from, &format!("{name} {what}"));
        }
    }
}

/// Connects to a process before this one, with retries.
fn connect(meeting: &Meeting, process: usize) {
    let joining = &meeting.joining;
    while !meeting.is_over() {
        let end = meeting.greeting_end();
        let left = end.saturating_duration_since(Instant::now());
        let met = socket::connect(&joining.addresses[process], left)
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
                let error = ClusterError::Differs(format!("{} {what}", joining.name(process)));
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

/// Threads that wait until this is dropped. Timely starts its own without checking, and panics if it cannot: so as many
/// wait while processes meet, and end just before. A limit then counts the threads of all processes of the user at once.
struct Reserved(Vec<(Sender<()>, thread::JoinHandle<()>)>);

impl Reserved {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// Fails if one cannot be started.
    fn threads(count: usize) -> Result<Reserved, ClusterError> {
        let mut reserved = Reserved(Vec::new());
        for _ in 0..count {
            let (held, end): (Sender<()>, Receiver<()>) = channel();
            let started = thread::Builder::new()
                .name("reserved".into())
                .spawn(move || {
                    let _ = end.recv();
                });
            reserved
                .0
                .push((held, started.map_err(ClusterError::no_thread)?));
        }
        Ok(reserved)
    }
}

impl Drop for Reserved {
    /// Waits until the threads have ended.
    fn drop(&mut self) {
        for (held, thread) in self.0.drain(..) {
            drop(held);
            let _ = thread.join();
        }
    }
}
