//! Greeting: what processes tell about themselves before anything else.
//!
//! It is one JSON object.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings that must be equal in all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointPlan {
    /// Version of the program.
    pub program: String,
    /// Number of shards of the crawl.
    pub shards: u64,
    /// Digest of the options that must be equal.
    pub digest: u128,
}

/// Greeting of one process to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Greeting {
    pub plan: JointPlan,
    /// Silence after which it considers another process lost. Processes may differ in it.
    pub silence: Duration,
    pub processes: u16,
    pub from: u16,
    pub to: u16,
}

impl Greeting {
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
        assert!(found(&|it| it.plan.program = "0.2.0".into()).contains("version 0.2.0"));
        assert!(found(&|it| it.processes = 2).contains("2 processes"));
        assert!(found(&|it| it.from = 2).contains("process 2"));
        assert!(found(&|it| it.plan.shards = 4).contains("4 shards, and this one 64"));
        assert!(found(&|it| it.plan.digest = 0).contains("another --until"));
    }
}
