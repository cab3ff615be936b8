//! Handshake in which two processes prove to each other that they know the secret, and encryption of all messages.
//!
//! ```text
//! the one that connects -> [greeting]    Noise NNpsk0: psk, e
//!                       <- [greeting]    e, ee
//!                       -> [confirm]     the first frame under the keys of both
//!                       <- [confirm]
//! frame: length u16 big-endian | what Noise made of it
//! ```
//!
//! The first message may be replayed; the third can only come from the sender that just created the first.

use std::io::{self, Write};
use std::time::Instant;

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, StatelessTransportState};

use crate::Secret;
use crate::greeting::Greeting;
use crate::socket::{Socket, read_before};

const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"cashrank-cluster 1";
/// Number of bytes that a frame adds to its contents.
pub(crate) const SEAL: usize = 16;
/// Maximum length of the contents of a frame, in bytes.
pub(crate) const FRAME_MAX: usize = u16::MAX as usize - SEAL;
const GREETING_MAX: usize = 512;

/// Keys of two processes after the handshake.
pub(crate) struct Keys(StatelessTransportState);

impl Keys {
    pub fn seal(&self, nonce: u64, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let at = out.len();
        let len = u16::try_from(plain.len() + SEAL).map_err(io::Error::other)?;
        out.extend_from_slice(&len.to_be_bytes());
        out.resize(at + 2 + usize::from(len), 0);
        let sealed = self.0.write_message(nonce, plain, &mut out[at + 2..]);
        sealed.map(drop).map_err(io::Error::other)
    }

    pub fn open(&self, nonce: u64, sealed: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        plain.resize(sealed.len(), 0);
        let read = self.0.read_message(nonce, sealed, plain);
        plain.truncate(read.map_err(|_| changed())?);
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "what it sent was changed on the way",
    )
}

#[derive(Debug)]
pub(crate) enum Refused {
    /// The other end has no proof, or not in time: what was seen.
    Stranger(String),
    /// The other end has proof, and another plan.
    Differs(String),
}

fn state(secret: &Secret) -> Result<Builder<'_>, snow::Error> {
    let params: NoiseParams = NOISE.parse()?;
    Builder::new(params)
        .prologue(PROLOGUE)?
        .psk(0, secret.key())
}

struct HandshakeSide<'s> {
    socket: &'s Socket,
    state: HandshakeState,
    end: Instant,
}

impl<'s> HandshakeSide<'s> {
    fn say(&mut self, greeting: &Greeting) -> io::Result<()> {
        let mut message = [0; 2 + GREETING_MAX];
        let bytes = serde_json::to_vec(greeting)?;
        let len = self.state.write_message(&bytes, &mut message[2..]);
        let len = len.map_err(io::Error::other)?;
        message[..2].copy_from_slice(&(len as u16).to_be_bytes());
        let mut socket = self.socket;
        socket.write_all(&message[..2 + len])
    }

    fn hear(&mut self) -> Result<Greeting, Refused> {
        let message = read_frame(self.socket, self.end, GREETING_MAX)?;
        let mut plain = [0; GREETING_MAX];
        let read = self.state.read_message(&message, &mut plain);
        let read = read.map_err(|_| Refused::Stranger("it does not know the secret".into()))?;
        serde_json::from_slice(&plain[..read])
            .map_err(|_| Refused::Differs("is a version that says other things at first".into()))
    }

    fn keys(self) -> Result<Keys, Refused> {
        let keys = self.state.into_stateless_transport_mode();
        keys.map(Keys)
            .map_err(|error| Refused::Stranger(error.to_string()))
    }
}

/// Reads a message of at most `max` bytes.
fn read_frame(socket: &Socket, end: Instant, max: usize) -> Result<Vec<u8>, Refused> {
    let failed = |error: io::Error| {
        Refused::Stranger(match error.kind() {
            io::ErrorKind::UnexpectedEof => "it hung up".into(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it said nothing more".into(),
            _ => error.to_string(),
        })
    };
    let mut len = [0; 2];
    read_before(socket, &mut len, end).map_err(failed)?;
    let len = usize::from(u16::from_be_bytes(len));
    if len > max {
        return Err(Refused::Stranger(
            "it says something else than processes of cashrank do".into(),
        ));
    }
    let mut message = vec![0; len];
    read_before(socket, &mut message, end).map_err(failed)?;
    Ok(message)
}

/// Contents of the third and the fourth message.
const CONFIRM: &[u8] = b"confirmed";

fn confirm(keys: &Keys, mut socket: &Socket) -> Result<(), Refused> {
    let mut frame = Vec::new();
    let sent = keys
        .seal(0, CONFIRM, &mut frame)
        .and_then(|()| socket.write_all(&frame));
    sent.map_err(|error| Refused::Stranger(error.to_string()))
}

fn hear_confirmed(keys: &Keys, socket: &Socket, end: Instant) -> Result<(), Refused> {
    let frame = read_frame(socket, end, CONFIRM.len() + SEAL)?;
    let mut plain = Vec::new();
    match keys.open(0, &frame, &mut plain) {
        Ok(()) if plain == CONFIRM => Ok(()),
        _ => Err(Refused::Stranger("it sent an old greeting again".into())),
    }
}

/// Greets the process at the other end, which waits for this one. Returns its greeting. Frames number 0 were then sent
/// both ways.
pub(crate) fn greet(
    socket: &Socket,
    secret: &Secret,
    own: &Greeting,
    end: Instant,
) -> Result<(Greeting, Keys), Refused> {
    let broken = |error: io::Error| Refused::Stranger(error.to_string());
    let state = state(secret).and_then(Builder::build_initiator);
    let state = state.map_err(|error| Refused::Stranger(error.to_string()))?;
    let mut side = HandshakeSide { socket, state, end };
    side.say(own).map_err(broken)?;
    let other = side.hear()?;
    if let Some(what) = own.differs(&other) {
        return Err(Refused::Differs(what));
    }
    let keys = side.keys()?;
    confirm(&keys, socket)?;
    hear_confirmed(&keys, socket, end)?;
    Ok((other, keys))
}

/// Answers a connection. `own` returns the greeting for a process of that number.
pub(crate) fn answer(
    socket: &Socket,
    secret: &Secret,
    own: impl Fn(u16) -> Greeting,
    end: Instant,
) -> Result<(Greeting, Keys), (Option<u16>, Refused)> {
    let nobody = |refused| (None, refused);
    let state = state(secret).and_then(Builder::build_responder);
    let state = state.map_err(|error| nobody(Refused::Stranger(error.to_string())))?;
    let mut side = HandshakeSide { socket, state, end };
    let other = side.hear().map_err(nobody)?;
    let from = other.from;
    let of = |refused| (Some(from), refused);
    let own = own(from);
    side.say(&own)
        .map_err(|error| of(Refused::Stranger(error.to_string())))?;
    if let Some(what) = own.differs(&other) {
        return Err(of(Refused::Differs(what)));
    }
    let keys = side.keys().map_err(of)?;
    hear_confirmed(&keys, socket, end).map_err(of)?;
    confirm(&keys, socket).map_err(of)?;
    Ok((other, keys))
}
