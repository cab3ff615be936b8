//! Other people's readers, where there is a Python that has them.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Python with these modules, if CASHRANK_PYTHON names one.
pub fn python(modules: &str) -> Option<OsString> {
    let python = std::env::var_os("CASHRANK_PYTHON")?;
    let imported = Command::new(&python)
        .args(["-c", &format!("import {modules}")])
        .stderr(Stdio::null())
        .status();
    imported
        .is_ok_and(|status| status.success())
        .then_some(python)
}
