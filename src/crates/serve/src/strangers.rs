//! Connections that sent no request yet that may be answered. Where there is no room for a new connection, they make room:
//! so whoever has no token keeps nobody out who has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// The strangers among the connections.
#[derive(Clone, Default)]
pub(crate) struct Strangers(Arc<Mutex<WaitingConnections>>);

#[derive(Default)]
struct WaitingConnections {
    next: u64,
    /// When each came, and how to end it.
    waiting: BTreeMap<u64, (Instant, Option<AbortHandle>)>,
}

impl Strangers {
    fn list(&self) -> MutexGuard<'_, WaitingConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    pub(crate) fn come(&self) -> Stranger {
        let mut list = self.list();
        let number = list.next;
        list.next += 1;
        list.waiting.insert(number, (Instant::now(), None));
        Stranger {
            strangers: self.clone(),
            number,
        }
    }

    /// What runs for a connection, which ends when it is aborted.
    pub(crate) fn runs(&self, number: u64, task: AbortHandle) {
        if let Some((_, handle)) = self.list().waiting.get_mut(&number) {
            *handle = Some(task);
        }
    }

    /// Ends those that came so long ago.
    pub(crate) fn end(&self, age: Duration) {
        let list = self.list();
        let old = list
            .waiting
            .values()
            .take_while(|(came, _)| came.elapsed() >= age);
        for task in old.filter_map(|(_, task)| task.as_ref()) {
            task.abort();
        }
    }
}

/// A connection, until it is known.
pub(crate) struct Stranger {
    strangers: Strangers,
    pub(crate) number: u64,
}

impl Stranger {
    /// It sent a request that may be answered.
    pub(crate) fn is_known(&self) {
        self.strangers.list().waiting.remove(&self.number);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known();
    }
}
