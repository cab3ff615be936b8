//! `cashrank-lab plot`: cost curves from the `scale` part of the end-to-end benchmark.
//!
//! ```text
//! cargo run --release -p cashrank-lab -- plot benches/runs/2026-11-21-scale.txt > benches/scale.svg
//! ```
//!
//! Reads the lines `point {...}` of the files named (`benches/end_to_end/scale.rs` writes them) and
//! prints an SVG of two panels over the number of pages, which is drawn in decades: links a second,
//! and bytes of memory a page. Both begin at 0, and every point has its figure beside it.

mod panels;

use std::path::PathBuf;

use cashrank::Error;

use super::print;
use panels::{Panel, Point};

/// Draw the cost curves of a `scale` benchmark, as SVG to stdout.
#[derive(clap::Args)]
pub struct Args {
    /// Files of benches/runs.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        let mut text = String::new();
        for file in &self.files {
            text.push_str(&std::fs::read_to_string(file).map_err(Error::io(file, "read"))?);
        }
        let panels = panels(&text).map_err(anyhow::Error::msg)?;
        print(|out| Ok(out.write_all(panels::drawing(&panels).as_bytes())?))
    }
}

/// Makes the panels for the points of a text, in order of size.
fn panels(text: &str) -> Result<[Panel; 2], String> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let Some(json) = line.strip_prefix("point ") else {
            continue;
        };
        let point: serde_json::Value =
            serde_json::from_str(json).map_err(|error| format!("{line:?}: {error}"))?;
        let field = |name: &str| {
            let value = point[name].as_f64().filter(|value| *value > 0.0);
            value.ok_or_else(|| format!("{line:?}: {name} is no number above 0"))
        };
        rows.push((
            field("pages")?,
            field("links_per_s")?,
            field("bytes_per_page")?,
        ));
    }
    if rows.is_empty() {
        return Err("no line begins with \"point\": was it a run of the part `scale`?".into());
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let panel = |title, y: fn(&(f64, f64, f64)) -> f64| Panel {
        title,
        points: rows
            .iter()
            .map(|row| Point {
                x: row.0,
                y: y(row),
            })
            .collect(),
    };
    Ok([
        panel("links a second", |row| row.1),
        panel("bytes of memory a page, at the peak", |row| row.2),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
## scale
point {\"pages\":10000000,\"links_per_s\":4e6,\"bytes_per_page\":30.5,\"wall_s\":1}
run       something else
point {\"pages\":1000000,\"links_per_s\":5e6,\"bytes_per_page\":240,\"wall_s\":1}
";

    #[test]
    fn points_are_found_and_sorted_by_size() {
        let [speed, memory] = panels(RUN).unwrap();
        let pairs = |panel: &Panel| -> Vec<(f64, f64)> {
            panel
                .points
                .iter()
                .map(|point| (point.x, point.y))
                .collect()
        };
        assert_eq!(pairs(&speed), [(1e6, 5e6), (1e7, 4e6)]);
        assert_eq!(pairs(&memory), [(1e6, 240.0), (1e7, 30.5)]);
    }

    #[test]
    fn what_is_no_run_is_refused() {
        assert!(panels("").is_err_and(|wrong| wrong.contains("no line")));
        for bad in [
            "point {\"pages\":1}",
            "point {",
            "point {\"pages\":0,\"links_per_s\":1,\"bytes_per_page\":1}",
        ] {
            assert!(panels(bad).is_err(), "{bad}");
        }
    }
}
