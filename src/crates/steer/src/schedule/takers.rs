//! Lists of pages in the formats that crawlers read.
//!
//! | name | content |
//! |---|---|
//! | `plain` | one URL per line |
//! | `tsv` | `url`, `score`, `fetched`, `visits`, `last_fetch`, `importance`, `failed`, `compared`, `changed`, with a header line |
//! | `jsonl` | these fields as JSON objects, one per line |
//! | `parquet` | these fields as columns |
//! | `nutch-inject` | `URL<TAB>nutch.score=F`: the score, greatest 1, by place in the list |
//! | `heritrix-precedence` | `URI PRECEDENCE`: 1 to 127, lower first, by place in the list |
//! | `heritrix-schedule` | `F+ URI`: lines of a `.schedule` file in Heritrix's action directory |
//! | `urlfrontier` | URLFrontier items as JSON lines; `refetchable_from_date` 1, 2, 3, ... keeps the order |
//! | `scrapy` | `{"url", "priority"}` as JSON lines: greater first, the last of the list has 1 |
//!
//! Crawlers' priorities are positions in the list: scores of different strategies have different units, and most differ
//! by less than a priority resolves.

mod lines;
mod tables;

use std::io::Write;

use super::Candidate;
use crate::model::registry;
use crate::{Error, Result};

registry! {
    /// Format of a list of pages.
    Taker of TakerSpec, called "format of a list of pages";
    /// One URL per line.
    Plain is lines::PLAIN;
    /// Tab-separated values with a header line.
    Tsv is tables::TSV;
    /// JSON objects, one per line.
    Jsonl is tables::JSONL;
    /// Apache Parquet.
    Parquet is tables::PARQUET;
    /// Input of Nutch's injector.
    NutchInject is lines::NUTCH_INJECT;
    /// Heritrix: a precedence for each URI.
    HeritrixPrecedence is lines::HERITRIX_PRECEDENCE;
    /// Heritrix: lines of a file in its action directory.
    HeritrixSchedule is lines::HERITRIX_SCHEDULE;
    /// URLFrontier items as JSON lines.
    UrlFrontier is lines::URLFRONTIER;
    /// Scrapy requests as JSON lines.
    Scrapy is lines::SCRAPY;
}

/// Name, help and writer of a list format.
struct TakerSpec {
    name: &'static str,
    about: &'static str,
    write: fn(&[Candidate], &mut (dyn Write + Send)) -> Result<()>,
}

impl Taker {
    /// Returns whether the format is text.
    pub fn is_text(self) -> bool {
        self != Taker::Parquet
    }

    pub fn write(self, pages: &[Candidate], out: &mut (dyn Write + Send)) -> Result<()> {
        (self.spec().write)(pages, out)
    }
}

fn failed(source: std::io::Error) -> Error {
    Error::Io {
        path: "the list of pages".into(),
        action: "write",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fetches, PageId};

    fn written(taker: Taker, count: usize) -> Vec<u8> {
        let pages: Vec<Candidate> = (0..count)
            .map(|n| Candidate {
                page: Some(PageId(n as u64)),
                url: format!("http://h.example/{n}"),
                score: 0.5,
                fetched: n == 1,
                importance: 0.25,
                fetches: Fetches {
                    visits: n as u64,
                    last: (n == 1).then_some(86_400),
                    ..Fetches::default()
                },
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
        let tsv = "url\tscore\tfetched\tvisits\tlast_fetch\timportance\tfailed\tcompared\tchanged\n\
            http://h.example/0\t0.5\tfalse\t0\t\t0.25\t0\t0\t0\n\
            http://h.example/1\t0.5\ttrue\t1\t1970-01-02T00:00:00Z\t0.25\t0\t0\t0\n";
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
