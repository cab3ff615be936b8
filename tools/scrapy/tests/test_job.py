"""Crawls that are stopped, or killed, and go on: what waits is not lost, and nothing is fetched without end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scrapy import Request, Spider
from sites import Site, documentation

from cashrank_scrapy.journal import Journal

HERE = Path(__file__).parent


class Pages(Spider):
    name = "pages"


def names(requests):
    return [request.url[-1] for request in requests]


def test_what_is_not_done_waits_again(tmp_path):
    spider = Pages()
    journal = Journal(tmp_path, spider)
    assert journal.open() == []
    for number, name in enumerate("abcd"):
        journal.came(number, Request(f"http://a.example/{name}", priority=number, callback=spider.parse, meta={"depth": {1: (2, None)}}))
    journal.done(1)
    with pytest.raises(ValueError):
        journal.came(4, Request("http://a.example/e", callback=lambda response: None))
    # Not closed: as after a kill.
    again = Journal(tmp_path, spider)
    waiting = again.open()
    assert names(waiting) == ["a", "c", "d"]
    assert [(request.priority, request.callback, request.meta["depth"]) for request in waiting][1] == (2, spider.parse, {1: (2, None)})
    # Numbers are those of the new log.
    again.done(0)
    again.came(3, Request("http://a.example/f"))
    again.close()
    assert names(Journal(tmp_path, spider).open()) == ["c", "d", "f"]


def test_a_log_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
    journal = Journal(tmp_path, Pages())
    journal.open()
    sizes = []
    for number, name in enumerate("abc"):
        journal.came(number, Request(f"http://a.example/{name}"))
        sizes.append((tmp_path / "cashrank.requests").stat().st_size)
    journal.close()
    whole = (tmp_path / "cashrank.requests").read_bytes()
    for cut in range(len(whole) + 1):
        (tmp_path / "cashrank.requests").write_bytes(whole[:cut])
        assert names(Journal(tmp_path, Pages()).open()) == list("abc")[: sum(size <= cut for size in sizes)]


def command(site, job, **settings):
    # The ingest may be any that ends: what is tried here is what waits.
    settings = {"JOBDIR": str(job), "CASHRANK_COMMAND": [sys.executable, "-c", "import sys; sys.stdin.read()"], **settings}
    store = str(job) + ".store"
    return [sys.executable, HERE / "crawl.py", site.address + "/", store, json.dumps(settings)]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parent), "no_proxy": "*", "PYTHONDONTWRITEBYTECODE": "1"}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, env=ENVIRONMENT)
    return json.loads(done.stdout), done.stderr


def test_a_crawl_that_was_stopped_goes_on(tmp_path):
    pages = documentation(400, 1)
    site = Site(pages)
    try:
        stopped, _ = run(command(site, tmp_path / "job", CLOSESPIDER_PAGECOUNT=100))
        assert stopped["finish_reason"] == "closespider_pagecount"
        before = len(site.asked)
        assert 100 <= before < 400
        went_on, said = run(command(site, tmp_path / "job"))
    finally:
        site.close()
    assert went_on["finish_reason"] == "finished", said
    # Each page once: what was fetched is not fetched again, and what waited is.
    assert sorted(site.asked) == sorted(pages)


def test_a_crawl_that_was_killed_loses_nothing(tmp_path):
    pages = documentation(400, 2)
    site = Site(pages)
    try:
        crawl = subprocess.Popen(
            command(site, tmp_path / "job", DOWNLOAD_DELAY=0.01), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
        )
        while len(site.asked) < 50 and crawl.poll() is None:
            time.sleep(0.01)
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
        run(command(site, tmp_path / "job"))
    finally:
        site.close()
    # What it was at is fetched again: at most what it may be at, 16, and what Scrapy had not yet noted to have seen.
    assert set(site.asked) == set(pages)
