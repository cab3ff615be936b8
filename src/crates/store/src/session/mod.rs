//! Records pushed one by one by a program: [`Writer`] into a store, [`Reader`] into an engine in memory.

mod budget;
mod reader;
mod writer;

pub use budget::Budget;
pub use reader::Reader;
pub use writer::{Options, Writer};
