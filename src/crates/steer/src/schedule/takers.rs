//! Lists of pages in the formats that crawlers read: tables with the facts of each page, or a line for each.
//!
//! Crawlers' priorities are positions in the list, since most scores differ by less than a priority resolves.

use std::io::{self, Write};
use std::path::Path;

use super::Candidate;
use crate::model::{Page, registry};
use crate::snapshot::export::{Format, NumberColumn, Setup, TableOf, ValueKind, export};
use crate::url::host;
use crate::{Error, Result};

registry! {
    /// Format of a list of pages.
    Taker of TakerSpec, called "format of a list of pages";
    Plain is TakerSpec {
        name: "plain",
        about: "one URL per line",
        content: TakerContent::Lines(|page, _, _, out| writeln!(out, "{}", page.url)),
    };
    Tsv is TakerSpec {
        name: "tsv",
        about: "tab-separated values with a header line",
        content: TakerContent::Table(Format::Tsv),
    };
    Jsonl is TakerSpec {
        name: "jsonl",
        about: "JSON lines, one object per page",
        content: TakerContent::Table(Format::Jsonl),
    };
    Parquet is TakerSpec {
        name: "parquet",
        about: if cfg!(feature = "parquet") {
            "Apache Parquet"
        } else {
            "Apache Parquet; this build has none: cargo install --features parquet"
        },
        content: TakerContent::Table(Format::Parquet),
    };
    NutchInject is TakerSpec {
        name: "nutch-inject",
        about: "seeds for Nutch's injector, each with a score",
        content: TakerContent::Lines(|page, at, len, out| {
            let score = (len - at) as f64 / len as f64;
            writeln!(out, "{}\tnutch.score={score}", page.url)
        }),
    };
    HeritrixPrecedence is TakerSpec {
        name: "heritrix-precedence",
        about: "a URI and its precedence for Heritrix, 1 to 127",
        content: TakerContent::Lines(|page, at, len, out| {
            writeln!(out, "{} {}", page.url, 1 + at * 127 / len)
        }),
    };
    HeritrixSchedule is TakerSpec {
        name: "heritrix-schedule",
        about: "a schedule for Heritrix's action directory",
        content: TakerContent::Lines(|page, _, _, out| writeln!(out, "F+ {}", page.url)),
    };
    /// Items of the frontier's protocol in JSON. Their queues are hosts.
    UrlFrontier is TakerSpec {
        name: "urlfrontier",
        about: "items of URLFrontier as JSON lines",
        content: TakerContent::Lines(|page, at, _, out| {
            let key = String::from_utf8_lossy(host(page.url.as_bytes()));
            let item = serde_json::json!({ "known": {
                "info": { "url": page.url, "key": key, "metadata": {} },
                "refetchable_from_date": at as u64 + 1,
            }});
            writeln!(out, "{item}")
        }),
    };
    Scrapy is TakerSpec {
        name: "scrapy",
        about: "requests for Scrapy as JSON lines",
        content: TakerContent::Lines(|page, at, len, out| {
            let request = serde_json::json!({ "url": page.url, "priority": len - at });
            writeln!(out, "{request}")
        }),
    };
}

struct TakerSpec {
    name: &'static str,
    about: &'static str,
    content: TakerContent,
}

/// Content of a list: lines, or a table.
enum TakerContent {
    /// Writes the line of a page, given its position in the list, from 0, and the list's length.
    Lines(fn(&Candidate, usize, usize, &mut dyn Write) -> io::Result<()>),
    Table(Format),
}

impl Taker {
    pub fn is_text(self) -> bool {
        self != Taker::Parquet
    }

    /// True if it shows facts of the pages, besides their URLs and order.
    pub fn is_table(self) -> bool {
        matches!(self.spec().content, TakerContent::Table(_))
    }

    pub fn write(self, pages: &[Candidate], out: &mut (dyn Write + Send)) -> Result<()> {
        let path = Path::new("the list of pages");
        match self.spec().content {
            TakerContent::Table(format) => write_table(format, pages, out, path),
            TakerContent::Lines(line) => {
                let mut lines = pages.iter().enumerate();
                lines
                    .try_for_each(|(at, page)| line(page, at, pages.len(), out))
                    .map_err(Error::io(path, "write"))
            }
        }
    }
}

fn write_table(
    format: Format,
    pages: &[Candidate],
    out: &mut (dyn Write + Send),
    path: &Path,
) -> Result<()> {
    let more = [
        ("score", ValueKind::Real),
        ("fetched", ValueKind::Bool),
        ("failed", ValueKind::Integer),
        ("compared", ValueKind::Integer),
        ("changed", ValueKind::Integer),
    ];
    let setup = Setup {
        table: TableOf::Candidates,
        more: more
            .map(|(name, kind)| NumberColumn::new(name, kind))
            .into(),
        ..Setup::default()
    };
    let rows = pages.iter().map(|of| {
        let fetches = &of.fetches;
        let counts = [fetches.failed, fetches.compared, fetches.changed];
        let numbers = [of.score, of.fetched.into()].into_iter();
        let numbers = numbers.chain(counts.map(|count| count as f64));
        Ok(Page {
            url: (&*of.url).into(),
            importance: of.importance,
            visits: fetches.visits,
            last_fetch: fetches.last,
            more: numbers
                .map(|number| Some(number).filter(|it| it.is_finite()))
                .collect(),
            ..Page::default()
        })
    });
    export(format, &setup, out, path, rows).map(drop)
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
