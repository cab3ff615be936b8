//! Random streams: events of an engine, and their application.

use std::borrow::Cow;

use cashrank::Reader;
use cashrank_crawl::decode::{Link, Names, Record};
use cashrank_graph::engine::{Config, Engine, InMemory, SelfLinks, WindowPolicy};
use proptest::prelude::*;

use super::reference::Reference;

/// Record with pages by number.
#[derive(Debug, Clone)]
pub struct Fetch {
    pub page: u32,
    pub status: Option<i32>,
    pub redirect: Option<u32>,
    pub links: Vec<u32>,
    pub time: Option<i64>,
}

#[derive(Debug, Clone)]
pub enum Event {
    Fetch(Fetch),
    BeginPass,
}

fn time() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        4 => Just(None),
        4 => (0i64..2_000_000_000).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
        1 => Just(Some(i64::MIN)),
        1 => Just(Some(i64::MAX)),
    ]
}

fn status() -> impl Strategy<Value = Option<i32>> {
    let others = [
        404,
        410,
        304,
        500,
        503,
        403,
        301,
        302,
        307,
        -1,
        100,
        999,
        i32::MIN,
    ];
    prop_oneof![
        6 => Just(None),
        6 => Just(Some(200)),
        4 => proptest::sample::select(others.to_vec()).prop_map(Some),
    ]
}

/// Generates a record of `pages` pages: links repeat, lead to the page itself, and change from fetch to fetch.
pub fn fetch(pages: u32) -> impl Strategy<Value = Fetch> {
    let links = proptest::collection::vec(0..pages, 0..6);
    let redirect = proptest::option::weighted(0.3, 0..pages);
    (0..pages, status(), redirect, links, time()).prop_map(
        |(page, status, redirect, links, time)| Fetch {
            page,
            status,
            redirect,
            links,
            time,
        },
    )
}

/// Generates an event; 12 in 14 are records.
pub fn event(pages: u32) -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => fetch(pages).prop_map(Event::Fetch),
        1 => Just(Event::BeginPass),
    ]
}

/// Generates a stream over 1 to 12 pages.
pub fn events(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Event>> {
    (1u32..13).prop_flat_map(move |pages| proptest::collection::vec(event(pages), len.clone()))
}

/// Generates settings with this window.
pub fn config(window: WindowPolicy) -> impl Strategy<Value = Config> {
    let damping = prop_oneof![Just(0.85), Just(0.0), 0.0..0.99f64];
    (damping, 0u8..7, 0u8..13, any::<bool>()).prop_map(move |(damping, marks, recycle, keep)| {
        let mut config = Config::default();
        config.window = window;
        config.marks = marks;
        config.recycle_after = recycle;
        config.self_links = if keep {
            SelfLinks::Keep
        } else {
            SelfLinks::Drop
        };
        config.set_damping(damping).unwrap();
        config
    })
}

/// Engine with its reader.
pub struct Run {
    pub engine: Engine<InMemory>,
    reader: Reader,
}

impl Run {
    pub fn new(config: &Config) -> Run {
        let engine = Engine::new(config.clone()).unwrap();
        let reader = cashrank::Reader::new(&engine, Names::Opaque).unwrap();
        Run { engine, reader }
    }

    pub fn reference(config: &Config) -> Reference {
        let keep = config.self_links == SelfLinks::Keep;
        Reference::new(config.damping_units(), config.recycle_after, keep)
    }

    pub fn record(&mut self, record: &Record<'_>) {
        self.reader.apply(&mut self.engine, record).unwrap();
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::BeginPass => self.engine.begin_pass().unwrap(),
            Event::Fetch(fetch) => {
                let name = |page: u32| Cow::Owned(format!("p{page}").into_bytes());
                self.record(&Record {
                    url: name(fetch.page),
                    status: fetch.status,
                    redirect: fetch.redirect.map(name),
                    links: fetch
                        .links
                        .iter()
                        .map(|&page| Link::to(name(page)))
                        .collect(),
                    fetched_at: fetch.time,
                    ..Record::default()
                });
            }
        }
    }

    pub fn importance(&mut self) -> Vec<f64> {
        let ranking = self.engine.ranking().unwrap();
        ranking.pages.iter().map(|page| page.importance).collect()
    }
}
