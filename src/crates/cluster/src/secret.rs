//! Secret that the processes share.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use blake2::{Blake2s256, Digest};

use crate::ClusterError;

const LEN_MIN: usize = 16;
const LEN_MAX: u64 = 4096;

/// Shared secret, which is never displayed.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Creates a secret from bytes that cannot be guessed.
    ///
    /// # Errors
    /// [`ClusterError::Usage`] if there are fewer than 16.
    pub fn of(bytes: &[u8]) -> Result<Secret, ClusterError> {
        if bytes.len() < LEN_MIN {
            return Err(ClusterError::Usage(format!(
                "a secret has {LEN_MIN} bytes at least, and this one {}",
                bytes.len()
            )));
        }
        let mut hash = Blake2s256::new();
        hash.update(b"cashrank: secret of processes\0");
        hash.update(bytes);
        Ok(Secret(hash.finalize().into()))
    }

    /// Reads a secret from a file, without surrounding white space.
    ///
    /// # Errors
    /// [`ClusterError::Usage`] if everybody may read the file, or it is too short or too long.
    pub fn read(path: &Path) -> Result<Secret, ClusterError> {
        let refused = |what: String| ClusterError::Usage(format!("{}: {what}", path.display()));
        let read = |error| ClusterError::Io(format!("{}: cannot read", path.display()), error);
        let about = fs::metadata(path).map_err(read)?;
        if about.len() > LEN_MAX {
            return Err(refused(format!("a secret has {LEN_MAX} bytes at most")));
        }
        if is_open(&about) {
            let what = "everybody may read this secret: `chmod o= FILE`, and use another one";
            return Err(refused(what.into()));
        }
        let bytes = fs::read(path).map_err(read)?;
        Secret::of(bytes.trim_ascii()).map_err(|error| refused(error.to_string()))
    }

    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.0
    }
}

fn is_open(about: &fs::Metadata) -> bool {
    about.permissions().mode() & 0o007 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

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
