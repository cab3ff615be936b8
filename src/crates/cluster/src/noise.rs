//! Handshake in which two processes prove to each other that they know the secret, and encryption of all messages.
//!
//! ```text
//! the one that connects -> [greeting]    Noise NNpsk0: psk, e
//!                       <- [greeting]    e, ee
//!                       -> [confirm]     the first frame under the keys of both
//!                       <- [confirm]
//! frame: length u16 big-endian | what Noise made of it
//! greeting: one JSON object
//! ```
//!
//! The first message may be replayed; the third can only come from the sender that just created the first.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, StatelessTransportState};

use crate::Secret;

const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"cashrank-cluster 1";
/// Number of bytes that a frame adds to its contents.
const SEAL: usize = 16;
pub(crate) const FRAME_MAX: usize = u16::MAX as usize - SEAL;
const GREETING_MAX: usize = 512;

pub(crate) struct Keys(StatelessTransportState);

impl Keys {
    pub fn seal(&self, nonce: u64, plain: &[u8]) -> io::Result<Vec<u8>> {
        let len = u16::try_from(plain.len() + SEAL).map_err(io::Error::other)?;
        let mut frame = len.to_be_bytes().to_vec();
        frame.resize(2 + usize::from(len), 0);
        let sealed = self.0.write_message(nonce, plain, &mut frame[2..]);
        sealed.map_err(io::Error::other)?;
        Ok(frame)
    }

    /// Returns the contents of a frame that comes without its length.
    pub fn open(&self, nonce: u64, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = vec![0; sealed.len()];
        let read = self.0.read_message(nonce, sealed, &mut plain);
        let changed = |_| io::Error::other("what it sent was changed on the way");
        plain.truncate(read.map_err(changed)?);
        Ok(plain)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Greeting {
    pub program: String,
    pub shards: u64,
    pub digest: u128,
    /// Silence after which the sender considers another process lost. Processes may differ in it.
    pub silence: Duration,
    pub processes: u16,
    pub from: u16,
    pub to: u16,
}

impl Greeting {
    fn differs(&self, other: &Greeting) -> Option<String> {
        let Greeting { from, to, .. } = other;
        let counts = |what: &str, theirs: u64, ours: u64| {
            format!("counts {theirs} {what}, and this one {ours}")
        };
        Some(if other.program != self.program {
            format!(
                "is version {}, and this one {}",
                other.program, self.program
            )
        } else if other.processes != self.processes {
            counts("processes", other.processes.into(), self.processes.into())
        } else if (*from, *to) != (self.to, self.from) {
            format!(
                "calls itself process {from} and this one process {to}: are the files with addresses the same?"
            )
        } else if other.shards != self.shards {
            counts("shards", other.shards, self.shards)
        } else if other.digest != self.digest {
            "was started with another --until".into()
        } else {
            return None;
        })
    }
}

#[derive(Debug)]
pub(crate) enum Refused {
    /// The other end has no proof, or not in time; the text describes its behaviour.
    Stranger(String),
    /// The other end has proof, and other settings.
    Differs(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Stranger(match error.kind() {
            io::ErrorKind::UnexpectedEof => "it hung up".into(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it said nothing more".into(),
            _ => error.to_string(),
        })
    }
}

impl From<snow::Error> for Refused {
    fn from(error: snow::Error) -> Refused {
        Refused::Stranger(error.to_string())
    }
}

fn builder(secret: &Secret) -> Result<Builder<'_>, snow::Error> {
    let params: NoiseParams = NOISE.parse()?;
    Builder::new(params)
        .prologue(PROLOGUE)?
        .psk(0, secret.key())
}

struct HandshakeSide<'s> {
    socket: &'s TcpStream,
    state: HandshakeState,
    end: Instant,
}

impl HandshakeSide<'_> {
    fn say(&mut self, greeting: &Greeting) -> Result<(), Refused> {
        let mut message = [0; 2 + GREETING_MAX];
        let bytes = serde_json::to_vec(greeting).map_err(io::Error::other)?;
        let len = self.state.write_message(&bytes, &mut message[2..])?;
        message[..2].copy_from_slice(&(len as u16).to_be_bytes());
        let mut socket = self.socket;
        Ok(socket.write_all(&message[..2 + len])?)
    }

    fn hear(&mut self) -> Result<Greeting, Refused> {
        let message = read_frame(self.socket, self.end, GREETING_MAX)?;
        let mut plain = [0; GREETING_MAX];
        let read = self.state.read_message(&message, &mut plain);
        let read = read.map_err(|_| Refused::Stranger("it does not know the secret".into()))?;
        serde_json::from_slice(&plain[..read])
            .map_err(|_| Refused::Differs("is a version that says other things at first".into()))
    }

    fn keys(self, own: &Greeting, other: &Greeting) -> Result<Keys, Refused> {
        match own.differs(other) {
            Some(what) => Err(Refused::Differs(what)),
            None => Ok(Keys(self.state.into_stateless_transport_mode()?)),
        }
    }
}

/// Sets the time without any data after which reading or writing fails.
pub(crate) fn set_silence(socket: &TcpStream, time: Duration) -> io::Result<()> {
    let time = Some(time.max(Duration::from_millis(1)));
    socket.set_read_timeout(time)?;
    socket.set_write_timeout(time)
}

/// Fills `bytes` before `end`, however slowly data arrive.
fn read_before(mut socket: &TcpStream, mut bytes: &mut [u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        set_silence(socket, left)?;
        match socket.read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_frame(socket: &TcpStream, end: Instant, max: usize) -> Result<Vec<u8>, Refused> {
    let mut len = [0; 2];
    read_before(socket, &mut len, end)?;
    let len = usize::from(u16::from_be_bytes(len));
    if len > max {
        return Err(Refused::Stranger(
            "it says something else than processes of cashrank do".into(),
        ));
    }
    let mut message = vec![0; len];
    read_before(socket, &mut message, end)?;
    Ok(message)
}

const CONFIRM: &[u8] = b"confirmed";

fn confirm(keys: &Keys, mut socket: &TcpStream) -> Result<(), Refused> {
    Ok(socket.write_all(&keys.seal(0, CONFIRM)?)?)
}

fn hear_confirmed(keys: &Keys, socket: &TcpStream, end: Instant) -> Result<(), Refused> {
    let frame = read_frame(socket, end, CONFIRM.len() + SEAL)?;
    match keys.open(0, &frame) {
        Ok(plain) if plain == CONFIRM => Ok(()),
        _ => Err(Refused::Stranger("it sent an old greeting again".into())),
    }
}

/// Greets the waiting process at the other end, and returns its greeting. Frames number 0 are then sent both ways.
pub(crate) fn greet(
    socket: &TcpStream,
    secret: &Secret,
    own: &Greeting,
    end: Instant,
) -> Result<(Greeting, Keys), Refused> {
    let state = builder(secret)?.build_initiator()?;
    let mut side = HandshakeSide { socket, state, end };
    side.say(own)?;
    let other = side.hear()?;
    let keys = side.keys(own, &other)?;
    confirm(&keys, socket)?;
    hear_confirmed(&keys, socket, end)?;
    Ok((other, keys))
}

/// Answers a connection. `own` returns the greeting for a process of that number. An error has the number in the other
/// end's greeting if that was sealed with the secret, which is also so for a greeting that was recorded and sent again.
pub(crate) fn answer(
    socket: &TcpStream,
    secret: &Secret,
    own: impl Fn(u16) -> Greeting,
    end: Instant,
) -> Result<(Greeting, Keys), (Option<u16>, Refused)> {
    let mut from = None;
    let mut answer = || {
        let state = builder(secret)?.build_responder()?;
        let mut side = HandshakeSide { socket, state, end };
        let other = side.hear()?;
        from = Some(other.from);
        let own = own(other.from);
        side.say(&own)?;
        let keys = side.keys(&own, &other)?;
        hear_confirmed(&keys, socket, end)?;
        confirm(&keys, socket)?;
        Ok((other, keys))
    };
    let answered = answer();
    answered.map_err(|refused| (from, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Greeting {
        Greeting {
            program: "0.1.0".into(),
            shards: 64,
            digest: 1 << 100,
            silence: Duration::from_millis(1500),
            processes: 3,
            from: 1,
            to: 0,
        }
    }

    #[test]
    fn a_greeting_comes_back() {
        let bytes = serde_json::to_vec(&greeting()).unwrap();
        assert_eq!(
            serde_json::from_slice::<Greeting>(&bytes).unwrap(),
            greeting()
        );
        for len in 0..bytes.len() {
            assert!(serde_json::from_slice::<Greeting>(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn what_differs_is_named() {
        let own = Greeting {
            from: 0,
            to: 1,
            ..greeting()
        };
        assert_eq!(own.differs(&greeting()), None);
        let found = |change: &dyn Fn(&mut Greeting)| {
            let mut other = greeting();
            change(&mut other);
            own.differs(&other).unwrap()
        };
        assert!(found(&|it| it.program = "0.2.0".into()).contains("version 0.2.0"));
        assert!(found(&|it| it.processes = 2).contains("2 processes"));
        assert!(found(&|it| it.from = 2).contains("process 2"));
        assert!(found(&|it| it.shards = 4).contains("4 shards, and this one 64"));
        assert!(found(&|it| it.digest = 0).contains("another --until"));
    }
}
