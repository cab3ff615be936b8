//! Message exchange between the shards of one crawl, and the remote pages that they know of each other.

use crate::Result;

/// Processes that rank the shards of one crawl together. Each has some of the shards and calls the same methods in the
/// same order; a call returns once all processes have made it. Results do not depend on which process has which shard.
/// All methods fail if a process is lost.
pub trait Peers: Send {
    /// Returns the number of shards in all processes together.
    fn shards(&self) -> usize;
    /// Returns the numbers of the shards of this process, ascending.
    fn local(&self) -> &[usize];
    /// Exchanges messages between shards (all-to-all), which may be empty. `outgoing[i][to]` is that of the i-th local
    /// shard to shard `to`; the result has at `[i][from]` that from shard `from` to the i-th local shard.
    fn exchange(&mut self, outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>>;
    /// Gathers a message of each process in all processes, in the order of the processes (all-gather).
    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>>;

    /// Adds up vectors of numbers over all processes, element by element (all-reduce).
    fn sum(&mut self, own: &mut [i128]) -> Result<()> {
        let bytes: Vec<_> = own.iter().map(|number| number.to_le_bytes()).collect();
        let all = self.gather(bytes.into_flattened())?;
        own.fill(0);
        for of in all {
            for (sum, number) in own.iter_mut().zip(of.chunks_exact(16)) {
                let number = number.try_into().map_or(0, i128::from_le_bytes);
                *sum += number;
            }
        }
        Ok(())
    }
}

/// Pages of one other shard that a shard knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemotePages {
    /// Page numbers in the store of the shard that knows them.
    pub here: Vec<u32>,
    /// Page numbers in the store of their own shard, ascending.
    pub there: Vec<u32>,
}

#[derive(Debug, Clone)]
pub struct OneProcess {
    shards: Vec<usize>,
}

impl OneProcess {
    pub fn new(shards: usize) -> OneProcess {
        OneProcess {
            shards: (0..shards).collect(),
        }
    }
}

impl Peers for OneProcess {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn local(&self) -> &[usize] {
        &self.shards
    }

    fn exchange(&mut self, mut outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>> {
        let to = |to: usize| {
            let from = outgoing.iter_mut();
            from.map(|messages| std::mem::take(&mut messages[to]))
                .collect()
        };
        Ok(self.shards.iter().copied().map(to).collect())
    }

    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        Ok(vec![own])
    }

    // In each sweep over a small graph, messages to itself took three quarters of the time.
    fn sum(&mut self, _own: &mut [i128]) -> Result<()> {
        Ok(())
    }
}

/// Processes that are threads of a test.
#[cfg(any(test, feature = "testing"))]
pub mod threads {
    use std::sync::{Arc, Barrier, Mutex};

    use super::Peers;
    use crate::Result;

    /// Messages of a process in one round: to each shard, from each of its own; or to all.
    #[derive(Default, Clone)]
    struct Said {
        messages: Vec<(usize, usize, Vec<u8>)>,
        to_all: Vec<u8>,
    }

    pub struct Thread {
        pub process: usize,
        shards: usize,
        local: Vec<usize>,
        barrier: Arc<Barrier>,
        said: Arc<Mutex<Vec<Said>>>,
        pub sent: u64,
    }

    impl Thread {
        fn round(&mut self, said: Said) -> Vec<Said> {
            self.said.lock().unwrap()[self.process] = said;
            self.barrier.wait();
            let all = self.said.lock().unwrap().clone();
            self.barrier.wait();
            all
        }
    }

    impl Peers for Thread {
        fn shards(&self) -> usize {
            self.shards
        }

        fn local(&self) -> &[usize] {
            &self.local
        }

        fn exchange(&mut self, outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>> {
            let mut said = Said::default();
            for (&from, messages) in self.local.iter().zip(outgoing) {
                for (to, message) in messages.into_iter().enumerate() {
                    if !self.local.contains(&to) {
                        self.sent += message.len() as u64;
                    }
                    said.messages.push((from, to, message));
                }
            }
            let mut incoming = vec![vec![Vec::new(); self.shards]; self.local.len()];
            for (from, to, message) in self.round(said).into_iter().flat_map(|said| said.messages) {
                if let Some(at) = self.local.iter().position(|&local| local == to) {
                    incoming[at][from] = message;
                }
            }
            Ok(incoming)
        }

        fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
            let said = Said {
                to_all: own,
                ..Said::default()
            };
            Ok(self
                .round(said)
                .into_iter()
                .map(|said| said.to_all)
                .collect())
        }
    }

    /// Distributes shards over processes, and returns the result of `work` in each.
    pub fn with_processes<T: Send>(
        shards: usize,
        processes: usize,
        work: impl Fn(&mut Thread) -> T + Sync,
    ) -> Vec<T> {
        let barrier = Arc::new(Barrier::new(processes));
        let said = Arc::new(Mutex::new(vec![Said::default(); processes]));
        let work = &work;
        std::thread::scope(|scope| {
            let begin = |process| {
                let mut peers = Thread {
                    process,
                    shards,
                    local: (0..shards)
                        .filter(|shard| shard % processes == process)
                        .collect(),
                    barrier: barrier.clone(),
                    said: said.clone(),
                    sent: 0,
                };
                scope.spawn(move || work(&mut peers))
            };
            let begun: Vec<_> = (0..processes).map(begin).collect();
            begun.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_from_whom_they_are() {
        let mut peers = OneProcess::new(3);
        let message = |from: u8, to: u8| vec![from, to];
        let outgoing = (0..3).map(|from| (0..3).map(|to| message(from, to)).collect());
        let incoming = peers.exchange(outgoing.collect()).unwrap();
        for (to, messages) in (0..).zip(incoming) {
            for (from, got) in (0..).zip(messages) {
                assert_eq!(got, message(from, to));
            }
        }
        let mut numbers = [1, -(1 << 100)];
        peers.sum(&mut numbers).unwrap();
        assert_eq!(numbers, [1, -(1 << 100)]);
    }
}
