//! Panics, as a user should hear of them.

use std::panic::{set_hook, take_hook};

use cashrank_store::store::{PanicFate, fenced};

use super::common::Exit;
use crate::cli::common::say;

/// Keeps quiet about panics of the database on rotten pages, which become an error of their own; one that cannot
/// be caught ends the process as any damaged file does. All others are reported as usual.
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
