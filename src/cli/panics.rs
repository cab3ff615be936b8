use std::panic::{set_hook, take_hook};

use cashrank_store::store::{PanicFate, fenced};

use super::common::Exit;
use crate::cli::common::say;

/// Installs a panic hook that is silent about redb's panics on damaged pages, which are returned as errors. If one of
/// these panics cannot be caught, the process exits as for any damaged file. All other panics are reported as usual.
pub fn hear() {
    let usual = take_hook();
    set_hook(Box::new(move |panic| match fenced(panic) {
        PanicFate::Outside => usual(panic),
        PanicFate::Caught => {}
        PanicFate::Final => {
            say!(
                "cashrank: redb cannot use its pages: the store, or the frontier's file, is damaged, and cannot be \
                 used any more; `verify --deep` checks a store"
            );
            std::process::exit(Exit::Damaged as i32);
        }
    }));
}
