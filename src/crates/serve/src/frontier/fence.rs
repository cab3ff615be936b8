//! Contains redb's panics on damaged pages of the frontier's file.

use std::path::Path;

use cashrank_fence::{self as fence, Unusable};

use crate::backend::Problem;

pub(super) type Fence = fence::Fence<Problem>;
pub(super) type Fenced<T> = fence::Fenced<T, Problem>;

impl Unusable for Problem {
    fn unusable(path: &Path, what: &'static str) -> Problem {
        Problem::Failed(format!("{}: damaged: {what}", path.display()))
    }
}
