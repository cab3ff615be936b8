//! How the shards of one crawl exchange messages, wherever they are, and the pages that they know of each other.

use crate::Result;

/// The processes that rank the shards of one crawl together. Each has some of the shards, and calls the same methods in the
/// same order; a call returns once all processes have made it. What they return does not depend on which process has which
/// shard.
pub trait Peers: Send {
    /// Number of shards, in all processes together.
    fn shards(&self) -> usize;

    /// Numbers of the shards of this process, ascending.
    fn local(&self) -> &[usize];

    /// Exchanges messages between shards. `outgoing[i][to]` is the message of the i-th local shard to shard `to`; the result
    /// has at `[i][from]` the message from shard `from` to the i-th local shard. Messages may be empty.
    ///
    /// # Errors
    /// A process is lost.
    fn exchange(&mut self, outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>>;

    /// Gives all processes what each says, in the order of the processes.
    ///
    /// # Errors
    /// A process is lost.
    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>>;

    /// Adds up numbers over all processes, each at its place.
    ///
    /// # Errors
    /// A process is lost.
    fn sum(&mut self, own: &mut [i128]) -> Result<()> {
        let bytes = own.iter().flat_map(|number| number.to_le_bytes());
        let all = self.gather(bytes.collect())?;
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

/// The pages of one other shard that a shard knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemotePages {
    /// Their numbers in the store of the shard that knows them.
    pub here: Vec<u32>,
    /// The number of each in its own shard's store, ascending.
    pub there: Vec<u32>,
}

/// All shards in this process.
#[derive(Debug, Clone)]
pub struct OneProcess {
    shards: Vec<usize>,
}

impl OneProcess {
    /// Of so many shards.
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
