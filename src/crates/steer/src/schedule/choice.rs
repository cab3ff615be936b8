//! Strategy by name, with its parameters: `fica`, `fica:beta=0.2,k=1000`.

use std::str::FromStr;

use super::{CrawlState, STRATEGIES, Strategy, StrategySpec};

/// Default of K: the known pages divided by this.
const K_PARTS: u64 = 72;

/// Strategy with its parameters, of which each strategy uses its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Position of the strategy in [`STRATEGIES`].
    strategy: usize,
    /// Number of pages after which FICA's clock advances; `None`: see [`Choice::k_of`].
    pub k: Option<u64>,
    /// Speed at which FICA's learning rate falls.
    pub beta: f64,
    /// Share of a page's cash that its links pass on; `None`: the store's, or 0.85.
    damping: Option<f64>,
    /// Share of the virtual page's payments that goes to unread pages.
    pub discovery: f64,
    /// Exponent of the unseen share near a page by name.
    pub unseen: f64,
    pub seed: u64,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            strategy: 0,
            k: None,
            beta: 0.1,
            damping: None,
            discovery: 0.5,
            unseen: super::forecast::UNSEEN,
            seed: 1,
        }
    }
}

impl Choice {
    pub fn spec(&self) -> &'static StrategySpec {
        &STRATEGIES[self.strategy]
    }

    pub fn strategy(&self) -> Box<dyn Strategy> {
        (self.spec().make)(self)
    }

    /// Returns K for a crawl: the number chosen, or a 72nd of the known pages, at least 1, as the FICA paper has
    /// 250,000 for 18 M pages. It depends on the history alone, and so do lists.
    pub fn k_of(&self, crawl: &CrawlState) -> u64 {
        self.k.unwrap_or(u64::from(crawl.pages()) / K_PARTS).max(1)
    }

    pub fn damping(&self) -> f64 {
        self.damping.unwrap_or(0.85)
    }

    /// Takes the store's damping unless one was chosen.
    pub fn of_store(mut self, damping: f64) -> Choice {
        self.damping.get_or_insert(damping);
        self
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let spec = self.spec();
        if !spec.parameters.contains(&name) {
            let known = match spec.parameters {
                [] => "none".into(),
                known => known.join(", "),
            };
            return Err(format!(
                "{}: unknown parameter {name:?}; it has {known}",
                spec.name
            ));
        }
        let within = |low: f64, high: f64, what: &str| {
            let number = value
                .parse()
                .ok()
                .filter(|number| (low..=high).contains(number));
            number.ok_or_else(|| format!("{name}={value}: {what}"))
        };
        let share = || within(0.0, 1.0, "a share between 0 and 1");
        let whole = |what: &str| value.parse().map_err(|_| format!("{name}={value}: {what}"));
        match name {
            "k" => {
                let what = "a number of pages, at least 1";
                self.k = Some(whole(what)?).filter(|&k: &u64| k > 0);
                self.k.ok_or_else(|| format!("{name}={value}: {what}"))?;
            }
            "beta" => self.beta = within(0.0, f64::MAX, "a number, 0 or more")?,
            "unseen" => self.unseen = within(0.0, 8.0, "a number between 0 and 8")?,
            "damping" => self.damping = Some(share()?),
            "discovery" => self.discovery = share()?,
            _ => self.seed = whole("a whole number")?,
        }
        Ok(())
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let named = STRATEGIES.iter().position(|spec| spec.name == name);
        let strategy = named.ok_or_else(|| {
            let names: Vec<&str> = STRATEGIES.iter().map(|spec| spec.name).collect();
            format!("unknown strategy {name:?}: one of {}", names.join(", "))
        })?;
        let mut choice = Choice {
            strategy,
            ..Choice::default()
        };
        for parameter in parameters.split(',').filter(|text| !text.is_empty()) {
            let (name, value) = parameter
                .split_once('=')
                .ok_or_else(|| format!("{parameter:?}: a parameter is written NAME=VALUE"))?;
            choice.set(name, value)?;
        }
        Ok(choice)
    }
}
