//! Survival of unsynced changes in a power cut.

use crate::crawl::Dice;

/// Rule for the survival of unsynced changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Nothing.
    Nothing,
    /// Everything: the process died, not the machine.
    Everything,
    /// All changes up to some moment.
    Earlier,
    /// All changes from some moment on.
    Later,
    /// All changes of some files, none of others.
    Files,
    /// Each sector and each name independently.
    Sectors,
}

impl Survival {
    pub const ALL: [Survival; 6] = [
        Survival::Nothing,
        Survival::Everything,
        Survival::Earlier,
        Survival::Later,
        Survival::Files,
        Survival::Sectors,
    ];
}

/// Decides what survives a cut.
pub struct Fate {
    survival: Survival,
    dice: Dice,
    moment: u64,
    file: bool,
}

impl Fate {
    pub(super) fn new(survival: Survival, mut dice: Dice, operations: u64) -> Fate {
        Fate {
            survival,
            // Most unsynced changes are recent.
            moment: operations.saturating_sub(dice.roll(40)),
            file: dice.coin(),
            dice,
        }
    }

    pub(super) fn next_file(&mut self) {
        self.file = self.dice.coin();
    }

    pub(super) fn survives(&mut self, operation: u64) -> bool {
        match self.survival {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Earlier => operation <= self.moment,
            Survival::Later => operation > self.moment,
            Survival::Files => self.file,
            Survival::Sectors => self.dice.coin(),
        }
    }
}
