"""Arrow tables, exported and imported, with the readers and writers of other libraries."""

import datetime
import sys

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest
from conftest import CRAWL, URLS

import cashrank


def as_rows(table):
    return pyarrow.table(table).to_pylist()


@pytest.mark.parametrize("of", [lambda ranking: ranking, lambda ranking: ranking.to_arrow()], ids=["stream", "table"])
def test_rankings_are_tables(store, of):
    ranking = store.ranking()
    table = pages = of(ranking)
    rows = as_rows(table)
    # More than once, and while it is still read by another.
    assert rows == as_rows(table)
    assert [row["url"] for row in rows] == URLS
    assert [row["page"] for row in rows] == list(range(5))
    assert numpy.array_equal([row["importance"] for row in rows], ranking.importance())
    assert [row["last_fetch"] for row in rows] == [None] * 5
    for row, page in zip(rows, ranking.ranks(URLS)):
        assert (row["rank"], row["visits"]) == (page.rank, page.visits)
    assert polars.DataFrame(table).rows(named=True) == rows
    frame = pandas.DataFrame.from_arrow(table)
    assert list(frame["url"]) == URLS and list(frame["rank"]) == [row["rank"] for row in rows]
    ranks = duckdb.sql("select url, rank from pages order by rank, url").fetchall()
    assert ranks == sorted([(row["url"], row["rank"]) for row in rows], key=lambda row: (row[1], row[0]))
    reader = pyarrow.RecordBatchReader.from_stream(table)
    assert reader.schema == pyarrow.schema(ranking)


def test_a_ranking_is_a_table_of_pyarrow(store):
    ranking = store.ranking()
    assert ranking.to_arrow() == pyarrow.table(ranking)
    assert ranking.to_arrow().column_names == ["url", "importance", "rank", "visits", "last_fetch", "page", "state"]


def test_pyarrow_is_asked_for_where_it_is_missing(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        store.ranking().to_arrow()


@pytest.mark.parametrize("level", ["page", "host"])
def test_rows_are_those_of_the_table(path, level):
    with cashrank.open(path) as store:
        for url, links in CRAWL:
            store.add(url, links, fetched_at=86_400)
        store.publish(settle=1e-12)
        ranking = store.ranking(level=level)
    rows = as_rows(ranking)
    assert [row._asdict() for row in ranking] == rows
    frame = pandas.DataFrame(ranking)
    assert list(frame.columns) == list(rows[0])
    assert [kind.kind for kind in frame.dtypes[1:6]] == ["f", "i", "i", "M", "i"]
    expected = ranking.to_arrow().to_pandas()
    frame["last_fetch"] = frame["last_fetch"].astype(expected["last_fetch"].dtype)
    pandas.testing.assert_frame_equal(frame, expected)


def test_tables_outlive_stores(path):
    with cashrank.open(path) as store:
        store.add("http://a/", ["http://b/"], fetched_at=86_400)
        ranking = store.publish()
    moment = datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone.utc)
    assert [row["last_fetch"] for row in as_rows(ranking)] == [moment, None]


def test_rankings_of_many_batches(path):
    # More pages than a batch has: 131,072.
    count = 200_000
    with cashrank.open(path) as store:
        store.add("http://a/", [f"/{number}" for number in range(count)])
        ranking = store.publish(settle=1e-9)
        reader = pyarrow.RecordBatchReader.from_stream(ranking)
        batches = list(reader)
        assert len(batches) == 2
        assert [row.page for row in ranking] == list(range(count + 1))
        table = pyarrow.Table.from_batches(batches)
        assert table["url"].to_pylist() == ["http://a/", *(f"http://a/{number}" for number in range(count))]
        assert pyarrow.compute.sum(table["importance"]).as_py() == pytest.approx(1)


def tables():
    """The same crawl as tables of all kinds, with the types of strings and lists that these have."""
    columns = {"url": [url for url, _ in CRAWL], "links": [links for _, links in CRAWL]}
    plain = pyarrow.table(columns)

    def cast(text, kind):
        return plain.cast(pyarrow.schema([("url", text), ("links", kind(text))]))

    yield "pyarrow", plain
    yield "batch", plain.to_batches()[0]
    yield "reader", plain.to_reader()
    yield "chunks", pyarrow.concat_tables([plain.slice(0, 1), plain.slice(1, 0), plain.slice(1)])
    yield "large", cast(pyarrow.large_string(), pyarrow.large_list)
    yield "binary", cast(pyarrow.binary(), pyarrow.list_)
    yield "large binary", cast(pyarrow.large_binary(), pyarrow.large_list)
    yield "view", cast(pyarrow.string_view(), pyarrow.list_)
    yield "polars", polars.DataFrame(columns)
    yield "pandas", pandas.DataFrame(columns)
    yield "duckdb", duckdb.sql("select * from plain")
    structs = [[{"url": link, "rel": None} for link in links] for links in columns["links"]]
    yield "structs", pyarrow.table({"url": columns["url"], "links": structs})


@pytest.mark.parametrize(("kind", "table"), [pytest.param(*each, id=each[0]) for each in tables()])
def test_tables_of_all_kinds_are_taken(path, store, kind, table):
    with cashrank.open(path.with_name("tables")) as other:
        assert other.add_batch(table) == 3
        other.publish(settle=1e-12)
        assert numpy.array_equal(other.ranking().importance(), store.ranking().importance())
        assert other.counters == store.counters


def test_columns_have_names_and_types(path):
    day = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
    seconds = int(day.timestamp())
    rows = {
        "response_url": ["http://a/old", "http://a/b", "http://a/c", None],
        "outlinks": [None, [], ["/x", None, "/y"], []],
        "code": pyarrow.array([301, 404, 200, None], pyarrow.uint16()),
        "location": ["/b", None, None, None],
        "sha1": ["1", "2", None, ""],
        "text": ["2026-11-01T00:00:00Z", None, "2026-11-01 01:00:00+01:00", None],
        "whole": [seconds, None, seconds, None],
        "fraction": [seconds + 0.5, None, seconds, None],
        **{
            unit: pyarrow.array([day, None, day, None], pyarrow.timestamp(unit, "UTC")) for unit in ["s", "ms", "us", "ns"]
        },
    }
    names = {"url": "response_url", "links": "outlinks", "status": "code", "redirect": "location", "digest": "sha1"}
    for column in ["text", "whole", "fraction", "s", "ms", "us", "ns"]:
        with cashrank.open(path.with_name(column)) as store:
            assert store.add_batch(pyarrow.table(rows), fetched_at=column, **names) == 4
            ranking = store.publish()
            counters = store.counters
            assert (counters["records"], counters["gone"], counters["skipped"]["bad-url"]) == (3, 1, 1)
            times = {page.url: page.last_fetch for page in ranking.top()}
            assert times["http://a/old"] == times["http://a/c"] == day and times["http://a/x"] is None
            assert {page.url for page in ranking.top()} == {f"http://a/{name}" for name in ["old", "b", "c", "x", "y"]}


@pytest.mark.parametrize(
    ("columns", "names", "says"),
    [
        ({"links": [["/"]]}, {}, 'no column "url": there are links'),
        ({"url": ["http://a/"]}, {}, 'no column "links"'),
        ({"url": [1], "links": [["/"]]}, {}, '"url" is of type Int64: it must be of strings'),
        ({"url": ["http://a/"], "links": ["/"]}, {}, "it must be of lists"),
        ({"url": ["http://a/"], "links": [[1]]}, {}, "it must be of strings"),
        ({"url": ["http://a/"], "links": [[{"href": "/"}]]}, {}, "a field url"),
        ({"url": ["http://a/"], "links": [["/"]], "status": ["200"]}, {}, "whole numbers"),
        ({"url": ["http://a/"], "links": [["/"]]}, {"status": "code"}, 'no column "code"'),
        ({"url": ["http://a/"], "links": [["/"]], "fetched_at": [1_800_000_000_000]}, {}, "row 0: .*milliseconds"),
        ({"url": ["http://a/"], "links": [["/"]], "fetched_at": ["noon"]}, {}, "row 0: .*a time like"),
        ({"url": ["http://a/"], "links": [["/"]], "status": [1 << 40]}, {}, "is no status"),
    ],
)
def test_wrong_columns_are_refused(path, columns, names, says):
    with cashrank.open(path) as store:
        with pytest.raises(cashrank.InvalidInput, match=says):
            store.add_batch(pyarrow.table(columns), **names)
        assert store.pushed == 0


def test_what_is_no_table_is_refused(path):
    with cashrank.open(path) as store:
        with pytest.raises(TypeError, match="__arrow_c_stream__"):
            store.add_batch({"url": []})
        dictionary = pyarrow.array(["http://a/"]).dictionary_encode()
        with pytest.raises(cashrank.InvalidInput, match="Dictionary"):
            store.add_batch(pyarrow.table({"url": dictionary, "links": [["/"]]}))


def test_an_error_of_a_reader_is_raised(path):
    def batches():
        yield pyarrow.record_batch({"url": ["http://a/"], "links": [["/b"]]})
        raise RuntimeError("the disk is gone")

    schema = pyarrow.schema({"url": pyarrow.string(), "links": pyarrow.list_(pyarrow.string())})
    with cashrank.open(path) as store:
        with pytest.raises(cashrank.InvalidInput, match="the disk is gone"):
            store.add_batch(pyarrow.RecordBatchReader.from_batches(schema, batches()))
        store.checkpoint()
        assert store.pushed == 1
