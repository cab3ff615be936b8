//! Addresses of processes, and files that list them.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{ClusterError, PROCESSES_MAX};

/// Address at which a process listens while others connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Host and TCP port.
    Host(String),
    /// Path of a Unix socket on the same machine.
    Path(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Host(host) => f.write_str(host),
            Address::Path(path) => path.display().fmt(f),
        }
    }
}

/// Parses a list of addresses: one per line, `HOST:PORT` or the absolute path of a socket; process 0 is the first.
/// Empty lines, and lines that begin with `#`, are ignored.
///
/// # Errors
/// [`ClusterError::Usage`] if a line is not an address, one occurs twice, there are none, or more than
/// [`PROCESSES_MAX`].
pub fn addresses(text: &str, file: &Path) -> Result<Vec<Address>, ClusterError> {
    let refused = |what: String| Err(ClusterError::Usage(format!("{}: {what}", file.display())));
    let mut all: Vec<Address> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(address) = address(line) else {
            let number = number + 1;
            return refused(format!(
                "line {number} is neither HOST:PORT nor a path: {line:?}"
            ));
        };
        if all.contains(&address) {
            return refused(format!("{address} is there twice"));
        }
        all.push(address);
    }
    match all.len() {
        0 => refused("there is no address".into()),
        len if len > PROCESSES_MAX => refused(format!(
            "{len} addresses: there can be {PROCESSES_MAX} processes"
        )),
        _ => Ok(all),
    }
}

fn address(line: &str) -> Option<Address> {
    if line.starts_with('/') {
        return Some(Address::Path(line.into()));
    }
    let (host, port) = line.rsplit_once(':')?;
    let is_bare = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
    let is_known = !host.is_empty() && is_bare && port.parse::<u16>().is_ok_and(|port| port > 0);
    is_known.then(|| Address::Host(line.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_addresses() {
        let text = "# three machines\n10.0.0.1:7400\n\n  b.example:7400 \n[::1]:7\n/run/a b\n";
        let all = addresses(text, Path::new("hosts")).unwrap();
        let shown: Vec<String> = all.iter().map(Address::to_string).collect();
        assert_eq!(
            shown,
            ["10.0.0.1:7400", "b.example:7400", "[::1]:7", "/run/a b"]
        );
        assert_eq!(all[3], Address::Path("/run/a b".into()));
    }

    #[test]
    fn other_lines_are_refused() {
        let of = |text: &str| addresses(text, Path::new("hosts")).unwrap_err().to_string();
        for text in ["a", "a:", ":7", "a:0", "a:70000", "::1:7", "a:7 b"] {
            assert!(of(text).starts_with("hosts: line 1 "), "{text}");
        }
        assert_eq!(of("#\n"), "hosts: there is no address");
        assert_eq!(of("a:7\na:7"), "hosts: a:7 is there twice");
        let many: String = (1..=257).map(|port| format!("a:{port}\n")).collect();
        assert!(of(&many).contains("257 addresses"));
    }
}
