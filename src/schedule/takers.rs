//! Lists of pages to crawl, as crawlers take them.
//!
//! | name | content |
//! |---|---|
//! | `plain` | a URL a line |
//! | `tsv` | `url`, `score`, `fetched`, `visits`, `last_fetch`, `importance`, with a header line |
//! | `jsonl` | the same as JSON objects, one a line |
//! | `parquet` | the same columns |
//! | `nutch-inject` | `URL<TAB>nutch.score=F`: the score, greatest 1, by place in the list |
//! | `heritrix-precedence` | `URI PRECEDENCE`: 1 to 127, lower first, by place in the list |
//! | `heritrix-schedule` | `F+ URI`: lines of a `.schedule` file in Heritrix's action directory |
//! | `urlfrontier` | URLFrontier items as JSON lines; `refetchable_from_date` 1, 2, 3, ... keeps the order |
//! | `scrapy` | `{"url", "priority"}` as JSON lines: greater first, the last of the list has 1 |
//!
//! Crawlers' priorities are places in the list, since scores of different strategies have different
//! measures, and most differ by less than a priority resolves.

#[cfg(feature = "parquet")]
mod parquet;

use std::io::Write;
use std::str::FromStr;

use super::Candidate;
use crate::model::utc;
use crate::url::host;
use crate::{Error, Result};

/// Who takes a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// URLs.
    Plain,
    /// Tab-separated.
    Tsv,
    /// JSON objects.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// Nutch's injector.
    NutchInject,
    /// Heritrix, a precedence for each URI.
    HeritrixPrecedence,
    /// Heritrix's action directory.
    HeritrixSchedule,
    /// URLFrontier.
    UrlFrontier,
    /// Scrapy.
    Scrapy,
}

impl Taker {
    /// All of them.
    pub const ALL: [Taker; 9] = [
        Taker::Plain,
        Taker::Tsv,
        Taker::Jsonl,
        Taker::Parquet,
        Taker::NutchInject,
        Taker::HeritrixPrecedence,
        Taker::HeritrixSchedule,
        Taker::UrlFrontier,
        Taker::Scrapy,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Taker::Plain => "plain",
            Taker::Tsv => "tsv",
            Taker::Jsonl => "jsonl",
            Taker::Parquet => "parquet",
            Taker::NutchInject => "nutch-inject",
            Taker::HeritrixPrecedence => "heritrix-precedence",
            Taker::HeritrixSchedule => "heritrix-schedule",
            Taker::UrlFrontier => "urlfrontier",
            Taker::Scrapy => "scrapy",
        }
    }

    /// Writes a list.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn write(self, pages: &[Candidate], out: &mut (dyn Write + Send)) -> Result<()> {
        let written = match self {
            #[cfg(feature = "parquet")]
            Taker::Parquet => {
                let mut out = out;
                parquet::write(pages, &mut out)
            }
            #[cfg(not(feature = "parquet"))]
            Taker::Parquet => {
                return Err(Error::Unsupported(
                    "this cashrank was built without Parquet (its feature `parquet`)".into(),
                ));
            }
            _ => self.write_lines(pages, out),
        };
        written.map_err(|source| Error::Io {
            path: "the list of pages".into(),
            action: "write",
            source,
        })
    }

    fn write_lines(self, pages: &[Candidate], out: &mut dyn Write) -> std::io::Result<()> {
        if self == Taker::Tsv {
            writeln!(out, "url\tscore\tfetched\tvisits\tlast_fetch\timportance")?;
        }
        for (at, page) in pages.iter().enumerate() {
            let url = &page.url;
            let left = pages.len() - at;
            match self {
                Taker::Tsv => writeln!(
                    out,
                    "{url}\t{}\t{}\t{}\t{}\t{}",
                    page.score,
                    page.fetched,
                    page.visits,
                    time(page).unwrap_or_default(),
                    page.importance
                )?,
                Taker::Jsonl => writeln!(out, "{}", object(page))?,
                Taker::NutchInject => {
                    writeln!(
                        out,
                        "{url}\tnutch.score={}",
                        left as f64 / pages.len() as f64
                    )?;
                }
                Taker::HeritrixPrecedence => {
                    writeln!(out, "{url} {}", 1 + at * 127 / pages.len())?;
                }
                Taker::HeritrixSchedule => writeln!(out, "F+ {url}")?,
                Taker::UrlFrontier => writeln!(out, "{}", frontier_item(page, at as u64 + 1))?,
                Taker::Scrapy => {
                    let request = serde_json::json!({ "url": url, "priority": left });
                    writeln!(out, "{request}")?;
                }
                Taker::Plain | Taker::Parquet => writeln!(out, "{url}")?,
            }
        }
        Ok(())
    }
}

/// Last fetch as RFC 3339; `None`: not known.
fn time(page: &Candidate) -> Option<String> {
    utc(page.last_fetch?)
}

fn object(page: &Candidate) -> serde_json::Value {
    serde_json::json!({
        "url": page.url,
        "score": page.score,
        "fetched": page.fetched,
        "visits": page.visits,
        "last_fetch": time(page),
        "importance": page.importance,
        "failed": page.failed,
        "compared": page.compared,
        "changed": page.changed,
    })
}

/// An item as the frontier's protocol writes it in JSON. Its queues are hosts.
fn frontier_item(page: &Candidate, date: u64) -> serde_json::Value {
    let key = String::from_utf8_lossy(host(page.url.as_bytes())).into_owned();
    serde_json::json!({ "known": {
        "info": { "url": page.url, "key": key, "metadata": {} },
        "refetchable_from_date": date,
    }})
}

impl FromStr for Taker {
    type Err = Error;

    fn from_str(name: &str) -> Result<Taker> {
        let taker = Taker::ALL.into_iter().find(|taker| taker.name() == name);
        taker.ok_or_else(|| {
            let names: Vec<&str> = Taker::ALL.iter().map(|taker| taker.name()).collect();
            Error::Usage(format!(
                "{name:?} is no format of a list of pages; choose one of {}",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::PageId;

    fn written(taker: Taker, count: usize) -> Vec<u8> {
        let pages: Vec<Candidate> = (0..count)
            .map(|n| Candidate {
                page: PageId(n as u64),
                url: format!("http://h.example/{n}"),
                score: 0.5,
                fetched: n == 1,
                visits: n as u64,
                last_fetch: (n == 1).then_some(86_400),
                importance: 0.25,
                failed: 0,
                compared: 0,
                changed: 0,
            })
            .collect();
        let mut out = Vec::new();
        taker.write(&pages, &mut out).unwrap();
        out
    }

    fn text(taker: Taker, count: usize) -> String {
        String::from_utf8(written(taker, count)).unwrap()
    }

    #[test]
    fn each_taker_gets_its_own() {
        assert_eq!(
            text(Taker::Plain, 2),
            "http://h.example/0\nhttp://h.example/1\n"
        );
        let tsv = "url\tscore\tfetched\tvisits\tlast_fetch\timportance\n\
            http://h.example/0\t0.5\tfalse\t0\t\t0.25\n\
            http://h.example/1\t0.5\ttrue\t1\t1970-01-02T00:00:00Z\t0.25\n";
        assert_eq!(text(Taker::Tsv, 2), tsv);
        let nutch = "http://h.example/0\tnutch.score=1\nhttp://h.example/1\tnutch.score=0.5\n";
        assert_eq!(text(Taker::NutchInject, 2), nutch);
        assert_eq!(text(Taker::HeritrixSchedule, 1), "F+ http://h.example/0\n");
        assert!(
            text(Taker::Scrapy, 2).starts_with("{\"priority\":2,\"url\":\"http://h.example/0\"}")
        );
        let item: serde_json::Value = serde_json::from_str(&text(Taker::UrlFrontier, 1)).unwrap();
        assert_eq!(item["known"]["info"]["key"], "h.example");
        assert_eq!(item["known"]["refetchable_from_date"], 1);
        let object: serde_json::Value = serde_json::from_str(&text(Taker::Jsonl, 1)).unwrap();
        assert_eq!(object["last_fetch"], serde_json::Value::Null);
    }

    #[test]
    fn precedences_are_those_of_heritrix() {
        for count in [1, 2, 126, 127, 128, 1000] {
            let text = text(Taker::HeritrixPrecedence, count);
            let given: Vec<usize> = text
                .lines()
                .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
                .collect();
            assert!(
                given.is_sorted() && given.iter().all(|of| (1..=127).contains(of)),
                "{count}"
            );
        }
    }

    #[test]
    #[cfg(feature = "parquet")]
    fn parquet_is_read_back() {
        use ::parquet::file::reader::{FileReader, SerializedFileReader};
        use ::parquet::record::RowAccessor;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("next.parquet");
        std::fs::write(&path, written(Taker::Parquet, 3)).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap())
            .collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2].get_string(0).unwrap(), "http://h.example/2");
        assert!(rows[1].get_bool(2).unwrap() && !rows[2].get_bool(2).unwrap());
        assert_eq!(rows[2].get_long(3).unwrap(), 2);
    }
}
