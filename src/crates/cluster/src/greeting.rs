//! Greeting: what processes tell about themselves before anything else.
//!
//! ```text
//! greeting: format 2 | length of the program's version, the version | shards u64 | digest u128 | silence u64
//!           | processes u16 | from u16 | to u16                              all little-endian
//! silence: milliseconds
//! ```

use std::time::Duration;

/// Settings that must be equal in all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JointPlan {
    /// Version of the program, at most 255 bytes.
    pub program: String,
    /// Number of shards of the crawl.
    pub shards: u64,
    /// Digest of the options that must be equal.
    pub digest: u128,
}

const FORMAT: u8 = 2;

/// Greeting of one process to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub plan: JointPlan,
    /// Silence after which it considers another process lost. Processes may differ in it.
    pub silence: Duration,
    pub processes: u16,
    pub from: u16,
    pub to: u16,
}

impl Greeting {
    pub fn to_bytes(&self) -> Vec<u8> {
        let program = &self.plan.program.as_bytes()[..self.plan.program.len().min(255)];
        let mut bytes = vec![FORMAT, program.len() as u8];
        bytes.extend_from_slice(program);
        bytes.extend_from_slice(&self.plan.shards.to_le_bytes());
        bytes.extend_from_slice(&self.plan.digest.to_le_bytes());
        let silence = u64::try_from(self.silence.as_millis()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&silence.to_le_bytes());
        for number in [self.processes, self.from, self.to] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Decodes a greeting; `None` if it is invalid or of another format.
    pub fn of_bytes(bytes: &[u8]) -> Option<Greeting> {
        let (&[format, len], rest) = bytes.split_first_chunk::<2>()?;
        let (program, rest) = rest.split_at_checked(len.into())?;
        let (shards, rest) = rest.split_first_chunk()?;
        let (digest, rest) = rest.split_first_chunk()?;
        let (silence, rest) = rest.split_first_chunk()?;
        let ([processes, from, to], []) = rest.as_chunks::<2>() else {
            return None;
        };
        (format == FORMAT).then(|| Greeting {
            plan: JointPlan {
                program: String::from_utf8_lossy(program).into_owned(),
                shards: u64::from_le_bytes(*shards),
                digest: u128::from_le_bytes(*digest),
            },
            silence: Duration::from_millis(u64::from_le_bytes(*silence)),
            processes: u16::from_le_bytes(*processes),
            from: u16::from_le_bytes(*from),
            to: u16::from_le_bytes(*to),
        })
    }

    /// Describes how the greeting of another process contradicts this one.
    pub fn differs(&self, other: &Greeting) -> Option<String> {
        let (own, plan) = (&self.plan, &other.plan);
        if plan.program != own.program {
            return Some(format!(
                "is version {}, and this one {}",
                plan.program, own.program
            ));
        }
        if other.processes != self.processes {
            return Some(format!(
                "counts {} processes, and this one {}",
                other.processes, self.processes
            ));
        }
        if (other.from, other.to) != (self.to, self.from) {
            return Some(format!(
                "calls itself process {} and this one process {}: are the files with addresses the same?",
                other.from, other.to
            ));
        }
        if plan.shards != own.shards {
            return Some(format!(
                "counts {} shards, and this one {}",
                plan.shards, own.shards
            ));
        }
        let differs = "was started with another --until";
        (plan.digest != own.digest).then(|| differs.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Greeting {
        Greeting {
            plan: JointPlan {
                program: "0.1.0".into(),
                shards: 64,
                digest: 1 << 100,
            },
            silence: Duration::from_millis(1500),
            processes: 3,
            from: 1,
            to: 0,
        }
    }

    #[test]
    fn a_greeting_comes_back() {
        let bytes = greeting().to_bytes();
        assert_eq!(Greeting::of_bytes(&bytes), Some(greeting()));
        for len in 0..bytes.len() {
            assert_eq!(Greeting::of_bytes(&bytes[..len]), None);
        }
        assert_eq!(Greeting::of_bytes(&[bytes.as_slice(), &[0]].concat()), None);
        assert_eq!(Greeting::of_bytes(&[&[1], &bytes[1..]].concat()), None);
    }

    /// Any bytes: never a panic, and what is accepted is a greeting.
    #[test]
    fn nonsense_is_refused() {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        for _ in 0..100_000 {
            let mut bytes: Vec<u8> = (0..next() % 64).map(|_| next()).collect();
            if let Some(first) = bytes.first_mut() {
                *first %= 3;
            }
            if let Some(length) = bytes.get_mut(1) {
                *length %= 40;
            }
            if let Some(greeting) = Greeting::of_bytes(&bytes) {
                let again = Greeting::of_bytes(&greeting.to_bytes());
                assert!(again.is_some() || greeting.plan.program.len() > 255);
            }
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
        assert!(found(&|it| it.plan.program = "0.2.0".into()).contains("version 0.2.0"));
        assert!(found(&|it| it.processes = 2).contains("2 processes"));
        assert!(found(&|it| it.from = 2).contains("process 2"));
        assert!(found(&|it| it.plan.shards = 4).contains("4 shards, and this one 64"));
        assert!(found(&|it| it.plan.digest = 0).contains("another --until"));
    }
}
