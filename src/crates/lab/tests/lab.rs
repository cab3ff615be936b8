//! Tests of the experiments, and of the commands that run them, in one program.

mod commands;
#[path = "experiments/crawls.rs"]
mod crawls;
#[path = "experiments/errors.rs"]
mod errors;
#[path = "experiments/paper.rs"]
mod paper;
#[path = "experiments/webs.rs"]
mod webs;

use cashrank::Result;
use cashrank_lab::experiment::{Sample, Setting};
use cashrank_lab::web::{InDegree, OutDegree, Web};

/// Returns the paper's web, of any size.
fn power_web(pages: u64, seed: u64) -> Web {
    Web::synthetic(pages, InDegree::Power(2.1), OutDegree::Poisson, seed).unwrap()
}

/// Returns all rows of a crawl.
fn rows(setting: &Setting, web: Web) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    setting.run(web, |sample| {
        samples.push(sample);
        Ok(())
    })?;
    Ok(samples)
}
