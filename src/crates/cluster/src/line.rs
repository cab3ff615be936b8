//! Encrypted connection to another process that is never silent for long, and never returns an error to timely.
//!
//! ```text
//! frame's content: kind u8 | bytes
//! kind 0: data   1: "I am there"   2: "that was all"   3: "I end, because ..."
//! ```
//!
//! Timely's threads read and write the line as a stream of bytes. They would panic on an error, so they never get one:
//! the line reports the failure to the thread that waits for a round of the exchange, and blocks the calling thread
//! forever. The process is about to end then.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::thread;
use std::time::Duration;

use cashrank_base::threads::lock;

use crate::exchange::Event;
use crate::failed;
use crate::noise::{FRAME_MAX, Keys, set_silence};

const DATA: u8 = 0;
const THERE: u8 = 1;
const DONE: u8 = 2;
const ENDS: u8 = 3;
/// Number of signs of life during the time after which silence is an error.
const TIMES: u32 = 6;
const WHY_MAX: usize = 1000;

struct LinkState {
    name: String,
    socket: TcpStream,
    keys: Keys,
    writing: Mutex<WriteHalf>,
    reading: Mutex<ReadHalf>,
    events: Sender<Event>,
    silence: Duration,
    /// True if this end hung up: failures are no longer reported.
    is_abandoned: AtomicBool,
}

struct WriteHalf {
    nonce: u64,
    is_done: bool,
}

#[derive(Default)]
struct ReadHalf {
    nonce: u64,
    /// Received data that was not consumed yet.
    plain: VecDeque<u8>,
    is_done: bool,
}

#[derive(Clone)]
pub(crate) struct PeerLink(Arc<LinkState>);

impl PeerLink {
    /// Creates a line over a socket whose ends have greeted each other, with frame number 0 sent both ways. `silences` are
    /// the times after which this end considers the other lost, and vice versa.
    pub fn new(
        name: String,
        socket: TcpStream,
        keys: Keys,
        silences: (Duration, Duration),
        events: Sender<Event>,
    ) -> io::Result<PeerLink> {
        let (silence, others) = silences;
        set_silence(&socket, silence)?;
        let shared = Arc::new(LinkState {
            name,
            socket,
            keys,
            writing: Mutex::new(WriteHalf {
                nonce: 1,
                is_done: false,
            }),
            reading: Mutex::new(ReadHalf {
                nonce: 1,
                ..ReadHalf::default()
            }),
            events,
            silence,
            is_abandoned: AtomicBool::new(false),
        });
        let line = Arc::downgrade(&shared);
        let every = (others / TIMES).max(Duration::from_millis(1));
        thread::Builder::new()
            .name("there".into())
            .spawn(move || while say_there(&line, every) {})?;
        Ok(PeerLink(shared))
    }

    pub fn abandon(&self, why: &str) {
        let line = &self.0;
        if !line.is_abandoned.swap(true, Ordering::Relaxed) {
            // If another thread is writing, there is no room for the announcement.
            if let Ok(mut writing) = line.writing.try_lock() {
                let why = &why.as_bytes()[..why.len().min(WHY_MAX)];
                let _ = line.write(&mut writing, ENDS, why);
            }
        }
        let _ = line.socket.shutdown(Shutdown::Both);
    }
}

fn say_there(line: &Weak<LinkState>, every: Duration) -> bool {
    thread::sleep(every);
    let Some(line) = line.upgrade() else {
        return false;
    };
    let said = match line.writing.try_lock() {
        Ok(writing) if writing.is_done => return false,
        Ok(mut writing) => line.write(&mut writing, THERE, &[]),
        // The frame being written is a sign of life, too.
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Poisoned(_)) => return false,
    };
    match said {
        Ok(()) => !line.is_abandoned.load(Ordering::Relaxed),
        Err(error) => {
            line.report(&error);
            false
        }
    }
}

impl LinkState {
    fn write(&self, writing: &mut WriteHalf, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let plain = [&[kind][..], bytes].concat();
        let frame = self.keys.seal(writing.nonce, &plain)?;
        writing.nonce += 1;
        let mut socket = &self.socket;
        socket.write_all(&frame)
    }

    fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        let mut reading = lock(&self.reading);
        let (reading, mut socket) = (&mut *reading, &self.socket);
        while reading.plain.is_empty() {
            if reading.is_done {
                return Ok(0);
            }
            let mut len = [0; 2];
            socket.read_exact(&mut len)?;
            let mut frame = vec![0; u16::from_be_bytes(len).into()];
            socket.read_exact(&mut frame)?;
            let mut plain = VecDeque::from(self.keys.open(reading.nonce, &frame)?);
            reading.nonce += 1;
            match plain.pop_front() {
                Some(DATA) => reading.plain = plain,
                Some(THERE) => {}
                Some(DONE) => reading.is_done = true,
                Some(ENDS) => {
                    let why = String::from_utf8_lossy(plain.make_contiguous());
                    return Err(io::Error::other(format!("it ended: {why}")));
                }
                _ => return Err(io::Error::other("it said something unknown")),
            }
        }
        reading.plain.read(out)
    }

    fn report(&self, error: &io::Error) {
        if self.is_abandoned.load(Ordering::Relaxed) {
            return;
        }
        let why = match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                format!("it was silent for {:?}", self.silence)
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => "it ended, or the connection to it".into(),
            _ => error.to_string(),
        };
        let lost = failed(format!("{} is lost: {why}", self.name));
        // Without a receiver the failure is known already.
        let _ = self.events.send(Event::Failed(lost));
    }

    /// Reports the failure and blocks the thread forever.
    fn stop(&self, error: &io::Error) -> ! {
        self.report(error);
        loop {
            thread::park();
        }
    }
}

impl Read for PeerLink {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out) {
            Ok(read) => Ok(read),
            Err(error) => self.0.stop(&error),
        }
    }
}

impl Write for PeerLink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(FRAME_MAX - 1);
        let written = self
            .0
            .write(&mut lock(&self.0.writing), DATA, &bytes[..len]);
        match written {
            Ok(()) => Ok(len),
            Err(error) => self.0.stop(&error),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl timely::communication::allocator::zero_copy::stream::Stream for PeerLink {
    fn try_clone(&self) -> io::Result<PeerLink> {
        Ok(self.clone())
    }

    fn set_nonblocking(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// Sends the end of the data; called after everything else that this process sends.
    fn shutdown(&self, _: Shutdown) -> io::Result<()> {
        let mut writing = lock(&self.0.writing);
        writing.is_done = true;
        let written = self.0.write(&mut writing, DONE, &[]);
        match written {
            Ok(()) => Ok(()),
            Err(error) => self.0.stop(&error),
        }
    }
}
