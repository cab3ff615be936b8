//! Options of commands that read rankings of pages or sites, and descriptions of a ranking's accuracy.

use std::io::{self, Write};

use cashrank_base::rules::Scope;
use cashrank_graph::metrics::moved::is_certainly_above;
use cashrank_graph::rank::measures::{Accuracy, MEASURES};
use cashrank_graph::sites::{Level, SiteLinks};
use cashrank_store::snapshot::{
    ComputedInfo, Expired, Info, LevelRanking, RankingName, Selection, Snapshot,
};
use cashrank_store::store::RealDisk;
use clap::ArgAction;

use super::common::{Forms, MemoryArg, counted, pages, parsed, say, shown, thousands, time, words};

#[derive(clap::Args)]
pub struct LevelArgs {
    /// The ranking by this measure of importance, which `cashrank compute` made [default: the snapshot's own ranking].
    #[arg(long, value_name = "MEASURE", value_parser = rankings(), action = ArgAction::Set, num_args = 1)]
    measure: Vec<String>,
    /// Show pages, or sites; the importance of a site is that of its pages together.
    #[arg(long, value_name = "LEVEL", default_value = "page", value_parser = levels())]
    pub level: Level,
}

impl LevelArgs {
    pub fn measure(&self) -> Option<&str> {
        self.measures()[0]
    }

    /// Returns all measures of a command that takes several; at least one.
    pub fn measures(&self) -> Vec<Option<&str>> {
        if self.measure.is_empty() {
            return vec![None];
        }
        let given = self.measure.iter().map(String::as_str);
        given
            .map(|name| (name != IMPORTANCE).then_some(name))
            .collect()
    }

    pub fn open(&self, snapshot: Snapshot, memory: &MemoryArg) -> cashrank::Result<LevelRanking> {
        self.open_by(snapshot, self.measure(), memory)
    }

    /// Returns the options that apply to the ranking of a single store, each with whether it is given.
    pub fn given(&self) -> [(bool, &'static str); 2] {
        [
            (!self.measure.is_empty(), "--measure"),
            (!self.level.is_page(), "--level"),
        ]
    }

    pub fn open_by(
        &self,
        snapshot: Snapshot,
        measure: Option<&str>,
        memory: &MemoryArg,
    ) -> cashrank::Result<LevelRanking> {
        let name = self.name(measure);
        LevelRanking::open(&RealDisk, snapshot, &name, self.budget(memory))
    }

    /// Returns the memory that sites may take, in bytes; `None` for pages, of which nothing is held.
    pub fn budget(&self, memory: &MemoryArg) -> Option<u64> {
        match self.level {
            Level::Page => None,
            _ => memory.budget(),
        }
    }

    pub fn name(&self, measure: Option<&str>) -> RankingName {
        RankingName {
            level: self.level,
            measure: measure.map(str::to_owned),
        }
    }

    /// Returns whether the ranking is the snapshot, or the sums of it by sites.
    pub fn is_importance(&self) -> bool {
        self.measures() == [None]
    }

    pub fn is_usual(&self) -> bool {
        self.is_importance() && self.level.is_page()
    }
}

#[derive(clap::Args)]
pub struct SelectionArgs {
    /// Only these pages, like domain:example.org; with ! in front: all but these [default: all].
    ///
    /// host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN with *. May be repeated.
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>)]
    scope: Vec<Scope>,
    /// Leave out pages that are gone: that answered 404 or 410 when they were last fetched.
    #[arg(long)]
    pub without_gone: bool,
}

impl SelectionArgs {
    pub fn selection(&self) -> Selection {
        Selection {
            scope: all_of(&self.scope),
            without_gone: self.without_gone,
        }
    }
}

pub fn all_of(rules: &[Scope]) -> Scope {
    let mut all = Scope::default();
    rules.iter().cloned().for_each(|rules| all.add(rules));
    all
}

pub fn levels() -> Forms<Level> {
    Forms::new(Level::FORMS, parsed::<Level>)
}

const IMPORTANCE: &str = "importance";

pub fn measures() -> impl clap::builder::TypedValueParser<Value = String> {
    words::<String>(MEASURES.iter().map(|measure| (measure.name, measure.about)))
}

/// Parses the names of all rankings, including importance, which every snapshot has.
fn rankings() -> impl clap::builder::TypedValueParser<Value = String> {
    let importance = (IMPORTANCE, "the ranking that each snapshot has");
    let measures = MEASURES.iter().map(|measure| (measure.name, measure.about));
    words::<String>([importance].into_iter().chain(measures))
}

pub fn counted_of(level: Level, count: u64) -> String {
    counted(count, level.singular(), level.plural())
}

pub fn certain_of(ranking: &LevelRanking, certain: Option<u64>) -> Option<String> {
    let level = ranking.level();
    let by = match ranking.computed() {
        Some(info) => format!("first by {}", info.measure),
        None => "most important".into(),
    };
    certain_text(certain, level, &by)
}

/// Prints a note if scores may differ although no link does.
pub fn note_parameters(left: &LevelRanking, right: &LevelRanking) {
    let parameters = |side: &LevelRanking| side.computed().map(|info| info.parameters.clone());
    if parameters(left) != parameters(right) {
        say!(
            "note: the two rankings were computed with different parameters, so their scores are not comparable"
        );
    }
}

#[derive(clap::Args)]
pub struct SiteGraphArgs {
    /// What a link from one site to another weighs.
    #[arg(long, value_name = "WHAT", default_value = "count", value_parser = words::<SiteLinks>(SiteLinks::ALL.map(|of| (of.name(), of.about()))))]
    pub site_links: SiteLinks,
}

impl SiteGraphArgs {
    pub fn is_usual(&self) -> bool {
        self.site_links == SiteLinks::default()
    }
}

pub fn sureness_of(ranking: &LevelRanking) -> String {
    match ranking.computed() {
        Some(info) => sureness(info),
        None => accuracy_of(ranking.snapshot().info()),
    }
}

pub fn sureness(info: &ComputedInfo) -> String {
    format!("{}: {}", info.measure, accuracy_of_measure(info.accuracy))
}

pub fn accuracy_of_measure(accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => "exact".into(),
        Accuracy::BoundL1(bound) if bound < 2.0 => {
            format!("total error at most {} (L1, certified)", rounded_up(bound))
        }
        Accuracy::ResidualL1(residual) => {
            format!("one more step would move it by {residual:.1e} (L1)")
        }
        Accuracy::StandardError(error) => {
            format!("standard error {:.1} % of each score", 100.0 * error)
        }
        _ => "accuracy: nothing is certain of it".into(),
    }
}

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
    fn a_bound_has_two_digits_and_is_never_rounded_down() {
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
