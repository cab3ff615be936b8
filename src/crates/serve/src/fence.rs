//! What a damaged file of a frontier is to its clients.

use std::path::Path;

use cashrank_fence::Unusable;

use crate::backend::Problem;

impl Unusable for Problem {
    fn unusable(path: &Path, what: &'static str) -> Problem {
        Problem::Failed(format!("{}: damaged: {what}", path.display()))
    }
}
