//! The engine through the public library: closed forms, the conservation law, the certificate,
//! windows and ranks. Expected values come from formulas (derived in comments) or from
//! `reference.rs`, a second engine written from the definitions alone.

use crate::common;

#[path = "engine/certificate.rs"]
mod certificate;
#[path = "engine/closed_form.rs"]
mod closed_form;
#[path = "engine/interpolation.rs"]
mod interpolation;
#[path = "engine/measures.rs"]
mod measures;
#[path = "engine/moved.rs"]
mod moved;
#[path = "engine/paper.rs"]
mod paper;
#[path = "engine/reference.rs"]
pub mod reference;
#[path = "engine/same.rs"]
mod same;
#[path = "engine/stream.rs"]
pub mod stream;
#[path = "engine/weights.rs"]
mod weights;
#[path = "engine/windows.rs"]
mod windows;
