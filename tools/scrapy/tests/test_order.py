"""The order of requests, and records of responses, without a network."""

from datetime import datetime, timezone

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from cashrank_scrapy.record import record_of
from cashrank_scrapy.scheduler import Pending

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)


def urls(pending):
    found = []
    while (popped := pending.pop()) is not None:
        found.append(popped[0].url.rsplit("/", 1)[1])
    return found


def pending(*names, **priorities):
    waiting = Pending()
    for name in names:
        waiting.add(Request(f"http://a.example/{name}", priority=priorities.get(name, 0)))
    return waiting


def pages(*names):
    return [f"http://a.example/{name}" for name in names]


def test_without_a_list_first_come_first_served():
    assert urls(pending("c", "a", "b")) == ["c", "a", "b"]


def test_a_list_comes_first_in_its_order():
    waiting = pending("a", "b", "c", "d")
    waiting.order(pages("d", "x", "b"))
    waiting.add(Request("http://a.example/x"))
    waiting.add(Request("http://a.example/e"))
    assert urls(waiting) == ["d", "x", "b", "a", "c", "e"]


def test_newer_lists_come_before_older_ones():
    waiting = pending("a", "b", "c", "d")
    waiting.order(pages("d", "c"))
    waiting.order(pages("b"))
    assert urls(waiting) == ["b", "d", "c", "a"]
    # A request is handed out once, however many lists named it.
    waiting = pending("a", "b")
    for _ in range(10_000):
        waiting.order(pages("b", "a"))
    assert len(waiting._heap) < 2_000
    assert urls(waiting) == ["b", "a"]
    assert len(waiting) == 0 and waiting._pages == {}


def test_the_spiders_priority_comes_first():
    waiting = pending("a", "b", "c", c=1)
    waiting.order(pages("b", "a", "c"))
    assert urls(waiting) == ["c", "b", "a"]


def test_a_page_may_wait_twice():
    waiting = pending("a", "a#part", "b")
    waiting.order(pages("b", "a"))
    assert urls(waiting) == ["b", "a", "a#part"]


def html(body, url="http://a.example/dir/", **more):
    return HtmlResponse(url, body=body, encoding="utf-8", **more)


def test_the_links_of_a_page_are_recorded():
    body = b"""<a href="b">b</a> <a href="/c#x" rel="me nofollow">c</a> <a href="b">b</a>"""
    record = record_of(html(body), NOW)
    assert record == {
        "url": "http://a.example/dir/",
        "status": 200,
        "fetched_at": "2026-01-02T00:00:00+00:00",
        "links": [
            "http://a.example/dir/b",
            {"url": "http://a.example/c#x", "nofollow": True},
            "http://a.example/dir/b",
        ],
    }


def test_redirects_and_failures_have_no_links():
    moved = Response("http://a.example/old", status=301, headers={"Location": "/new"})
    assert record_of(moved, NOW)["redirect"] == "http://a.example/new"
    assert "links" not in record_of(html(b'<a href="b">b</a>', status=404), NOW)
    picture = Response("http://a.example/p.png", body=b"\x89PNG")
    assert record_of(picture, NOW)["links"] == []
