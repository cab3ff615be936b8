//! Records given one by one, by a program that has them: [`Writer`] into a store, [`Reader`] into an engine in
//! memory.

mod again;
mod aside;
mod budget;
mod follow;
mod numbers;
mod open;
mod own;
mod parts;
#[cfg(test)]
mod parts_tests;
mod reader;
mod turns;
mod wire;
#[cfg(test)]
mod wire_tests;
mod writer;

pub(crate) use budget::{Budget, Holder};
pub use follow::follow;
pub(crate) use open::{Opened, Session, WRITTEN_FILES};
pub(crate) use own::{Again, Spoiled};
pub use reader::Reader;
pub use writer::{Options, Writer};
