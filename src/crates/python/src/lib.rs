//! The Python package `cashrank`: the library's stores, rankings and answers as Python's objects.
//!
//! `python/cashrank` is what people import; this is its module `_cashrank`. What takes long runs without the interpreter's
//! lock, and hears Ctrl-C (`work.rs`); the writer of a store is used by turns (`writer.rs`); tables come and go in Arrow's
//! layout (`arrow.rs`, `batch.rs`). `python/cashrank/_cashrank.pyi` has the types, and a test holds them against this.

mod answers;
mod arrow;
mod batch;
mod errors;
mod graph;
mod ingest;
mod next;
mod options;
mod ranking;
mod record;
mod store;
mod work;
mod writer;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _cashrank(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(options::open, module)?)?;
    module.add_function(wrap_pyfunction!(graph::pagerank, module)?)?;
    module.add_class::<store::Store>()?;
    module.add_class::<ranking::Ranking>()?;
    module.add_class::<answers::Page>()?;
    module.add_class::<answers::PyCandidate>()?;
    module.add_class::<answers::PyMove>()?;
    module.add_class::<answers::PyMoment>()?;
    module.add_class::<answers::Comparison>()?;
    module.add_class::<answers::SnapshotInfo>()?;
    Ok(())
}
