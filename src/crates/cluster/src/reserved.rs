//! Threads that are started before they are needed. Timely starts its own without checking, and panics if it cannot: so
//! as many wait while processes meet, and end just before. A limit then counts the threads of all processes of the user
//! at once.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use crate::ClusterError;

/// Threads that wait until this is dropped.
pub(crate) struct Reserved(Vec<(Sender<()>, JoinHandle<()>)>);

impl Reserved {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// Fails if one cannot be started.
    pub(crate) fn threads(count: usize) -> Result<Reserved, ClusterError> {
        let mut reserved = Reserved(Vec::new());
        for _ in 0..count {
            let (held, end): (Sender<()>, Receiver<()>) = channel();
            let started = Builder::new().name("reserved".into()).spawn(move || {
                let _ = end.recv();
            });
            reserved
                .0
                .push((held, started.map_err(ClusterError::no_thread)?));
        }
        Ok(reserved)
    }
}

impl Drop for Reserved {
    /// Waits until the threads have ended.
    fn drop(&mut self) {
        for (held, thread) in self.0.drain(..) {
            drop(held);
            let _ = thread.join();
        }
    }
}
