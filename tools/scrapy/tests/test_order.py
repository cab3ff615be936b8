"""The order of requests, and records of responses, without a network."""

import random
from datetime import datetime, timezone

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from cashrank_scrapy.record import record_of
from cashrank_scrapy.pending import Pending

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
    assert waiting._entries < 2_000 and len(waiting._heads) < 30_000
    assert urls(waiting) == ["b", "a"]
    assert len(waiting) == 0 and waiting._pages == {} and waiting._slots == {} and waiting._entries == 0


def test_the_spiders_priority_comes_first():
    waiting = pending("a", "b", "c", c=1)
    waiting.order(pages("b", "a", "c"))
    assert urls(waiting) == ["c", "b", "a"]


def test_a_page_may_wait_twice():
    waiting = pending("a", "a#part", "b")
    waiting.order(pages("b", "a"))
    assert urls(waiting) == ["b", "a", "a#part"]


def test_slots_that_are_full_are_passed_over():
    waiting = Pending()
    for name in "abcdef":
        waiting.add(Request(f"http://a.example/{name}"), "one" if name in "abc" else "two")
    waiting.order(pages("c", "a", "f", "b", "d", "e"))
    full = set()
    pop = lambda: (found := waiting.pop(full.__contains__)) and found[0].url[-1]
    assert pop() == "c"
    full.add("one")
    assert [pop(), pop()] == ["f", "d"]
    # A better one comes to the full slot, and a new list.
    waiting.add(Request("http://a.example/g", priority=1), "one")
    waiting.order(pages("b", "a", "e"))
    assert [pop(), pop()] == ["e", None]
    assert len(waiting) == 3
    full.clear()
    assert [pop(), pop(), pop(), pop()] == ["g", "b", "a", None]
    assert len(waiting) == 0 and waiting._entries == 0


def test_the_order_is_that_of_a_plain_search():
    """Held to the definition: the smallest key of all that wait in slots that are not full."""
    dice = random.Random(1)
    waiting, plain, lists, places = Pending(), {}, 0, {}
    for step in range(20_000):
        act = dice.random()
        if act < 0.4:
            name, slot, priority = str(dice.randrange(500)), f"s{dice.randrange(5)}", dice.choice([0, 0, 0, 1])
            number = waiting.add(Request(f"http://a.example/{name}", priority=priority), slot)
            plain[number] = [name, slot, -priority, *((-lists, places[name]) if name in places else (0, 0))]
        elif act < 0.45:
            names = [str(n) for n in dice.sample(range(500), 50)]
            waiting.order(pages(*names))
            lists, places = lists + 1, {name: place for place, name in enumerate(names)}
            for entry in plain.values():
                if entry[0] in places:
                    entry[3:] = -lists, places[entry[0]]
        else:
            full = {f"s{n}" for n in range(5) if dice.random() < 0.3}
            free = [(*entry[2:], number) for number, entry in plain.items() if entry[1] not in full]
            found = waiting.pop(full.__contains__)
            assert (found and found[1]) == (min(free)[-1] if free else None), step
            if found:
                assert found[2] == (plain.pop(found[1])[3] < 0)
        assert len(waiting) == len(plain)


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


def test_links_are_relative_to_the_base():
    record = record_of(html(b"""<base href="/b/"><a href="c">c</a>"""), NOW)
    assert record["links"] == ["http://a.example/b/c"]


def test_the_method_is_recorded_unless_it_is_get():
    post = Request("http://a.example/dir/", method="POST")
    assert record_of(html(b"", request=post), NOW)["method"] == "POST"
    assert "method" not in record_of(html(b"", request=Request(post.url)), NOW)


def test_redirects_and_failures_have_no_links():
    moved = Response("http://a.example/old", status=301, headers={"Location": "/new"})
    assert record_of(moved, NOW)["redirect"] == "http://a.example/new"
    assert "links" not in record_of(html(b'<a href="b">b</a>', status=404), NOW)
    picture = Response("http://a.example/p.png", body=b"\x89PNG")
    assert record_of(picture, NOW)["links"] == []
