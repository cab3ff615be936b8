//! Records given one by one, by a program that has them.

mod reader;

pub use reader::Reader;
