//! Rounds of messages between all processes on timely dataflow: each process has one worker, to which the one dataflow
//! takes the pieces of its messages. A round is a timestamp, and is complete when the frontier has passed it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use cashrank_base::codec::varint;
use cashrank_base::threads::lock;
use cashrank_base::{Error, Result};
use cashrank_store::shards::{LocalShard, Peers, check_together};
use serde::{Deserialize, Serialize};
use timely::WorkerConfig;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::vec::Input;
use timely::dataflow::operators::{Exchange, Inspect, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::execute::execute_from;
use timely::worker::Worker;

use crate::line::PeerLink;
use crate::meeting::PeerLinks;
use crate::{Joining, failed, no_thread, reason};

const PIECE: usize = 1 << 15;
/// zstd's level for messages: higher levels take longer than most networks.
const LEVEL: i32 = 1;

/// Event for the thread that waits for a round.
pub(crate) enum Event {
    /// The round is complete: the message of each process.
    Round(Vec<Vec<u8>>),
    /// A process is lost, and no further round will complete.
    Failed(Error),
    /// Timely's threads have ended after all messages were sent and received.
    Ended(std::result::Result<(), String>),
}

/// Piece of a message. Pieces from one process to another keep their order.
#[derive(Clone, Serialize, Deserialize)]
struct MessagePiece {
    to: u64,
    from: u32,
    round: u64,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

/// Received messages by round, from each process.
type Inbox = Rc<RefCell<BTreeMap<u64, Vec<Vec<u8>>>>>;

struct Rounds {
    input: InputHandle<u64, CapacityContainerBuilder<Vec<MessagePiece>>>,
    probe: ProbeHandle<u64>,
    inbox: Inbox,
    round: u64,
}

impl Rounds {
    fn new(worker: &mut Worker) -> Rounds {
        let inbox = Inbox::default();
        let (into, peers) = (inbox.clone(), worker.peers());
        let probe = ProbeHandle::new();
        let input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, pieces) = scope.new_input::<MessagePiece>();
            pieces
                .exchange(|piece: &MessagePiece| piece.to)
                .inspect(move |piece| {
                    let mut inbox = into.borrow_mut();
                    let round = inbox.entry(piece.round);
                    let round = round.or_insert_with(|| vec![Vec::new(); peers]);
                    if let Some(message) = round.get_mut(piece.from as usize) {
                        message.extend_from_slice(&piece.bytes);
                    }
                })
                .probe_with(&probe);
            input
        });
        Rounds {
            input,
            probe,
            inbox,
            round: 0,
        }
    }

    fn exchange(&mut self, worker: &mut Worker, mut messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let (index, round) = (worker.index(), self.round);
        let own = messages.get_mut(index).map(mem::take);
        for (to, message) in messages.into_iter().enumerate() {
            for piece in message.chunks(PIECE) {
                self.input.send(MessagePiece {
                    to: to as u64,
                    from: index as u32,
                    round,
                    bytes: piece.into(),
                });
            }
        }
        self.round += 1;
        self.input.advance_to(self.round);
        while self.probe.less_than(&self.round) {
            worker.step_or_park(None);
        }
        let mut got = self.inbox.borrow_mut().remove(&round);
        let got = got.get_or_insert_with(|| vec![Vec::new(); worker.peers()]);
        if let (Some(place), Some(own)) = (got.get_mut(index), own) {
            *place = own;
        }
        mem::take(got)
    }
}

pub struct Cluster {
    process: usize,
    lines: Vec<Option<PeerLink>>,
    /// Channel of messages for the worker; `None` when there are no more.
    messages: Option<Sender<Vec<Vec<u8>>>>,
    events: (Sender<Event>, Receiver<Event>),
    silence: Duration,
    guards: Option<WorkerGuards<()>>,
    /// Process of each shard; empty until shards are assigned.
    process_of: Vec<usize>,
    local: Vec<usize>,
}

impl Cluster {
    pub(crate) fn start(joining: &Joining, met: PeerLinks) -> Result<Cluster> {
        let no_start = |what: String| failed(format!("cannot start the exchange: {what}"));
        let hooks = Hooks::default();
        let own = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), None);
        let sockets = met.lines.clone();
        // Timely panics, or waits forever, if one of its threads cannot be started, so the same number is tried first.
        let hold = Arc::new(Mutex::new(()));
        let held = hold.lock();
        let places = (0..2 * met.lines.len() - 1).map(|_| {
            let hold = hold.clone();
            let place = thread::Builder::new().name("reserved".into());
            place.spawn(move || drop(hold.lock()))
        });
        let places: Vec<_> = places.collect::<io::Result<_>>().map_err(no_thread)?;
        drop(held);
        places.into_iter().for_each(|place| drop(place.join()));
        let (workers, guard) =
            initialize_networking_from_sockets(own, sockets, joining.process, 1, hooks)
                .map_err(no_thread)?;
        let workers = workers.into_iter().map(AllocatorBuilder::Tcp).collect();
        let (messages, wanted) = mpsc::channel();
        let ends = Mutex::new(Some((wanted, met.events.0.clone())));
        let guards = execute_from(
            workers,
            Box::new(guard),
            WorkerConfig::default(),
            move |worker| {
                let ends = lock(&ends).take();
                let Some((wanted, events)) = ends else {
                    return;
                };
                let mut rounds = Rounds::new(worker);
                while let Ok(messages) = wanted.recv() {
                    let got = rounds.exchange(worker, messages);
                    if events.send(Event::Round(got)).is_err() {
                        break;
                    }
                }
            },
        );
        Ok(Cluster {
            process: joining.process,
            lines: met.lines,
            messages: Some(messages),
            events: met.events,
            silence: joining.silence,
            guards: Some(guards.map_err(no_start)?),
            process_of: Vec::new(),
            local: Vec::new(),
        })
    }

    /// Tells all processes which shards this one has, so that messages between shards find their process. Fails if a
    /// process is lost, or if the stores are not the shards of one crawl, once each.
    pub fn assign(&mut self, local: &[LocalShard]) -> Result<()> {
        let numbers = local.iter().map(|store| store.shard.number() as usize);
        self.local = numbers.collect();
        let shards = check_together(local, self)?;
        self.process_of = shards.iter().map(|(process, _)| *process).collect();
        Ok(())
    }

    /// Sends each process its message, by number, compressed, and returns each one's message for this process, once all
    /// have arrived. The message to itself is returned. Fails with [`Error::Io`] if a process has ended or is silent.
    pub fn exchange(&mut self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let Some(sender) = &self.messages else {
            return Err(failed("a process was lost before"));
        };
        if self.lines.len() == 1 {
            return Ok(messages);
        }
        let packed = self.of_others(messages, |bytes| zstd::bulk::compress(bytes, LEVEL));
        let sent = sender.send(packed?);
        let heard = match sent {
            Ok(()) => self.events.1.recv().ok(),
            Err(_) => self.events.1.try_recv().ok(),
        };
        match heard {
            Some(Event::Round(got)) => self.of_others(got, |bytes| zstd::decode_all(bytes)),
            Some(Event::Failed(error)) => Err(self.lost(error)),
            Some(Event::Ended(_)) | None => Err(self.lost(failed("the exchange ended"))),
        }
    }

    fn of_others(
        &self,
        mut messages: Vec<Vec<u8>>,
        convert: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        for (process, message) in messages.iter_mut().enumerate() {
            if process != self.process && !message.is_empty() {
                *message = convert(message).map_err(|error| {
                    failed(format!("a message of or for process {process}: {error}"))
                })?;
            }
        }
        Ok(messages)
    }

    fn lost(&mut self, error: Error) -> Error {
        self.abandon(&reason(&error));
        error
    }

    /// Tells the others that this process ends, and why. Nothing can be exchanged afterwards.
    pub fn abandon(&mut self, why: &str) {
        self.lines
            .iter()
            .flatten()
            .for_each(|line| line.abandon(why));
        self.messages = None;
        // The threads wait for a lost process, and end with this one.
        mem::forget(self.guards.take());
    }

    /// Ends the joint work; all processes call it after the same round. Fails with [`Error::Io`] if one ended before.
    pub fn finish(mut self) -> Result<()> {
        // After this round no process needs another.
        self.exchange(vec![Vec::new(); self.lines.len()])?;
        self.messages = None;
        let Some(guards) = self.guards.take() else {
            return Ok(());
        };
        // The threads end once every process has announced that it is done.
        let events = self.events.0.clone();
        thread::Builder::new()
            .name("end".into())
            .spawn(move || {
                let ended: std::result::Result<Vec<()>, _> = guards.join().into_iter().collect();
                let _ = events.send(Event::Ended(ended.map(drop)));
            })
            .map_err(no_thread)?;
        match self.events.1.recv_timeout(self.silence) {
            Ok(Event::Ended(Ok(()))) => Ok(()),
            Ok(Event::Ended(Err(what))) => Err(failed(what)),
            Ok(Event::Failed(error)) => Err(error),
            Ok(Event::Round(_)) | Err(_) => Err(failed("a process did not end")),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.guards.is_some() {
            self.abandon("it stopped before the end");
        }
    }
}

impl Peers for Cluster {
    fn shards(&self) -> usize {
        self.process_of.len()
    }

    fn local(&self) -> &[usize] {
        &self.local
    }

    fn exchange(&mut self, outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut parcels = vec![Vec::new(); self.lines.len()];
        for (from, messages) in self.local.iter().zip(outgoing) {
            for (to, message) in messages.into_iter().enumerate() {
                if message.is_empty() {
                    continue;
                }
                let parcel: &mut Vec<u8> = &mut parcels[self.process_of[to]];
                for number in [*from, to, message.len()] {
                    varint::put(parcel, number as u128);
                }
                parcel.extend(message);
            }
        }
        let unclear = || failed("another process sent what this one does not understand");
        let mut incoming = vec![vec![Vec::new(); self.process_of.len()]; self.local.len()];
        for parcel in Cluster::exchange(self, parcels)? {
            let mut rest = &parcel[..];
            while !rest.is_empty() {
                let number = |_| usize::try_from(varint::take(&mut rest)?).ok();
                let [Some(from), Some(to), Some(len)] = [(); 3].map(number) else {
                    return Err(unclear());
                };
                let message = rest.split_off(..len).ok_or_else(unclear)?;
                let at = self.local.binary_search(&to).map_err(|_| unclear())?;
                let place = incoming[at].get_mut(from);
                *place.ok_or_else(unclear)? = message.to_vec();
            }
        }
        Ok(incoming)
    }

    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let to_all = vec![own; self.lines.len()];
        Cluster::exchange(self, to_all)
    }
}
