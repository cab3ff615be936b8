//! Stands for the frontier in a build that has none.

use std::io;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response};

use crate::backend::Backend;
use crate::frontier_options::FrontierOptions;
use crate::held::{HeldBody, PendingAnswers, Pieces};
use crate::limits::Limits;
use crate::pool::Ending;

/// A frontier, of which there is none.
pub(crate) struct Running {
    pub(crate) keeper: Keeper,
    pub(crate) server: Server,
    pub(crate) ending: Ending,
}

/// The thread of a frontier, of which there is none.
#[derive(Debug)]
pub(crate) enum Keeper {}

/// The calls of a frontier, of which there is none.
pub(crate) enum Server {}

/// The body of any answer.
pub(crate) type Body = HeldBody<Pieces>;

/// The body of an answer that is no call's.
pub(crate) fn body(body: HeldBody<Pieces>) -> Body {
    body
}

/// Answers a call, of which there is none.
pub(crate) async fn call(
    server: &Server,
    _: Request<Incoming>,
    _: &PendingAnswers,
) -> Response<Body> {
    match *server {}
}

/// Refuses to start one.
pub(crate) fn start(
    _: FrontierOptions,
    _: &Arc<dyn Backend>,
    _: &Limits,
    _: String,
) -> io::Result<Running> {
    let text = "a frontier: this build of cashrank-serve lacks the feature frontier";
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}
