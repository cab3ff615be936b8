//! Streams between processes, on one machine or over a network.

use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use socket2::Socket;

use crate::Address;

/// Connects within this time.
pub(crate) fn connect(address: &Address, time: Duration) -> io::Result<Socket> {
    let host = match address {
        Address::Path(path) => return UnixStream::connect(path).map(Socket::from),
        Address::Host(host) => host,
    };
    let mut last = io::Error::other("it has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, time) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream.into());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sets the time without any data after which reading or writing fails.
pub(crate) fn set_silence(socket: &Socket, time: Duration) -> io::Result<()> {
    let time = Some(time.max(Duration::from_millis(1)));
    socket.set_read_timeout(time)?;
    socket.set_write_timeout(time)
}

/// Fills `bytes` before `end`, however slowly data arrive.
pub(crate) fn read_before(
    mut socket: &Socket,
    mut bytes: &mut [u8],
    end: Instant,
) -> io::Result<()> {
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

/// Listener for connections, until it is dropped.
pub(crate) struct Listener {
    socket: Socket,
    path: Option<PathBuf>,
}

/// Listens at a path. Replaces a socket that a killed process left, at which nobody listens.
fn bind_path(path: &Path) -> io::Result<UnixListener> {
    let bound = UnixListener::bind(path);
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    if !bound.as_ref().is_err_and(is_taken) {
        return bound;
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        _ => bound,
    }
}

impl Listener {
    pub fn open(address: &Address) -> io::Result<Listener> {
        let (socket, path) = match address {
            Address::Host(host) => (Socket::from(TcpListener::bind(host)?), None),
            Address::Path(path) => (bind_path(path)?.into(), Some(path.clone())),
        };
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, path })
    }

    /// Accepts a connection, if one waits. Returns it with its origin.
    pub fn accept(&self) -> io::Result<Option<(Socket, String)>> {
        match self.socket.accept() {
            Ok((socket, from)) => Ok(self.prepared(socket, from.as_socket()).ok()),
            // The other end may be gone already.
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Makes a connection blocking, and sending immediate. Some systems refuse if the other end is gone already.
    fn prepared(&self, socket: Socket, from: Option<SocketAddr>) -> io::Result<(Socket, String)> {
        socket.set_nonblocking(false)?;
        let from = match &self.path {
            Some(path) => path.display().to_string(),
            None => {
                socket.set_tcp_nodelay(true)?;
                from.map_or_else(String::new, |from| from.to_string())
            }
        };
        Ok((socket, from))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // If the file remains, the next run reports that it is in the way.
            let _ = fs::remove_file(path);
        }
    }
}
