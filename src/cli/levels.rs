//! Options of commands that read rankings of pages or sites, and descriptions of a ranking's accuracy.

use cashrank_base::rules::Scope;
use cashrank_graph::rank::measures::{Accuracy, MEASURES};
use cashrank_graph::sites::{Level, SiteLinks};
use cashrank_store::snapshot::{ComputedInfo, LevelRanking, RankingName, Selection, Snapshot};
use cashrank_store::store::RealDisk;
use clap::ArgAction;

use super::common::{
    Forms, MemoryArg, accuracy_of, certain_text, counted, parsed, rounded_up, say, words,
};

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
    format!("{}: {}", info.measure, accuracy_said(info.accuracy))
}

pub fn accuracy_said(accuracy: Accuracy) -> String {
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
