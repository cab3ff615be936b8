//! Conversion of the library's errors to answers of the service.

use cashrank::Error;
use cashrank_base::model::name_settings;
use cashrank_serve::Problem;

/// Returns an error's message with settings named as parameters.
pub fn as_parameters(error: &Error) -> String {
    name_settings(&error.to_string(), |name| name.replace('_', "-"))
}

pub fn problem(error: Error) -> Problem {
    match error {
        refused if refused.is_refusal() => Problem::Asked(as_parameters(&refused)),
        other => Problem::Failed(other.to_string()),
    }
}
