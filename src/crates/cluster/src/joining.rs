//! Settings by which processes find each other: addresses, the secret, and values that must be equal in all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blake2::{Blake2s256, Digest};
use cashrank_base::{Error, Result};

pub const PROCESSES_MAX: usize = 256;
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
