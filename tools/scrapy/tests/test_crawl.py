"""Real crawls of a site on this machine, with the program. CASHRANK names it; else these tests are skipped, and say so."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sites import Site, documentation, page

HERE = Path(__file__).parent
CASHRANK = os.environ.get("CASHRANK")
needs_cashrank = pytest.mark.skipif(not CASHRANK, reason="CASHRANK does not name the program")


def crawl(site, store, **settings):
    """Crawls all of a site; Scrapy's statistics, and what was logged."""
    if store:
        settings.setdefault("CASHRANK_COMMAND", [CASHRANK and os.path.abspath(CASHRANK)])
    done = subprocess.run(
        [sys.executable, HERE / "crawl.py", site.address + "/", str(store or ""), json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent), "no_proxy": "*"},
    )
    return json.loads(done.stdout), done.stderr


def cashrank(*arguments):
    done = subprocess.run([CASHRANK, *arguments], capture_output=True, text=True, timeout=100)
    return done.stdout


@pytest.fixture
def small():
    site = Site(
        {
            "/": page(["/a", "/b", "/old"]),
            "/a": page(["/b"]),
            "/b": page(["/", "/missing"]),
            "/old": (302, {"Location": "/new"}, b""),
            "/new": page([]),
        }
    )
    yield site
    site.close()


@needs_cashrank
def test_what_is_fetched_is_in_the_store(small, tmp_path):
    store = tmp_path / "store"
    stats, _ = crawl(small, store)
    assert sorted(small.asked) == ["/", "/a", "/b", "/missing", "/new", "/old"]
    # Five pages and a redirect: each response is a record, and each address a page.
    assert stats["cashrank/records"] == 6 and "cashrank/lost" not in stats
    told = json.loads(cashrank("stat", "--json", "--store", str(store)))
    assert (told["records"], told["gone"], told["pages"]) == (6, 1, 6)
    # / -> a, b, old; a -> b; b -> /, missing; old -> new
    assert told["links"] == 3 + 1 + 2 + 1


@needs_cashrank
def test_lists_are_asked_for_and_followed(tmp_path):
    site = Site(documentation(400, 1))
    try:
        settings = {"CASHRANK_SNAPSHOT_EVERY": "20", "CASHRANK_REFRESH": 0.1, "DOWNLOAD_DELAY": 0.01, "LOG_LEVEL": "INFO"}
        stats, log = crawl(site, tmp_path / "store", **settings)
    finally:
        site.close()
    assert len(site.asked) == len(set(site.asked)) == 400
    assert stats["cashrank/lists"] > 2, log
    assert stats["cashrank/scored"] > 100, log
    # Each snapshot used to be two lines of the log, twice a second.
    assert stats["cashrank/snapshots"] > 2, log
    assert log.count("cashrank: ") < 10 and log.count(".snapshot: ") == 1, log


def test_a_crawl_goes_on_where_the_program_is_absent(small, tmp_path):
    stats, log = crawl(small, tmp_path / "store", CASHRANK_COMMAND=["/nowhere/cashrank"])
    assert len(small.asked) == 6
    assert stats["cashrank/lost"] == 6 and "cashrank/scored" not in stats
    assert log.count("cannot be run") == 1


def test_a_service_that_is_down_is_told_of_once(tmp_path):
    """Nobody listens at this address: the crawl is whole, in the order in which pages are found."""
    pages = documentation(100, 3)
    site = Site(pages)
    try:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            down = f"http://127.0.0.1:{unused.getsockname()[1]}"
        settings = {"CASHRANK_SERVICE": down, "CASHRANK_REFRESH": 0.02, "DOWNLOAD_DELAY": 0.01}
        stats, log = crawl(site, "unused", **settings)
    finally:
        site.close()
    assert sorted(site.asked) == sorted(pages)
    assert stats["cashrank/failed_lists"] > 1
    assert log.count("no list of pages") == 1


def test_a_crawl_outlives_its_ingest(small, tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit(7)"]
    stats, log = crawl(small, tmp_path / "store", CASHRANK_COMMAND=command)
    assert len(small.asked) == 6
    # How many reached the pipe before its reader ended depends on the machine.
    assert stats.get("cashrank/lost", 0) + stats.get("cashrank/records", 0) == 6
    assert "exit code 7" in log
