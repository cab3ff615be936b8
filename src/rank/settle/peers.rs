//! Several processes that settle the blocks of one whole: who has which, and how they come to the same sums.
//!
//! Process i of N has the blocks p with p mod N = i. All take the same steps in the same order, so that each receives
//! the message that it waits for. Messages hold whole numbers, so all processes decide the same by them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::varint;
use crate::store::{packed, unpacked};
use crate::{Error, Result};

/// Carries messages between processes that settle together.
pub trait Exchange: Send {
    /// Gives each process its message, in the order of their numbers, and returns what each has for this one, once all are
    /// there. The message of a process to itself comes back.
    ///
    /// # Errors
    /// A process cannot be reached; which one.
    fn exchange(&mut self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;

    /// Looks whether all processes are there, without waiting: for one that has no message for them for some time.
    ///
    /// # Errors
    /// As [`Exchange::exchange`].
    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The processes that settle together, and which of them this is.
#[derive(Clone)]
pub struct Peers {
    process: usize,
    processes: usize,
    /// They share the memory of a machine.
    is_one_machine: bool,
    exchange: Option<Arc<Mutex<dyn Exchange>>>,
}

/// Only this one.
impl Default for Peers {
    fn default() -> Peers {
        Peers {
            process: 0,
            processes: 1,
            is_one_machine: true,
            exchange: None,
        }
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.process, self.processes)
    }
}

impl Peers {
    /// Number `process` of so many, which `exchange` connects.
    ///
    /// # Errors
    /// [`Error::Usage`]: there is no process of that number.
    pub fn new(
        process: usize,
        processes: usize,
        exchange: impl Exchange + 'static,
    ) -> Result<Peers> {
        if process >= processes {
            return Err(Error::Usage(format!(
                "there is no process {process} of {processes}: they count from 0"
            )));
        }
        Ok(Peers {
            process,
            processes,
            is_one_machine: processes == 1,
            exchange: Some(Arc::new(Mutex::new(exchange))),
        })
    }

    /// The same, all on this machine.
    pub fn on_one_machine(self) -> Peers {
        Peers {
            is_one_machine: true,
            ..self
        }
    }

    /// Whether they share the memory of a machine.
    pub(crate) fn is_one_machine(&self) -> bool {
        self.is_one_machine
    }

    /// The number of this process.
    pub fn process(&self) -> usize {
        self.process
    }

    /// How many there are.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Which process has a block.
    pub(crate) fn process_of(&self, block: usize) -> usize {
        block % self.processes
    }

    /// Returns whether this process has a block.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.process_of(block) == self.process
    }

    /// The number among all blocks of one of this process.
    pub(crate) fn number(&self, at: usize) -> usize {
        at * self.processes + self.process
    }

    /// Where a block is among those of its process.
    pub(crate) fn place(&self, block: usize) -> usize {
        block / self.processes
    }

    /// See [`Exchange::exchange`].
    pub(crate) fn exchange(&self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        match &self.exchange {
            None => Ok(messages),
            Some(exchange) => {
                let mut exchange = exchange.lock().unwrap_or_else(PoisonError::into_inner);
                exchange.exchange(messages)
            }
        }
    }

    /// See [`Exchange::check`]. Where another thread exchanges messages, that finds out.
    pub(crate) fn check(&self) -> Result<()> {
        match self.exchange.as_ref().map(|exchange| exchange.try_lock()) {
            Some(Ok(mut exchange)) => exchange.check(),
            _ => Ok(()),
        }
    }

    /// Makes of each number its sum over all processes.
    pub(crate) fn sum(&self, values: &mut [i128]) -> Result<()> {
        if self.exchange.is_none() {
            return Ok(());
        }
        let mut message = Vec::with_capacity(values.len() * 2);
        for &value in values.iter() {
            varint::put(&mut message, varint::zigzag_wide(value));
        }
        values.fill(0);
        let received = self.exchange(vec![message; self.processes])?;
        for (process, message) in received.iter().enumerate() {
            let mut message = message.as_slice();
            for value in &mut *values {
                let other = varint::take(&mut message).map(varint::unzigzag_wide);
                let sum = other.and_then(|other| value.checked_add(other));
                *value = sum.ok_or_else(|| nonsense(process))?;
            }
            if !message.is_empty() {
                return Err(nonsense(process));
            }
        }
        Ok(())
    }

    /// What process 0 says to all. What the others would say is not heard.
    ///
    /// # Errors
    /// See [`Exchange::exchange`].
    pub fn hear(&self, said: Vec<u8>) -> Result<Vec<u8>> {
        let mut messages = vec![Vec::new(); self.processes];
        if self.process == 0 {
            messages.fill(said);
        }
        let mut heard = self.exchange(messages)?;
        Ok(heard.swap_remove(0))
    }

    /// The processes in which it is so.
    pub(crate) fn those(&self, is_so: bool) -> Result<Vec<usize>> {
        let received = self.exchange(vec![vec![is_so.into()]; self.processes])?;
        let mut those = Vec::new();
        for (process, message) in received.iter().enumerate() {
            match message[..] {
                [0] => {}
                [1] => those.push(process),
                _ => return Err(nonsense(process)),
            }
        }
        Ok(those)
    }

    /// What failed in one process has failed in all. Each names the process that it failed in, if that is another.
    pub(crate) fn agree<T>(&self, done: Result<T>) -> Result<Result<T>> {
        if self.exchange.is_none() {
            return Ok(done);
        }
        // An error's words behind a byte that says that it is one.
        let mut said = Vec::new();
        if let Err(error) = &done {
            said.push(1);
            said.extend_from_slice(error.to_string().as_bytes());
        }
        let heard = self.exchange(vec![said; self.processes])?;
        let failed = heard.iter().enumerate().find_map(|(process, said)| {
            let (_, words) = said.split_first()?;
            Some((process, String::from_utf8_lossy(words)))
        });
        Ok(match (done, failed) {
            (Ok(_), Some((process, words))) => {
                Err(Error::Conflict(format!("process {process}: {words}")))
            }
            (done, _) => done,
        })
    }

    /// Makes of what each process has for its blocks what there is for all, in the order of the blocks. What failed in one
    /// process has failed in all, if the error is `soft`: such as they can go on after.
    ///
    /// # Errors
    /// Others, and those of [`Exchange::exchange`].
    pub(crate) fn share<T: Serialize + DeserializeOwned>(
        &self,
        own: Result<Vec<T>>,
        soft: impl Fn(&Error) -> bool,
    ) -> Result<Result<Vec<T>>> {
        let own = match own {
            Err(error) if !soft(&error) => return Err(error),
            own => self.agree(own)?,
        };
        own.map(|own| self.all(own))
            .map_or_else(|error| Ok(Err(error)), |all| all.map(Ok))
    }

    /// The same of what cannot fail.
    pub(crate) fn all<T: Serialize + DeserializeOwned>(&self, own: Vec<T>) -> Result<Vec<T>> {
        if self.processes == 1 {
            return Ok(own);
        }
        let heard = self.exchange(vec![packed(&own)?; self.processes])?;
        self.in_order(&heard)
    }

    /// The values in what each process says of its blocks, in the order of all blocks.
    pub(crate) fn in_order<T: DeserializeOwned>(&self, heard: &[Vec<u8>]) -> Result<Vec<T>> {
        let mut each = Vec::with_capacity(self.processes);
        for (process, said) in heard.iter().enumerate() {
            let said: Vec<T> = unpacked(said).map_err(|_| nonsense(process))?;
            each.push(said.into_iter());
        }
        let next = |number: usize| each[self.process_of(number)].next();
        Ok((0..).map_while(next).collect())
    }

    /// Of values for all blocks, those for the blocks of this process.
    pub(crate) fn own<'v, T>(&self, all: &'v [T]) -> impl Iterator<Item = &'v T> + use<'v, T> {
        all.iter().skip(self.process).step_by(self.processes)
    }

    /// Returns whether all processes say the same.
    pub(crate) fn is_same(&self, said: Vec<u8>) -> Result<bool> {
        let heard = self.exchange(vec![said; self.processes])?;
        Ok(heard.iter().all(|other| *other == heard[0]))
    }

    /// Returns whether it is so in one process at least.
    pub(crate) fn any(&self, is_so: bool) -> Result<bool> {
        Ok(!self.those(is_so)?.is_empty())
    }
}

/// What a process sent is not what comes now.
pub(super) fn nonsense(process: usize) -> Error {
    Error::internal(format!(
        "process {process} sent something else than what comes next in settling"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces the messages of the others.
    struct Replaced(Vec<Vec<u8>>);

    impl Exchange for Replaced {
        fn exchange(&mut self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
            let others = std::mem::take(&mut self.0).into_iter();
            Ok(messages.into_iter().take(1).chain(others).collect())
        }
    }

    #[test]
    fn sums_are_of_all_or_none() {
        let sum_with = |message: &[u8]| {
            let peers = Peers::new(0, 2, Replaced(vec![message.to_vec()])).unwrap();
            let mut values = [5, -7];
            peers.sum(&mut values).map(|()| values)
        };
        assert_eq!(sum_with(&[2, 3]).unwrap(), [6, -9]);
        for nonsense in [&[2][..], &[2, 3, 4], &[2, 0x80], &[]] {
            let error = sum_with(nonsense).unwrap_err();
            assert!(error.to_string().contains("process 1 sent"), "{error}");
        }
        assert!(Peers::new(2, 2, Replaced(Vec::new())).is_err());
    }
}
