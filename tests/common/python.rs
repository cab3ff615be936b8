//! Independent readers in Python, if one is installed that has them.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Returns the Python named by CASHRANK_PYTHON, if it has these modules.
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
