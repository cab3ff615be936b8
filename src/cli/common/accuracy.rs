//! Descriptions of how far a ranking may be from PageRank, and which pages are certainly more important than others.

use std::io::{self, Write};

use cashrank_graph::metrics::moved::is_certainly_above;
use cashrank_graph::sites::Level;
use cashrank_store::snapshot::{Expired, Info};

use super::{pages, shown, thousands, time};

/// Links whose PageRank a bound refers to: the latest of every page, or all as read if a window may hold earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    Latest,
    AsRead,
}

impl Basis {
    /// Returns the basis of a snapshot's bound. If each page was visited once, the links read are the latest.
    pub fn of(info: &Info) -> Basis {
        if info.window.settled.is_some() || info.visits == info.counters.visited {
            Basis::Latest
        } else {
            Basis::AsRead
        }
    }
}

pub fn accuracy(l1: Option<f64>, basis: Basis) -> String {
    // The L1 distance of two rankings is at most 2.
    let Some(l1) = l1.filter(|l1| *l1 < 2.0) else {
        return "accuracy: not provable yet (`cashrank settle` proves a bound; reading more of the crawl, or --repeat, \
        may do so)".into();
    };
    let of = match basis {
        Basis::Latest => "",
        Basis::AsRead => " against PageRank of the links as they were read",
    };
    format!(
        "accuracy: total error at most {}{of} (L1, certified)",
        rounded_up(l1)
    )
}

/// Describes how many first positions are certain; `None` if none is. `by` names the order, like "most important".
pub fn certain_text(certain: Option<u64>, level: Level, by: &str) -> Option<String> {
    match certain? {
        0 => None,
        1 => Some(format!(
            "the first {} is certainly the {by}",
            level.singular()
        )),
        n => {
            let (n, level) = (thousands(n), level.plural());
            Some(format!(
                "the first {n} {level} are certainly the {n} {by}, in some order"
            ))
        }
    }
}

pub fn certain_pages(certain: Option<u64>) -> Option<String> {
    certain_text(certain, Level::Page, "most important")
}

/// Describes the accuracy of a snapshot, and the links that it leaves out.
pub fn accuracy_of(info: &Info) -> String {
    let accuracy = accuracy(info.bound_l1(), Basis::of(info));
    match info.expired {
        Some(expired) if expired.pages > 0 => format!("{accuracy}; {}", left_out(expired)),
        _ => accuracy,
    }
}

/// Warns of pages with times too far ahead to count ages from; `None` if there are none.
pub fn not_believed(expired: Expired) -> Option<String> {
    (expired.ahead > 0).then(|| {
        format!(
            "warning: {} dated more than a year after all others, so links expire as if these dates were not: a wrong \
             clock, perhaps (links of pages last fetched before {} are left out)",
            match expired.ahead {
                1 => "1 page is".to_owned(),
                many => format!("{} pages are", thousands(many)),
            },
            time(Some(expired.before))
        )
    })
}

pub fn left_out(expired: Expired) -> String {
    format!(
        "without the links of {} last fetched before {}",
        pages(expired.pages),
        time(Some(expired.before))
    )
}

/// Formats a bound with two significant digits, never rounded down: `0.0089`.
pub fn rounded_up(bound: f64) -> String {
    if bound <= 0.0 {
        return "0".into();
    }
    if bound < 1e-5 {
        return format!("{:.1e}", bound * (1.0 + 5e-2));
    }
    let decimals = (1 - bound.log10().floor() as i32).max(1);
    let scale = 10f64.powi(decimals);
    // The tolerance keeps a round number with a floating-point error above it from being rounded up.
    let up = (bound * scale - 1e-9).ceil() / scale;
    format!("{up:.*}", decimals as usize)
}

/// Writes one line for each two known pages that are adjacent in importance.
pub fn write_certain(
    out: &mut dyn Write,
    mut known: Vec<(&str, f64)>,
    (bound, basis): (Option<f64>, Basis),
) -> io::Result<()> {
    let by = match basis {
        Basis::Latest => "",
        Basis::AsRead => ", by the links as they were read",
    };
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    for two in known.windows(2) {
        let ((upper, importance), (lower, less)) = (two[0], two[1]);
        let (upper, lower) = (shown(upper), shown(lower));
        if is_certainly_above(importance, less, bound) {
            writeln!(out, "{upper} is certainly more important than {lower}{by}")?
        } else {
            writeln!(
                out,
                "{upper} and {lower}: not certain which is more important"
            )?
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_told_with_two_digits_and_never_too_small() {
        for (bound, shown) in [
            (8.884e-3, "0.0089"),
            (0.19, "0.19"),
            (0.190_001, "0.20"),
            (1.0, "1.0"),
            (1.234, "1.3"),
            (0.05, "0.050"),
            (2.7e-5, "0.000027"),
            (0.0, "0"),
        ] {
            assert_eq!(rounded_up(bound), shown);
        }
        let tiny = rounded_up(3.21e-9);
        let number: f64 = tiny.parse().unwrap();
        assert!((3.21e-9..4e-9).contains(&number), "{tiny}");
        assert!(accuracy(Some(2.0), Basis::Latest).contains("not provable"));
        assert!(
            accuracy(Some(8.884e-3), Basis::Latest)
                .contains("accuracy: total error at most 0.0089 (L1, certified)")
        );
    }
}
