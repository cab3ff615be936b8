//! Processes that are threads of a test, with channels between all of them.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::{Error, Exchange, Peers, Result};

/// A process's ends of the channels. Those of one that ended are closed.
#[derive(Default)]
struct Ends {
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Exchange for Ends {
    fn exchange(&mut self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let lost = || Error::Conflict("a process is lost".into());
        for (to, message) in self.to.iter().zip(messages) {
            to.send(message).map_err(|_| lost())?;
        }
        let from = self.from.iter();
        from.map(|from| from.recv().map_err(|_| lost())).collect()
    }
}

/// So many.
pub fn processes(count: usize) -> Vec<Peers> {
    let mut all: Vec<Ends> = (0..count).map(|_| Ends::default()).collect();
    for from in 0..count {
        for to in 0..count {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    let all = all.into_iter().enumerate();
    all.map(|(process, ends)| Peers::new(process, count, ends).unwrap())
        .collect()
}
