//! Strategy by name, with its parameters: `fica`, `fica:beta=0.2,k=1000`.

use std::fmt;
use std::str::FromStr;

use super::{CrawlState, STRATEGIES, Strategy, StrategySpec};

/// Default of K: the known pages divided by this.
const K_PARTS: u64 = 72;

/// Function by which FICA's learning rate falls with x = beta * floor(pages read / K).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learning {
    /// exp(-x): the paper's choice.
    Exponential,
    /// 1/x, at most 1.
    Inverse,
    /// x^-2.1, at most 1.
    Power,
    /// 1 - x, at least 0.
    Linear,
    /// Always 1: the logarithm of the last page's links alone.
    One,
}

impl Learning {
    const NAMES: [(Learning, &'static str); 5] = [
        (Learning::Exponential, "exponential"),
        (Learning::Inverse, "inverse"),
        (Learning::Power, "power"),
        (Learning::Linear, "linear"),
        (Learning::One, "one"),
    ];

    /// Returns the learning rate at `x`.
    pub fn rate(self, x: f64) -> f64 {
        match self {
            Learning::Exponential => libm::exp(-x),
            Learning::Inverse => (1.0 / x).min(1.0),
            Learning::Power => libm::pow(x, -2.1).min(1.0),
            Learning::Linear => (1.0 - x).max(0.0),
            Learning::One => 1.0,
        }
    }
}

impl fmt::Display for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Learning::NAMES.iter().find(|(which, _)| which == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}

/// Parameters of strategies; each strategy uses its own.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyParameters {
    /// Number of pages after which FICA's clock advances, and rankings are recomputed; `None`: see
    /// [`StrategyParameters::k_of`].
    pub k: Option<u64>,
    /// Speed at which FICA's learning rate falls.
    pub beta: f64,
    /// Function by which FICA's learning rate falls.
    pub learning: Learning,
    /// Share of a page's cash that its links pass on, if chosen: see [`StrategyParameters::damping`].
    pub damping: Option<f64>,
    /// Damping of the store.
    pub store_damping: f64,
    /// True for a store: its ledger's cash is used, not recomputed.
    pub of_store: bool,
    /// Share of the virtual page's payments that goes to unread pages.
    pub discovery: f64,
    /// Exponent of the unseen share near a page by name.
    pub unseen: f64,
    /// True if Forecast is maintained by pushes while the crawl grows, false if it is settled from nothing at each
    /// query.
    pub pushes: bool,
    /// Seed of random draws.
    pub seed: u64,
}

impl Default for StrategyParameters {
    fn default() -> StrategyParameters {
        StrategyParameters {
            k: None,
            beta: 0.1,
            learning: Learning::Exponential,
            damping: None,
            store_damping: 0.85,
            of_store: false,
            discovery: 0.5,
            unseen: super::forecast::UNSEEN,
            pushes: true,
            seed: 1,
        }
    }
}

impl StrategyParameters {
    /// Returns K for a crawl: the number chosen, or a 72nd of the known pages, at least 1, as the FICA paper has
    /// 250,000 for 18 M pages. It depends on the history alone, so a list is the same whenever it is asked for.
    pub fn k_of(&self, crawl: &CrawlState) -> u64 {
        self.k.unwrap_or(u64::from(crawl.pages()) / K_PARTS).max(1)
    }

    /// Returns the share of a page's cash that its links pass on: the one chosen, or the store's.
    pub fn damping(&self) -> f64 {
        self.damping.unwrap_or(self.store_damping)
    }
}

/// Strategy and its parameters.
#[derive(Clone)]
pub struct Choice {
    strategy: &'static StrategySpec,
    parameters: StrategyParameters,
    given: Vec<String>,
}

impl Choice {
    /// Returns the strategy's specification.
    pub fn spec(&self) -> &'static StrategySpec {
        self.strategy
    }

    pub fn parameters(&self) -> &StrategyParameters {
        &self.parameters
    }

    /// Returns the choice for a store with this damping.
    pub fn of_store(mut self, damping: f64) -> Choice {
        self.parameters.of_store = true;
        self.parameters.store_damping = damping;
        self
    }

    /// Returns the choice for a single query about a crawl that is added as a whole: nothing is maintained, unless that
    /// was chosen.
    pub fn once(mut self) -> Choice {
        if !self.given.iter().any(|name| name == "pushes") {
            self.parameters.pushes = false;
        }
        self
    }

    /// Returns the choice with this seed, unless one was given.
    pub fn with_seed(mut self, seed: u64) -> Choice {
        if !self.given.iter().any(|name| name == "seed") {
            self.parameters.seed = seed;
        }
        self
    }

    /// Returns a new strategy, without any pages.
    pub fn strategy(&self) -> Box<dyn Strategy> {
        (self.strategy.make)(&self.parameters)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if !self.strategy.parameters.contains(&name) {
            let known = match self.strategy.parameters {
                [] => "none".into(),
                known => known.join(", "),
            };
            return Err(format!(
                "{}: unknown parameter {name:?}; it has {known}",
                self.strategy.name
            ));
        }
        let bad = |what: &str| format!("{name}={value}: {what}");
        let share = || match value.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
            _ => Err(bad("a share between 0 and 1")),
        };
        let p = &mut self.parameters;
        match name {
            "k" => match value.parse() {
                Ok(k) if k > 0 => p.k = Some(k),
                _ => return Err(bad("a number of pages, at least 1")),
            },
            "beta" => match value.parse::<f64>() {
                Ok(beta) if beta.is_finite() && beta >= 0.0 => p.beta = beta,
                _ => return Err(bad("a number, 0 or more")),
            },
            "learning" => {
                let mut named = Learning::NAMES.iter();
                match named.find(|(_, name)| *name == value) {
                    Some((learning, _)) => p.learning = *learning,
                    None => return Err(bad("exponential, inverse, power, linear or one")),
                }
            }
            "unseen" => match value.parse::<f64>() {
                Ok(unseen) if (0.0..=8.0).contains(&unseen) => p.unseen = unseen,
                _ => return Err(bad("a number between 0 and 8")),
            },
            "pushes" => match value {
                "0" => p.pushes = false,
                "1" => p.pushes = true,
                _ => return Err(bad("0 or 1")),
            },
            "damping" => p.damping = Some(share()?),
            "discovery" => p.discovery = share()?,
            _ => p.seed = value.parse().map_err(|_| bad("a whole number"))?,
        }
        self.given.push(name.into());
        Ok(())
    }
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            strategy: &STRATEGIES[0],
            parameters: StrategyParameters::default(),
            given: Vec::new(),
        }
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Choice) -> bool {
        self.strategy.name == other.strategy.name && self.parameters == other.parameters
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.strategy.name)?;
        let p = &self.parameters;
        for (at, name) in self.given.iter().enumerate() {
            let value: &dyn fmt::Display = match name.as_str() {
                "k" => &p.k.unwrap_or_default(),
                "beta" => &p.beta,
                "learning" => &p.learning,
                "damping" => &p.damping(),
                "discovery" => &p.discovery,
                "unseen" => &p.unseen,
                "pushes" => &u8::from(p.pushes),
                _ => &p.seed,
            };
            write!(f, "{}{name}={value}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let named = STRATEGIES.iter().find(|strategy| strategy.name == name);
        let strategy = named.ok_or_else(|| {
            let names: Vec<&str> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
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
