//! The process of an ingest that is not the first: it has some of the partitions, and does with them what the first one says.
//!
//! ```text
//! message of process 0: nothing: it is over | 0: what it says (Said) | 1: names that are new (numbers), records (wire) | what
//!     snapshots say (ShareOrder)
//! ```
//!
//! All processes answer at the same time, so each step is the same in all.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::numbers::Known;
use super::open::WRITTEN_FILES;
use super::own::{Opening, Order, OwnParts};
use super::turns::Grows;
use super::wire;
use crate::disk::{Disk, allow_open_files};
use crate::model::Fingerprint;
use crate::rank::settle::{Peers, Workers};
use crate::snapshot::{Residency, Share, ShareOrder, Watcher};
use crate::store::{
    Ask, Asked, PartSeen, Settings, SomeParts, View, make_folders, packed, unpacked,
};
use crate::{Error, Result};

/// The first byte of a message with [`Said`],
const SAID: u8 = 0;
/// and of one with records; behind it is whether numbering of names restarts, and whether records wait, with their names.
pub(super) const APPLY: u8 = 1;

/// What process 0 says: of what it has ([`Say`]), or the others have heard ([`Heard`]).
#[derive(Serialize, Deserialize)]
pub(super) enum Said<Openings, Orders, Names> {
    /// Open the partitions.
    Open(Openings),
    /// Do this with them.
    Order(Orders),
    /// Look which of these names, with their partitions, are not known.
    Unknown(Names),
    /// Apply the records that wait.
    TakeATurn,
    /// Say what the last commits are; orders of snapshots are of these.
    View,
    /// Send what is asked of a partition in one of them.
    Ask(u32, Asked),
    /// An epoch is over, and whether a round is.
    EndEpoch(bool),
}

pub(super) type Say<'a> = Said<&'a Opening, &'a Order, &'a [(u32, Fingerprint)]>;
type Heard = Said<Opening, Order, Vec<(u32, Fingerprint)>>;

/// Tells the other processes, if there are any.
pub(super) fn announce(peers: &Peers, said: &Say<'_>) -> Result<()> {
    if peers.processes() == 1 {
        return Ok(());
    }
    let mut message = vec![SAID];
    message.extend(packed(said)?);
    peers.hear(message).map(drop)
}

/// Reads of partitions of other processes.
pub(super) fn ask(peers: &Peers) -> Ask {
    let peers = peers.clone();
    Arc::new(move |part, asked| {
        announce(&peers, &Said::Ask(part as u32, asked))?;
        let mut heard = peers.exchange(vec![Vec::new(); peers.processes()])?;
        Ok(heard.swap_remove(peers.process_of(part)))
    })
}

/// What a process that is not the first works with.
struct Follower<'d> {
    disk: &'d Arc<dyn Disk>,
    dir: &'d Path,
    workers: &'d Workers,
    /// What it may take of memory in all, and how many partitions there may be in that when they are settled.
    within: Residency,
    open: Option<Open>,
    /// The last committed states, and what is settled of them.
    share: Option<Share<'d>>,
}

/// The partitions, once they are open.
struct Open {
    own: OwnParts,
    settings: Settings,
    known: Known,
}

/// Does what process 0 of an ingest says with the partitions of this process, which are in the folder `dir`, until it is over, in
/// so much memory in all.
///
/// # Errors
/// Those of reading and writing partitions, and of [`crate::rank::settle::Exchange`].
pub fn follow(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    workers: &Workers,
    within: Residency,
    watcher: &Watcher,
) -> Result<()> {
    let mut follower = Follower {
        disk,
        dir,
        workers,
        within,
        open: None,
        share: None,
    };
    loop {
        let message = workers.peers.hear(Vec::new())?;
        match message.split_first() {
            None => return Ok(()),
            Some((&SAID, said)) => follower.obey(unpacked(said)?)?,
            Some((&APPLY, records)) => follower.apply(records)?,
            Some(_) => {
                let share = follower.share.as_mut();
                let share = share.ok_or_else(|| unexpected("a ranking before its state"))?;
                share.obey(ShareOrder::of(&message)?, workers, watcher)?;
            }
        }
    }
}

fn unexpected(what: &str) -> Error {
    Error::internal(format!("process 0 sent {what}"))
}

impl Follower<'_> {
    fn open(&mut self) -> Result<&mut Open> {
        let open = self.open.as_mut();
        open.ok_or_else(|| unexpected("something before the start"))
    }

    fn obey(&mut self, said: Heard) -> Result<()> {
        match said {
            Said::Open(opening) => self.begin(&opening),
            Said::Order(order) => {
                // What is settled goes with its state.
                self.share = None;
                // What they can go on after, process 0 says.
                let _ = self.open()?.own.obey(&order)?;
                Ok(())
            }
            Said::Unknown(names) => self.open()?.own.unknown(&names).map(drop),
            Said::TakeATurn => self.take_a_turn(),
            Said::View => self.view(),
            Said::Ask(part, asked) => self.answer(part, asked),
            Said::EndEpoch(ends_round) => {
                self.share = None;
                self.open()?.own.follow_epoch(ends_round)
            }
        }
    }

    fn begin(&mut self, opening: &Opening) -> Result<()> {
        make_folders(&**self.disk, self.dir)?;
        let settings = serde_json::from_str(&opening.settings);
        let settings: Settings = settings.map_err(|error| Error::internal(error.to_string()))?;
        let count = settings.partitions.count;
        let own = (0..count).filter(|&number| self.workers.peers.has(number as usize));
        allow_open_files(WRITTEN_FILES * own.count() as u64, count)?;
        let mut own = OwnParts::open(
            self.disk,
            (self.dir, &settings),
            opening,
            self.workers,
            self.within,
        )?;
        own.check(self.within.memory)?;
        own.share_states()?;
        self.open = Some(Open {
            own,
            settings,
            known: Known::default(),
        });
        Ok(())
    }

    fn apply(&mut self, records: &[u8]) -> Result<()> {
        self.share = None;
        let memory = self.within.memory;
        let peers = self.workers.peers.clone();
        let Open { own, known, .. } = self.open()?;
        let Some((&[begins, wait], mut records)) = records.split_first_chunk() else {
            return Err(unexpected("no records"));
        };
        if begins == 1 {
            known.forget();
        }
        let prints = own.prints.clone();
        if wait == 0 {
            known.learn(&mut records, &prints, &peers)?;
        }
        let parts = wire::parts(records)?;
        let of = |number: u32| {
            let part = parts.iter().find(|part| part.number == number);
            part.ok_or_else(|| unexpected("no records for a partition"))
        };
        if wait == 1 {
            let pack = |number: u32| {
                let part = of(number)?;
                Ok((part.records.to_vec(), part.names))
            };
            return own.wait(begins == 1, pack).map(drop);
        }
        if begins == 1 {
            own.forget_names();
        }
        let names = (&*known, &prints);
        let new = own.apply(|part, limit| {
            let number = part.number;
            part.apply(&wire::take(of(number)?.records, number, names)?, limit)
        })?;
        // What it says of its partitions is to be what is then.
        own.fit(memory, Grows::AtOnce)?;
        own.meet(new).map(drop)
    }

    fn take_a_turn(&mut self) -> Result<()> {
        self.share = None;
        let memory = self.within.memory;
        let Open { own, .. } = self.open()?;
        for piece in 0..own.take_a_turn()? {
            let new = own.result(piece)?;
            own.meet(new)?;
        }
        own.end_turn()?;
        own.fit(memory, Grows::InTurns)
    }

    fn view(&mut self) -> Result<()> {
        let (disk, dir, workers) = (self.disk, self.dir, self.workers);
        let mut within = self.within;
        let Open { own, settings, .. } = self.open()?;
        within.memory = own.memory_left(within.memory);
        let (_, views) = own.views()?;
        let seen: Vec<PartSeen> = views.iter().map(View::seen).collect();
        workers.peers.all(seen)?;
        let parts = SomeParts::of(&**disk, settings, views)?;
        self.share = Some(Share::of(&**disk, dir, parts, within));
        Ok(())
    }

    fn answer(&mut self, part: u32, asked: Asked) -> Result<()> {
        let peers = &self.workers.peers;
        let mut messages = vec![Vec::new(); peers.processes()];
        if peers.has(part as usize) {
            let share = self.share.as_ref();
            let share = share.ok_or_else(|| unexpected("a question before its state"))?;
            messages[0] = share.answer(peers.place(part as usize), asked)?;
        }
        peers.exchange(messages).map(drop)
    }
}
