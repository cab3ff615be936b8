//! Records given one by one, by a program that has them: [`Writer`] into a store, [`Reader`] into an engine in
//! memory.

mod budget;
mod reader;
mod session;
mod writer;

pub(crate) use budget::Budget;
pub use reader::Reader;
pub(crate) use session::{Opened, Session};
pub use writer::{Options, Writer};
