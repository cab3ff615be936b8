"""A small crawl that all tests use, and a folder for stores."""

import pytest

import cashrank

# Page, its links; d and e are linked to and were not crawled. No two pages are of the same importance.
CRAWL = [
    ("http://a.example/", ["/b", "http://b.example/", "http://b.example/e"]),
    ("http://a.example/b", ["/", "http://b.example/", "http://b.example/d"]),
    ("http://b.example/", ["http://a.example/", "http://b.example/e"]),
]
URLS = [
    "http://a.example/",
    "http://a.example/b",
    "http://b.example/",
    "http://b.example/e",
    "http://b.example/d",
]
# By hand: the same by page number.
LINKS = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 4), (2, 0), (2, 3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ranks"


@pytest.fixture
def store(path):
    with cashrank.open(path) as store:
        for url, links in CRAWL:
            assert store.add(url, links, status=200) is None
        store.publish(settle=1e-12)
        yield store
