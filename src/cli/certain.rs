//! Which of several pages are certainly more important than others: one rule and one wording for all commands that
//! compare pages.

use std::io::{self, Write};

use cashrank_graph::metrics::moved::is_certainly_above;

use super::common::{Basis, shown};

/// Requested page and its importance, `None` if unknown.
pub type Asked<'a> = (&'a str, Option<f64>);

/// Returns for each page the other pages that are certainly less important.
pub fn certainly_above<'a>(pages: &[Asked<'a>], bound: Option<f64>) -> Vec<Vec<&'a str>> {
    let below = |importance: f64| {
        let others = pages.iter().filter(|(_, other)| {
            other.is_some_and(|other| is_certainly_above(importance, other, bound))
        });
        others.map(|(url, _)| *url).collect()
    };
    let all = pages.iter().map(|(_, importance)| *importance);
    all.map(|importance| importance.map_or_else(Vec::new, below))
        .collect()
}

/// Writes one line for each two known pages that are adjacent in importance, each prefixed with `start`.
pub fn write_certain(
    out: &mut dyn Write,
    start: &str,
    pages: &[Asked<'_>],
    (bound, basis): (Option<f64>, Basis),
) -> io::Result<()> {
    let by = match basis {
        Basis::Latest => "",
        Basis::AsRead => ", by the links as they were read",
    };
    let known = pages.iter().filter_map(|&(url, known)| Some((url, known?)));
    let mut known: Vec<(&str, f64)> = known.collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    for two in known.windows(2) {
        let ((upper, importance), (lower, less)) = (two[0], two[1]);
        let (upper, lower) = (shown(upper), shown(lower));
        if is_certainly_above(importance, less, bound) {
            writeln!(
                out,
                "{start}{upper} is certainly more important than {lower}{by}"
            )?
        } else {
            writeln!(
                out,
                "{start}{upper} and {lower}: not certain which is more important"
            )?
        }
    }
    Ok(())
}
