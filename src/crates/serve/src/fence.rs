//! The answer to clients when a frontier's file is damaged.

use std::path::Path;

use cashrank_fence::Unusable;

use crate::backend::Problem;

impl Unusable for Problem {
    fn unusable(path: &Path, what: &'static str) -> Problem {
        Problem::Failed(format!("{}: damaged: {what}", path.display()))
    }
}
