"""Stores: adding records, publishing and querying."""

import gc
import gzip
import json
import os
from datetime import date, datetime, timedelta, timezone

import networkx
import numpy
import pytest
from conftest import CRAWL, LINKS, URLS

import cashrank


def pagerank(links, nodes, damping=0.85):
    """PageRank by networkx, by page number."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(links)
    found = networkx.pagerank(graph, damping, tol=1e-15, max_iter=10_000)
    return numpy.array([found[page] for page in range(nodes)])


def test_a_ranking_is_pagerank_within_its_bound(store):
    expected = pagerank(LINKS, len(URLS))
    ranking = store.ranking()
    # What is left is mostly the rounding of damping to a multiple of 2**-32.
    assert ranking.bound < 3e-9
    assert numpy.abs(ranking.importance() - expected).sum() <= ranking.bound + 1e-14
    assert (store.bound, len(store)) == (ranking.bound, 5)
    best = store.top(2)
    assert [page.page for page in best] == sorted(range(5), key=expected.__getitem__, reverse=True)[:2]
    assert [page.rank for page in best] == [1, 2]
    assert best[0].importance == ranking.importance()[best[0].page]


def test_a_chain_has_its_closed_form(path):
    # a -> b, b without links: all of b goes to both. With s = (1 - d + d b) / 2: a = s, b = s + d a.
    with cashrank.open(path, damping=0.5) as store:
        store.add("http://a/", ["http://b/"])
        store.add("http://b/")
        ranking = store.publish(settle=1e-13)
    assert ranking.importance() == pytest.approx([0.4, 0.6], abs=1e-12)
    assert ranking.info["settings"]["config"]["damping"] == 2**31


def test_top_keeps_to_a_scope(store):
    assert [page.url for page in store.top(scope="host:b.example")] == [
        "http://b.example/e",
        "http://b.example/",
        "http://b.example/d",
    ]
    assert [page.url for page in store.top(1, scope=["url:*/d", "host:b.example"])] == ["http://b.example/e"]
    assert store.top(scope=["url:*/d", "!host:b.example"]) == []
    assert store.top(0) == []
    with pytest.raises(cashrank.InvalidInput, match="host:NAME"):
        store.top(scope="b.example")


def test_pages_are_found_by_urls_in_any_form(store):
    known, unknown = store.ranks(["HTTP://B.example:80/#top", "http://c.example/"])
    assert (known.url, known.page, known.visits) == ("http://b.example/", 2, 1)
    assert unknown is None
    assert store.rank("http://b.example/").rank == 3
    assert store.ranks([]) == []


def test_times_in_all_forms(path):
    moment = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
    forms = [moment, moment.astimezone(timezone(timedelta(hours=-5))), moment.timestamp(), int(moment.timestamp())]
    with cashrank.open(path) as store:
        for number, form in enumerate([*forms, "2026-11-24T13:00:00+01:00"]):
            store.add(f"http://a/{number}", fetched_at=form)
        for wrong in ["yesterday", moment.replace(tzinfo=None), 1_800_000_000_000, float("nan")]:
            with pytest.raises(cashrank.InvalidInput):
                store.add("http://a/", fetched_at=wrong)
        with pytest.raises(TypeError):
            store.add("http://a/", fetched_at=[])
        ranking = store.publish()
        assert {page.last_fetch for page in ranking.top()} == {moment}
        assert ranking.time == moment and len(ranking) == 5


def test_what_records_mean(path):
    with cashrank.open(path, follow="nofollow=0", scope="domain:example") as store:
        assert store.add("http://a.example/", [("/b", "nofollow ugc"), ("/c", None), b"/d"], base="http://x.example/") is None
        assert store.add("http://a.example/old", ["/z"], status=301, redirect="/new") is None
        assert store.add("http://a.example/gone", status=404) is None
        assert store.add("http://a.example/busy", status=503) is None
        assert store.add("mailto:a@example.org") == "bad-url"
        assert store.add("http://elsewhere.org/") == "out-of-scope"
        assert store.add("http://a.example/\udcff", links=("http://b.example/" for _ in range(2))) is None
        store.checkpoint()
        counters = store.counters
        assert (counters["records"], counters["gone"], counters["failed"]) == (5, 1, 1)
        assert (counters["skipped"]["bad-url"], counters["out_of_scope"]) == (1, 1)
        assert store.pushed == 7
        store.publish()
        src, dst = store.edges()
        names = {page.page: page.url for page in store.top(100)}
        assert {(names[s], names[d]) for s, d in zip(src, dst)} == {
            ("http://a.example/", "http://x.example/c"),
            ("http://a.example/", "http://x.example/d"),
            ("http://a.example/old", "http://a.example/new"),
            ("http://a.example/" + 3 * "%EF%BF%BD", "http://b.example/"),
        }
        busy = store.rank("http://a.example/busy")
        assert (busy.visits, busy.failed) == (0, 1)


def test_a_store_is_added_to_again(path):
    for round_, (url, links) in enumerate(CRAWL):
        with cashrank.open(path, damping=0.85) as store:
            assert store.pushed == round_
            store.add(url, links)
    with cashrank.open(path) as store:
        store.publish(settle=1e-12)
    with cashrank.open(path, "r") as store:
        assert store.ranking().importance() == pytest.approx(pagerank(LINKS, 5), abs=3e-9)
        assert (store.mode, store.path) == ("r", path)
        store.verify()


def test_the_same_records_make_the_same_rankings(tmp_path):
    def made(name, every):
        with cashrank.open(tmp_path / name) as store:
            for number, (url, links) in enumerate(CRAWL):
                store.add(url, links)
                if every and number % every == 0:
                    store.checkpoint()
            store.publish()
            return (tmp_path / name / "snapshots" / f"{len(CRAWL):012}.snapshot").read_bytes()

    assert made("a", 0) == made("b", 1)


def test_a_block_that_fails_keeps_what_was_added(path):
    with pytest.raises(ZeroDivisionError):
        with cashrank.open(path) as store:
            store.add(*CRAWL[0])
            raise ZeroDivisionError
    assert store.closed
    with cashrank.open(path) as store:
        assert store.pushed == 1


def test_what_was_not_made_durable_is_lost_as_a_whole(path):
    store = cashrank.open(path)
    store.add(*CRAWL[0])
    store.checkpoint()
    store.add(*CRAWL[1])
    del store
    gc.collect()
    with cashrank.open(path) as store:
        assert store.pushed == 1


def test_what_to_crawl_next(store):
    assert {page.url for page in store.next()} == {"http://b.example/d", "http://b.example/e"}
    assert len(store.next(1)) == 1
    assert len(store.next(per_host=1)) == 1
    assert [page.url for page in store.next(exclude=["HTTP://b.example/e"])] == ["http://b.example/d"]
    assert store.next(exclude=store.next()) == []
    assert [page.url for page in store.next(seeds=["http://c.example/"], scope="domain:c.example")] == ["http://c.example/"]
    again = store.next(refetch=True, budget=None, per_domain=None)
    assert {page.url for page in again} == set(URLS[:3]) and all(page.fetched for page in again)
    mixed = store.next(4, budget=0.5, older_than=timedelta(days=1), as_of=datetime(2030, 1, 1, tzinfo=timezone.utc))
    assert sorted(page.fetched for page in mixed) == [False, False, True, True]
    assert len(store.next(focus={"url:*/d": 0.3, "host:a.example": 0.1}, strategy="settled")) == 2
    with pytest.raises(cashrank.InvalidInput, match="unknown parameter; use one of strategy"):
        store.next(per_page=1)
    with pytest.raises(cashrank.InvalidInput, match="at least 1"):
        store.next(per_host=0)


def test_seeds_come_before_there_is_a_ranking(path):
    with cashrank.open(path) as store:
        assert [page.url for page in store.next(seeds=["http://a.example"])] == ["http://a.example/"]
        assert (len(store), store.bound, bool(store)) == (0, None, True)


def test_what_moved(path):
    day = [datetime(2026, 11, 1 + number, tzinfo=timezone.utc) for number in range(2)]
    with cashrank.open(path) as store:
        store.add("http://a/", ["http://b/", "http://c/"], fetched_at=day[0])
        first = store.publish(settle=1e-9)
        store.add("http://b/", ["http://c/", "http://d/"], fetched_at=day[1])
        last = store.publish(settle=1e-9)
        before, after = first.importance(), last.importance()
        found = store.compare("2026-11-01", by="change")
        assert [page.url for page in found.new] == ["http://d/"]
        assert found.missing == []
        moves = {page.url: page for page in found.rose + found.fell}
        change = after[:3] - before
        assert {url: page.change for url, page in moves.items()} == {
            url: change[number] for number, url in enumerate(["http://a/", "http://b/", "http://c/"]) if change[number] != 0
        }
        assert all(page.certain for page in moves.values())
        assert found.summary["common_pages"] == 3
        assert found.summary["l1"] == pytest.approx(abs(change).sum() + after[3])
        for since in [first.number, date(2026, 11, 1), day[0]]:
            assert store.compare(since).summary == found.summary
        # Settled to 1e-9, so all changes are certain. By rank, only what changed its rank is listed.
        certain = store.compare(1, by="change", certain_only=True)
        assert {page.url for page in certain.rose + certain.fell} == set(moves)
        ranked = store.compare(1, by="rank")
        assert all(page.rank != page.rank_before for page in ranked.rose + ranked.fell)
        assert store.compare(1, by="change", top=None).summary["unchanged_pages"] == 3 - len(moves)
        assert [entry.number for entry in store.snapshots()] == [1, 2]
        assert [entry.current for entry in store.snapshots()] == [False, True]
        assert store.snapshots()[0].time == day[0]
        # A ranking stays what it is.
        assert (len(first), len(store.ranking(1)), len(store.ranking())) == (3, 3, 4)
        with pytest.raises(cashrank.NotFound, match="no snapshot 7"):
            store.ranking(7)
        with pytest.raises(cashrank.InvalidInput):
            store.compare("lately")
        with pytest.raises(cashrank.InvalidInput, match="by="):
            store.compare(1, by="size")


def test_opaque_names(path):
    with cashrank.open(path, names="opaque") as store:
        store.add("A", ["b", "a"])
        store.publish()
        assert {page.url for page in store.top()} == {"A", "a", "b"}


def test_links_are_kept_by_default(path):
    with cashrank.open(path, keep_links=False) as store:
        store.add(*CRAWL[0])
        store.publish()
        with pytest.raises(cashrank.NotFound, match="keep_links"):
            store.edges()


def test_the_history_of_a_page_is_its_rank_in_each_ranking(path):
    with cashrank.open(path) as store:
        for url, links in CRAWL:
            store.add(url, links, fetched_at=86_400)
            store.publish()
        entries = store.snapshots()
        url = store.top(1)[0].url
        history = store.history(url)
        assert [moment.snapshot for moment in history] == [entry.number for entry in entries]
        for moment in history:
            page = store.ranking(moment.snapshot).rank(url)
            assert (moment.rank, moment.importance) == (page and (page.rank, page.importance) or (None, None))
            assert moment.time_s == 86_400 and moment.time.year == 1970
            assert page is None or moment.ratio == pytest.approx(moment.importance * moment.count)
        assert store.history("http://nowhere.example/") == []


def test_only_so_many_rankings_stay(path):
    with cashrank.open(path, keep_snapshots=2) as store:
        for url, links in CRAWL:
            store.add(url, links)
            store.publish()
        assert [entry.number for entry in store.snapshots()] == [2, 3]


def test_paths_of_all_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ["plain", tmp_path / "ranks", os.fsencode(tmp_path / "bytes").decode()]:
        with cashrank.open(path) as store:
            store.add(*CRAWL[0])


def crawl_file(path, crawl):
    lines = [json.dumps({"url": url, "status": 200, "links": links}) for url, links in crawl]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_files_are_ingested(path, store, tmp_path):
    files = [crawl_file(tmp_path / f"{at}.jsonl", CRAWL[at:][:1]) for at in range(3)]
    with cashrank.open(path.with_name("files")) as other:
        assert other.ingest(files[0], settle=1e-12) == 1
        assert len(other) == 4
        # Those that were read before are not read again; records may come in between.
        assert other.ingest(map(str, files), settle=1e-12) == 2
        assert other.ranking().importance() == pytest.approx(store.ranking().importance(), abs=1e-12)
        assert other.counters == store.counters
        assert other.add("http://c.example/", [URLS[0]]) is None
        other.publish()
        assert len(other) == 6
        with pytest.raises(cashrank.InvalidInput, match="no input"):
            other.ingest([])
        with pytest.raises(cashrank.DiskError):
            other.ingest(tmp_path / "nowhere")
        with pytest.raises(cashrank.InvalidInput, match="tables"):
            other.ingest(files, format="tables")
        assert other.pushed == 4


def test_skipped_records_raise_a_warning(path, tmp_path):
    file = crawl_file(tmp_path / "crawl.jsonl", [*CRAWL, ("mailto:a@example.org", [])])
    with cashrank.open(path) as store:
        with pytest.warns(UserWarning, match="not used: 1 bad-url"):
            assert store.ingest(file) == 3
        assert store.counters["skipped"]["bad-url"] == 1
        empty = tmp_path / "empty.jsonl"
        empty.touch()
        with pytest.warns(UserWarning, match="is empty"):
            assert store.ingest([file, empty]) == 0


def test_an_unfinished_ingest_continues(path, tmp_path):
    """A truncated file counts as far as it was read; nothing else can be added until it was read to its end."""
    whole = gzip.compress(crawl_file(tmp_path / "crawl.jsonl", CRAWL * 1000).read_bytes())
    file = tmp_path / "crawl.jsonl.gz"
    file.write_bytes(whole[: len(whole) // 2])
    store = cashrank.open(path)
    with pytest.raises(cashrank.Damaged):
        store.ingest(file)
    for _ in range(2):
        with pytest.raises(cashrank.Conflict, match="has not finished"):
            store.add(*CRAWL[0])
        store.close()
        store = cashrank.open(path)
    file.write_bytes(whole)
    store.ingest(file)
    assert store.pushed == 3000
    assert store.add(*CRAWL[0]) is None
    store.close()


def test_links_of_a_page(store):
    for page, url in enumerate(URLS):
        out, to = ({b for a, b in LINKS if a == page}, {a for a, b in LINKS if b == page})
        for found, expected in [(store.links(url), out), (store.links(url, incoming=True), to)]:
            assert {link.page for link in found} == expected
            assert [link.rank for link in found] == sorted(link.rank for link in found)
            assert all(link.url == URLS[link.page] for link in found)
    assert [link.page for link in store.links("HTTP://A.example", 1)] == [store.links(URLS[0])[0].page]
    with pytest.raises(cashrank.NotFound, match="not known"):
        store.links("http://nowhere.example/")
