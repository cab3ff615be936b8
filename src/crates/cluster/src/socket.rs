//! Streams between processes, on one machine or over a network.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Address;

/// Open stream, which several threads may read and write.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Does the same with either kind of stream.
macro_rules! either {
    ($socket:expr, $inner:ident => $what:expr) => {
        match $socket {
            Socket::Tcp($inner) => $what,
            Socket::Unix($inner) => $what,
        }
    };
}

impl Socket {
    /// Connects within this time.
    pub fn connect(address: &Address, time: Duration) -> io::Result<Socket> {
        let host = match address {
            Address::Path(path) => return Ok(Socket::Unix(UnixStream::connect(path)?)),
            Address::Host(host) => host,
        };
        let mut last = io::Error::other("it has no address");
        for address in host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, time) {
                Ok(stream) => return Ok(Socket::Tcp(stream)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Makes the stream blocking, and sending immediate.
    pub fn prepare(&self) -> io::Result<()> {
        either!(self, stream => stream.set_nonblocking(false)?);
        match self {
            Socket::Tcp(stream) => stream.set_nodelay(true),
            Socket::Unix(_) => Ok(()),
        }
    }

    /// Sets the time without any data after which reading or writing fails.
    pub fn set_silence(&self, time: Duration) -> io::Result<()> {
        let time = Some(time.max(Duration::from_millis(1)));
        either!(self, stream => {
            stream.set_read_timeout(time)?;
            stream.set_write_timeout(time)
        })
    }

    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => { let mut stream = stream; stream.read(bytes) })
    }

    pub fn read_exact(&self, bytes: &mut [u8]) -> io::Result<()> {
        either!(self, stream => { let mut stream = stream; stream.read_exact(bytes) })
    }

    /// Fills `bytes` before `end`, however slowly data arrive.
    pub fn read_before(&self, mut bytes: &mut [u8], end: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.set_silence(left)?;
            match self.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        either!(self, stream => { let mut stream = stream; stream.write_all(bytes) })
    }

    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(self, stream => stream.shutdown(how))
    }
}

/// Listener for connections, until it is dropped.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
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
        match address {
            Address::Host(host) => {
                let listener = TcpListener::bind(host)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            Address::Path(path) => {
                let listener = bind_path(path)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix(listener, path.clone()))
            }
        }
    }

    /// Accepts a connection, if one waits. Returns it with its origin.
    pub fn accept(&self) -> io::Result<Option<(Socket, String)>> {
        let accepted = match self {
            Listener::Tcp(listener) => listener
                .accept()
                .map(|(stream, from)| (Socket::Tcp(stream), from.to_string())),
            Listener::Unix(listener, path) => listener
                .accept()
                .map(|(stream, _)| (Socket::Unix(stream), path.display().to_string())),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            // The other end may be gone already.
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // If the file remains, the next run reports that it is in the way.
            let _ = std::fs::remove_file(path);
        }
    }
}
