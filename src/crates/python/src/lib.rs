//! The Python package `cashrank`: the library's stores, rankings and answers as Python objects.
//!
//! Programs import `python/cashrank`; this is its module `_cashrank`. Long work runs without the interpreter's lock,
//! and Ctrl-C ends it (`work.rs`); threads share the writer of a store (`writer.rs`); tables are in Arrow's layout
//! (`arrow.rs`, `batch.rs`). A test compares this module with the types in `python/cashrank/_cashrank.pyi`.

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
