use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ::parquet::basic::{Compression, LogicalType, Type};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, RowAccessor};
use proptest::prelude::*;

use super::parquet::{GROUP_ROWS, GROUP_URL_BYTES};
use super::*;
use crate::decode::Time;
use crate::engine::PageId;
use crate::model::utc;
use crate::sites::Level;

fn page(url: &str, importance: f64, last_fetch: Option<Time>) -> Page<'_> {
    Page {
        page: PageId(7),
        url: url.into(),
        importance,
        rank: 3,
        visits: 2,
        last_fetch,
        state: Some(PageState::Crawled),
        ..Page::default()
    }
}

/// Returns options that every format accepts.
fn setup() -> Setup {
    Setup {
        into: Some("web:page".into()),
        pages: 4,
        ..Setup::default()
    }
}

fn written(format: Format, pages: &[Page<'_>]) -> Result<Vec<u8>> {
    let (bytes, left_out) = written_as(format, &setup(), pages)?;
    assert_eq!(left_out, 0);
    Ok(bytes)
}

/// Returns the bytes, and the number of rows left out.
fn written_as(format: Format, setup: &Setup, pages: &[Page<'_>]) -> Result<(Vec<u8>, u64)> {
    let mut out = Vec::new();
    let rows = pages.iter().cloned().map(Ok);
    let written = export(format, setup, &mut out, Path::new("out"), rows)?;
    assert_eq!(written.pages + written.left_out, pages.len() as u64);
    Ok((out, written.left_out))
}

fn text(format: Format, pages: &[Page<'_>]) -> String {
    String::from_utf8(written(format, pages).unwrap()).unwrap()
}

/// Opens Parquet bytes; the reader needs a file.
fn open(bytes: &[u8]) -> SerializedFileReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    SerializedFileReader::new(file).unwrap()
}

/// Sample pages: 1395749545 is 2014-03-25T12:12:25Z (`date -u -d @1395749545`), -1 a second before 1970.
fn samples() -> Vec<Page<'static>> {
    vec![
        page("http://a.example/", 0.25, Some(1_395_749_545)),
        page(
            "tab\there \"quoted\" \u{1} \\ \u{2028} é",
            1.3813131542535304e-6,
            None,
        ),
        page("", 1e-5, Some(-1)),
    ]
}

/// Numbers that were asked for stand behind the usual columns, under their names; a page may have none. Of four pages
/// one with 1/2 has twice the mean.
#[test]
fn further_numbers_are_columns_of_their_own() {
    let mut setup = setup();
    setup.score = NumberColumn::of_measure(Some("hits-hubs"));
    setup.more = vec![
        NumberColumn::new("distance", ValueKind::Real),
        NumberColumn::of_measure(Some("in-degree")),
    ];
    setup.kind = Some(Score::Ratio);
    let mut pages = [page("a", 0.5, None), page("b", 0.5, Some(-1))];
    pages[1].more = vec![Some(0.25), Some(3.0)];
    let written = |format: Format| written_as(format, &setup, &pages).unwrap().0;
    assert_eq!(
        String::from_utf8(written(Format::Tsv)).unwrap(),
        "url\thits_hubs\trank\tvisits\tlast_fetch\thost\tdomain\tpage\tratio\tdistance\tin_degree\n\
         a\t0.5\t3\t2\t\t\t\t7\t2.0\t\t\n\
         b\t0.5\t3\t2\t1969-12-31T23:59:59Z\t\t\t7\t2.0\t0.25\t3\n"
    );
    let lines = String::from_utf8(written(Format::Jsonl)).unwrap();
    assert!(lines.contains("\"distance\":null,\"in_degree\":null}\n"));
    assert!(lines.ends_with("\"distance\":0.25,\"in_degree\":3}\n"));
    let reader = open(&written(Format::Parquet));
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap())
        .collect();
    assert_eq!(rows[1].get_double(9).unwrap(), 0.25);
    assert_eq!(rows[1].get_long(10).unwrap(), 3);
    assert!(rows[0].get_double(9).is_err());
}

/// All table formats have the same columns, in the same order, for any kind of export.
#[test]
fn all_tables_have_the_same_columns() {
    let names = |format: Format, setup: &Setup| -> Vec<String> {
        let mut row = page("http://www.a.example/", 0.5, None);
        row.change = Some(Change::New);
        let bytes = written_as(format, setup, &[row]).unwrap().0;
        let text = || String::from_utf8(bytes.clone()).unwrap();
        let of_line = |separator| {
            let text = text();
            let line = text.lines().next().unwrap();
            line.split(separator).map(str::to_owned).collect()
        };
        match format {
            Format::Tsv => of_line('\t'),
            Format::Csv => of_line(','),
            Format::Jsonl => {
                // Keys in their order, which a parsed object does not keep.
                let text = text();
                let keys = text
                    .split("\":")
                    .map(|part| part.rsplit('"').next().unwrap());
                let mut keys: Vec<String> = keys.map(str::to_owned).collect();
                keys.pop();
                keys
            }
            Format::Parquet => {
                let reader = open(&bytes);
                let columns = reader.metadata().file_metadata().schema_descr().columns();
                columns
                    .iter()
                    .map(|column| column.name().to_owned())
                    .collect()
            }
            _ => {
                let mut file = tempfile::NamedTempFile::new().unwrap();
                file.write_all(&bytes).unwrap();
                let database = rusqlite::Connection::open(file.path()).unwrap();
                let rows = database.prepare("SELECT * FROM ranking").unwrap();
                rows.column_names().map(str::to_owned).collect()
            }
        }
    };
    let asked = Setup {
        state: true,
        cash: true,
        more: vec![NumberColumn::of_measure(Some("harmonic"))],
        change: true,
        ..setup()
    };
    let of = |table: TableOf| Setup { table, ..setup() };
    let more = |name: &str| NumberColumn::new(name, ValueKind::Bool);
    let candidates = Setup {
        more: vec![more("score"), more("fetched"), more("failed")],
        ..of(TableOf::Candidates)
    };
    let sites = Setup {
        level: Level::Host,
        ..setup()
    };
    for (mut setup, expected) in [
        (
            asked,
            "url importance rank visits last_fetch state host domain page cash distributed log harmonic change",
        ),
        (
            sites,
            "url importance rank visits last_fetch host domain page log pages",
        ),
        (of(TableOf::LookedUp), "url rank importance state"),
        (
            candidates,
            "url score fetched visits last_fetch importance failed",
        ),
    ] {
        setup.kind = Some(Score::Log);
        let expected: Vec<&str> = expected.split(' ').collect();
        for format in Format::ALL {
            // Its indexes are of a ranking.
            let is_other = format == Format::Sqlite && setup.table != TableOf::Ranking;
            if format.content() == Content::Table && !is_other {
                assert_eq!(names(format, &setup), expected, "{format:?}");
            }
        }
    }
}

#[test]
fn tsv() {
    let mut pages = samples();
    pages.remove(1);
    assert_eq!(
        text(Format::Tsv, &pages),
        "url\timportance\trank\tvisits\tlast_fetch\thost\tdomain\tpage\n\
         http://a.example/\t0.25\t3\t2\t2014-03-25T12:12:25Z\ta.example\ta.example\t7\n\
         \t1e-5\t3\t2\t1969-12-31T23:59:59Z\t\t\t7\n"
    );
    assert_eq!(
        text(Format::Tsv, &[]),
        "url\timportance\trank\tvisits\tlast_fetch\thost\tdomain\tpage\n"
    );
    for name in ["a\tb", "a\nb", "a\r"] {
        let error = written(Format::Tsv, &[page(name, 0.5, None)]).unwrap_err();
        assert!(error.to_string().starts_with("page 7"), "{error}");
    }
}

/// RFC 4180, section 2: rules 1 (CR LF), 3 (a header), 5 to 7 (quotes).
#[test]
fn csv() {
    let names = ["plain", "a,b", "say \"x\"", "two\r\nlines", "", "tab\t"];
    let pages = names.map(|name| page(name, 0.25, None));
    assert_eq!(
        text(Format::Csv, &pages),
        "url,importance,rank,visits,last_fetch,host,domain,page\r\n\
         plain,0.25,3,2,,,,7\r\n\
         \"a,b\",0.25,3,2,,,,7\r\n\
         \"say \"\"x\"\"\",0.25,3,2,,,,7\r\n\
         \"two\r\nlines\",0.25,3,2,,,,7\r\n\
         \"\",0.25,3,2,,,,7\r\n\
         tab\t,0.25,3,2,,,,7\r\n"
    );
}

/// Of four pages one with 3/4 has three times the mean, and log2(1 + 3) is 2.
#[test]
fn scores_are_what_they_say() {
    let pages = [page("http://a.example/?q=1", 0.75, None)];
    for (score, value) in [
        (Score::Importance, "0.75"),
        (Score::Ratio, "3.0"),
        (Score::Log, "2.0"),
    ] {
        let mut setup = setup();
        setup.kind = Some(score);
        let text =
            |format| String::from_utf8(written_as(format, &setup, &pages).unwrap().0).unwrap();
        assert_eq!(
            text(Format::Scores),
            format!("http://a.example/?q=1\t{value}\n")
        );
        assert_eq!(
            text(Format::Solr),
            format!("http://a.example/?q=1={value}\n")
        );
        let vespa = format!(
            "{{\"update\":\"id:web:page::http://a.example/?q=1\",\"fields\":{{\"importance\":{{\"assign\":{value}}}}}}}\n"
        );
        assert_eq!(text(Format::Vespa), vespa);
    }
    for name in ["a\nb", "a\r"] {
        for format in [Format::Scores, Format::Solr] {
            let error = written(format, &[page(name, 0.5, None)]).unwrap_err();
            assert!(error.to_string().starts_with("page 7"), "{error}");
        }
    }
}

/// An action and its document, one line each, and the last also ends with a line feed, as the bulk interface requires;
/// an `_id` of 1 to 512 bytes; `rank_feature` takes normal numbers above 0.
#[test]
fn bulk_actions_are_what_elasticsearch_takes() {
    let long = |bytes: usize| format!("http://a.example/{}", "x".repeat(bytes - 17));
    let (fits, too_long) = (long(512), long(513));
    let pages = [
        page("http://www.a.example.org/\"", 1e-300, None),
        page(&fits, 0.5, None),
        page(&too_long, 0.5, None),
        page("", 0.5, None),
        page("17", 0.0, None),
    ];
    let mut setup = setup();
    setup.into = Some("pages".into());
    setup.field = Some("pagerank".into());
    let (bytes, left_out) = written_as(Format::Elasticsearch, &setup, &pages).unwrap();
    assert_eq!(left_out, 2);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with(
        "{\"update\":{\"_index\":\"pages\",\"_id\":\"http://www.a.example.org/\\\"\"}}\n{\"doc\":{\"pagerank\":"
    ));
    assert!(text.ends_with("}\n"));
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6);
    for (action, body) in lines.chunks_exact(2).map(|pair| (&pair[0], &pair[1])) {
        let id = action["update"]["_id"].as_str().unwrap();
        assert!((1..=512).contains(&id.len()));
        let value = body["doc"]["pagerank"].as_f64().unwrap() as f32;
        assert!(value.is_normal() && value > 0.0);
    }

    setup.into = None;
    let (bytes, left_out) = written_as(Format::ElasticsearchIndex, &setup, &pages[..1]).unwrap();
    assert_eq!(left_out, 0);
    let text = String::from_utf8(bytes).unwrap();
    let (action, body) = text.split_once('\n').unwrap();
    assert_eq!(
        action,
        "{\"index\":{\"_id\":\"http://www.a.example.org/\\\"\"}}"
    );
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["url"], "http://www.a.example.org/\"");
    assert_eq!(body["host"], "www.a.example.org");
    assert_eq!(body["domain"], "example.org");
    assert_eq!(body["rank"], 3);
    setup.field = Some("host".into());
    assert!(written_as(Format::ElasticsearchIndex, &setup, &[]).is_err());
}

#[test]
fn vespa_wants_a_namespace_and_a_type() {
    for bad in [
        None,
        Some("page"),
        Some(":page"),
        Some("web:"),
        Some("a:b:c"),
    ] {
        let mut setup = setup();
        setup.into = bad.map(Into::into);
        let error = written_as(Format::Vespa, &setup, &[]).unwrap_err();
        assert!(
            error.to_string().contains("NAMESPACE:TYPE"),
            "{bad:?}: {error}"
        );
    }
}

#[test]
fn jsonl() {
    let pages = samples();
    let text = text(Format::Jsonl, &pages);
    assert_eq!(text.lines().count(), 3);
    assert_eq!(
        text.lines().next().unwrap(),
        r#"{"url":"http://a.example/","importance":0.25,"rank":3,"visits":2,"last_fetch":"2014-03-25T12:12:25Z","host":"a.example","domain":"a.example","page":7}"#
    );
    for (line, page) in text.lines().zip(&pages) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["url"], *page.url);
        assert_eq!(value["last_fetch"].is_null(), page.last_fetch.is_none());
    }
}

#[test]
fn parquet_rows_and_types() {
    let pages = samples();
    let bytes = written(Format::Parquet, &pages).unwrap();
    let reader = open(&bytes);
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<_> = schema
        .columns()
        .iter()
        .map(|c| (c.name(), c.physical_type(), c.max_def_level()))
        .collect();
    let expected = [
        ("url", Type::BYTE_ARRAY, 0),
        ("importance", Type::DOUBLE, 0),
        ("rank", Type::INT64, 0),
        ("visits", Type::INT64, 0),
        ("last_fetch", Type::INT64, 1),
        ("host", Type::BYTE_ARRAY, 1),
        ("domain", Type::BYTE_ARRAY, 1),
        ("page", Type::INT64, 0),
    ];
    assert_eq!(columns, expected);
    assert_eq!(
        schema.column(0).logical_type_ref(),
        Some(&LogicalType::String)
    );

    for (row, page) in reader.get_row_iter(None).unwrap().zip(&pages) {
        let row = row.unwrap();
        assert_eq!(row.get_string(0).unwrap(), &*page.url);
        assert_eq!(
            row.get_double(1).unwrap().to_bits(),
            page.importance.to_bits()
        );
        assert_eq!((row.get_long(2).unwrap(), row.get_long(3).unwrap()), (3, 2));
        let expected = page
            .last_fetch
            .map_or(Field::Null, |s| Field::TimestampMillis(s * 1000));
        assert_eq!(row.get_column_iter().nth(4).unwrap().1, &expected);
        let host = row.get_column_iter().nth(5).unwrap().1;
        match &*page.url {
            "http://a.example/" => assert_eq!(host, &Field::Str("a.example".into())),
            _ => assert_eq!(host, &Field::Null),
        }
    }
    assert_eq!(reader.metadata().file_metadata().num_rows(), 3);
}

#[test]
fn parquet_groups_are_bounded_packed_and_counted() {
    let rows = 2 * GROUP_ROWS + 5;
    let pages = (0..rows as u64).map(|i| {
        Ok(Page {
            page: PageId(i),
            url: format!("http://example/{i:07}").into(),
            importance: i as f64,
            rank: i + 1,
            visits: 1,
            last_fetch: (i % 2 == 0).then_some(i as i64),
            ..Page::default()
        })
    });
    let mut out = Vec::new();
    export(
        Format::Parquet,
        &Setup::default(),
        &mut out,
        Path::new("out"),
        pages,
    )
    .unwrap();
    let reader = open(&out);
    let groups = reader.metadata().row_groups();
    let sizes: Vec<_> = groups.iter().map(|group| group.num_rows()).collect();
    assert_eq!(sizes, [GROUP_ROWS as i64, GROUP_ROWS as i64, 5]);
    for column in groups.iter().flat_map(|group| group.columns()) {
        assert_eq!(column.compression(), Compression::SNAPPY);
        assert!(column.statistics().is_some());
    }
    let last = groups[2].column(0).statistics().unwrap();
    assert_eq!(last.min_bytes_opt().unwrap(), b"http://example/0262144");
    assert_eq!(last.max_bytes_opt().unwrap(), b"http://example/0262148");
    let nulls: Option<u64> = groups
        .iter()
        .map(|g| g.column(4).statistics()?.null_count_opt())
        .sum();
    assert_eq!(nulls, Some(rows as u64 / 2));

    // Long URLs end a group before its rows do.
    let long = "x".repeat(1 << 20);
    let pages = vec![page(&long, 0.5, None); (GROUP_URL_BYTES >> 20) + 1];
    let bytes = written(Format::Parquet, &pages).unwrap();
    let reader = open(&bytes);
    let sizes: Vec<_> = reader
        .metadata()
        .row_groups()
        .iter()
        .map(|g| g.num_rows())
        .collect();
    assert_eq!(sizes, [64, 1]);
}

#[test]
fn empty_parquet_is_whole() {
    let bytes = written(Format::Parquet, &[]).unwrap();
    let reader = open(&bytes);
    assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
}

#[test]
fn what_no_format_holds_is_refused() {
    for format in Format::ALL {
        let times = match format.content() {
            Content::Table => vec![i64::MAX, i64::MIN],
            _ => Vec::new(),
        };
        let bad = times.into_iter().map(|time| page("a", 0.5, Some(time)));
        let bad = bad.chain([f64::NAN, f64::INFINITY].map(|value| page("a", value, None)));
        for bad in bad {
            let error = written(format, &[bad]).unwrap_err();
            assert!(error.to_string().starts_with("page 7"), "{error}");
        }
        // An error among the rows is returned.
        let rows = [Err(Error::Unsupported("no more".into()))];
        let error = export(format, &setup(), Vec::new(), Path::new("out"), rows).unwrap_err();
        assert_eq!(error.to_string(), "no more");
    }
    let mut many = page("a", 0.5, None);
    many.visits = 1 << 63;
    assert!(written(Format::Parquet, &[many]).is_err());
}

/// No row is read after an error, and a panic of the rows leaves no file that looks whole.
#[test]
fn rows_end_at_an_error_and_panics_leave_no_footer() {
    let rows = (0..1000).map(|at| match at {
        300 => Err(Error::Unsupported("no more".into())),
        301.. => panic!("a row was read after an error"),
        _ => Ok(page("a", 0.5, None)),
    });
    let error = export(Format::Tsv, &setup(), Vec::new(), Path::new("out"), rows).unwrap_err();
    assert_eq!(error.to_string(), "no more");
    let mut out = Vec::new();
    let rows = (0..1000).map(|at| {
        assert!(at < 600, "a row that cannot be read");
        Ok(page("a", 0.5, None))
    });
    let work = std::panic::AssertUnwindSafe(|| {
        export(Format::Parquet, &setup(), &mut out, Path::new("out"), rows)
    });
    assert!(std::panic::catch_unwind(work).is_err());
    assert!(out.starts_with(b"PAR1") && !out[4..].ends_with(b"PAR1"));
}

/// Names that are waiting for the writer take little memory, however long they are.
#[test]
fn few_long_rows_wait_for_the_writer() {
    let (read, written) = (AtomicU64::new(0), AtomicU64::new(0));
    let name = "x".repeat(60_000);
    let rows = (0..200).map(|_| {
        let waiting = read.fetch_add(1, Ordering::Relaxed) - written.load(Ordering::Relaxed);
        assert!(waiting <= 32, "{waiting}");
        Ok(page(&name, 0.5, None))
    });
    let out = CountingWriter {
        written: &written,
        bytes: 0,
        each: name.len() as u64,
    };
    export(Format::Scores, &setup(), out, Path::new("out"), rows).unwrap();
}

/// Counts names of this length.
struct CountingWriter<'c> {
    written: &'c AtomicU64,
    bytes: u64,
    each: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.written
            .store(self.bytes / self.each, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// SQLite itself reads the rows in their order, and its planner uses an index for each question.
#[test]
fn sqlite_reads_its_table() {
    let mut pages = samples();
    pages[0].more = vec![Some(0.5)];
    let mut setup = setup();
    setup.more = vec![NumberColumn::new("distance", ValueKind::Real)];
    let (bytes, _) = written_as(Format::Sqlite, &setup, &pages).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    let database = rusqlite::Connection::open(file.path()).unwrap();
    let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let sound: String = database
        .query_row("PRAGMA integrity_check", [], check)
        .unwrap();
    assert_eq!(sound, "ok");
    let mut rows = database
        .prepare("SELECT * FROM ranking ORDER BY rowid")
        .unwrap();
    let read = rows.query_map([], |row| {
        let host: Option<String> = row.get(5)?;
        let found = (
            row.get::<_, String>(0)?,
            row.get::<_, f64>(1)?,
            row.get::<_, Option<String>>(4)?,
        );
        let ends: (Option<String>, i64, Option<f64>) = (row.get(6)?, row.get(7)?, row.get(8)?);
        Ok((found, host, ends))
    });
    for (row, page) in read.unwrap().zip(&pages) {
        let ((url, importance, fetched), host, (domain, number, distance)) = row.unwrap();
        assert_eq!((&*url, importance), (&*page.url, page.importance));
        assert_eq!(fetched, page.last_fetch.and_then(utc));
        let expected = (url == "http://a.example/").then_some("a.example");
        assert_eq!((host.as_deref(), domain.as_deref()), (expected, expected));
        assert_eq!(
            (number, distance),
            (7, page.more.first().copied().flatten())
        );
    }
    for (question, index) in [
        ("url = 'x'", "ranking_url"),
        ("rank <= 10", "ranking_rank"),
        ("host = 'x' ORDER BY rank", "ranking_host"),
        ("domain = 'x' ORDER BY rank", "ranking_domain"),
    ] {
        let plan = format!("EXPLAIN QUERY PLAN SELECT * FROM ranking WHERE {question}");
        let plan: String = database.query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains(index), "{plan}");
    }
}

#[test]
fn formats_are_known_by_name() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().unwrap(), format);
    }
    assert!("xlsx".parse::<Format>().is_err());
}

/// Writer that takes `room` bytes and then is a closed pipe; counts later writes.
struct Pipe {
    room: usize,
    refused: Arc<Mutex<u32>>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            *self.refused.lock().unwrap() += 1;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A closed pipe is reported as such by every format, and nothing is written after it.
#[test]
fn write_errors_come_through_once() {
    let url = "http://example/".repeat(30);
    let pages = vec![page(&url, 0.5, None); 3000];
    for format in Format::ALL {
        let whole = written(format, &pages).unwrap().len();
        for room in [0, 1, 3, 100, whole / 2, whole - 1] {
            let refused = Arc::new(Mutex::new(0));
            let pipe = Pipe {
                room,
                refused: refused.clone(),
            };
            let rows = pages.iter().cloned().map(Ok);
            match export(format, &setup(), pipe, Path::new("pipe"), rows) {
                Err(Error::Io { source, path, .. }) => {
                    assert_eq!(
                        source.kind(),
                        io::ErrorKind::BrokenPipe,
                        "{format:?} {room}"
                    );
                    assert_eq!(path, Path::new("pipe"));
                }
                other => panic!("{format:?} {room}: {other:?}"),
            }
            assert_eq!(*refused.lock().unwrap(), 1, "{format:?} {room}");
        }
    }
}

proptest! {
    /// Any name and importance is read back unchanged, from JSON and from TSV.
    #[test]
    fn reads_back(url in any::<String>(), bits in any::<u64>(), seconds in -300_000_000_000i64..250_000_000_000) {
        let importance = f64::from_bits(bits);
        prop_assume!(importance.is_finite());
        let row = page(&url, importance, Some(seconds));
        let line = text(Format::Jsonl, std::slice::from_ref(&row));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(value["url"].as_str().unwrap(), &url);
        let time: jiff::Timestamp = value["last_fetch"].as_str().unwrap().parse().unwrap();
        prop_assert_eq!(time.as_second(), seconds);
        // The last such key is the object's own: no string follows it before the number.
        let (_, rest) = line.rsplit_once("\"importance\":").unwrap();
        let digits = rest.split(',').next().unwrap();
        prop_assert_eq!(digits.parse::<f64>().unwrap().to_bits(), importance.to_bits());
        match written(Format::Tsv, &[row]) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                let columns: Vec<&str> = text.trim_end_matches('\n').rsplit_once('\n').unwrap().1.split('\t').collect();
                prop_assert_eq!(columns.len(), 8);
                prop_assert_eq!(columns[0], &url);
                prop_assert_eq!(columns[1].parse::<f64>().unwrap().to_bits(), importance.to_bits());
            }
            Err(_) => prop_assert!(url.contains(['\t', '\n', '\r'])),
        }
    }
}
