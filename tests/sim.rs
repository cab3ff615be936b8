//! Simulated crawls: the webs are what they are said to be, and the engine driven through them keeps its
//! laws and the paper's (Abiteboul, Preda, Cobena, WWW 2003; sections are its own).

#[path = "sim/crawls.rs"]
mod crawls;
#[path = "sim/errors.rs"]
mod errors;
#[path = "sim/paper.rs"]
mod paper;
#[path = "sim/webs.rs"]
mod webs;

use cashrank::Result;
use cashrank::sim::experiment::{Sample, Setting};
use cashrank::sim::web::{InDegree, OutDegree, Web};

/// The paper's web, of any size.
fn power_web(pages: u64, seed: u64) -> Web {
    Web::synthetic(pages, InDegree::Power(2.1), OutDegree::Poisson, seed).unwrap()
}

/// All rows of a crawl.
fn rows(setting: &Setting, web: Web) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    setting.run(web, |sample| {
        samples.push(sample);
        Ok(())
    })?;
    Ok(samples)
}
