use super::*;

/// Reader of one byte at a time, with an interruption before each, and an end that a further read would contradict.
struct Trickle(Vec<u8>, bool, bool);

impl Read for Trickle {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        assert!(!self.2, "read again after the end");
        self.1 = !self.1;
        if self.1 {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.0.is_empty() {
            self.2 = true;
            return Ok(0);
        }
        buf[0] = self.0.remove(0);
        Ok(1)
    }
}

#[test]
fn interrupted_reads_are_retried_and_the_end_is_final() {
    let mut raw = PeekReader::new(Box::new(Trickle(b"abcdef".to_vec(), false, false)));
    assert_eq!(raw.peek(2).unwrap(), b"ab");
    raw.consume(1);
    let mut out = Vec::with_capacity(3);
    assert_eq!(raw.read_into(&mut out).unwrap(), 3);
    assert_eq!(out, b"bcd");
    assert_eq!(raw.peek(9).unwrap(), b"ef");
    assert_eq!(raw.consumed, 4);
    let mut out = Vec::with_capacity(9);
    assert_eq!(raw.read_into(&mut out).unwrap(), 2);
    assert_eq!(raw.read_into(&mut out).unwrap(), 0);
    assert_eq!(raw.peek(1).unwrap(), b"");
    assert_eq!(raw.consumed, 6);
}

#[test]
fn names() {
    assert_eq!(InputName::parse(OsStr::new("-")), InputName::Stdin);
    assert_eq!(InputName::Stdin.to_string(), "-");
    let file = InputName::parse(OsStr::new("a/b.gz"));
    assert_eq!(file, InputName::File("a/b.gz".into()));
    assert_eq!(file.to_string(), "a/b.gz");
}
