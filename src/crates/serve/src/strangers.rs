//! Connections that have not sent an admissible request yet. They make room when a new connection has none, so that
//! clients without the token cannot keep out those that have it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// Connections that have not sent an admissible request yet.
#[derive(Clone, Default)]
pub(crate) struct Strangers(Arc<Mutex<WaitingConnections>>);

#[derive(Default)]
struct WaitingConnections {
    next: u64,
    /// Arrival time of each, and the handle that ends it.
    waiting: BTreeMap<u64, (Instant, Option<AbortHandle>)>,
}

impl Strangers {
    fn list(&self) -> MutexGuard<'_, WaitingConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection.
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

    /// Sets the task of a connection, by which it can be aborted.
    pub(crate) fn runs(&self, number: u64, task: AbortHandle) {
        if let Some((_, handle)) = self.list().waiting.get_mut(&number) {
            *handle = Some(task);
        }
    }

    /// Ends the connections that are older than `age`.
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

/// Registration of a connection, until it is known.
pub(crate) struct Stranger {
    strangers: Strangers,
    pub(crate) number: u64,
}

impl Stranger {
    /// Marks the connection as known: it has sent an admissible request.
    pub(crate) fn is_known(&self) {
        self.strangers.list().waiting.remove(&self.number);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known();
    }
}
