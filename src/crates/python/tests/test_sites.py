"""Rankings of sites and by measures, and the links between sites."""

from collections import Counter

import numpy
import pyarrow
import pytest
from conftest import LINKS, URLS

import cashrank

HOSTS = ["a.example", "b.example"]
# By hand: the host of each page of the crawl.
HOST_OF = [0, 0, 1, 1, 1]


def test_sites_have_the_importance_of_their_pages(store):
    pages = store.ranking()
    hosts = store.ranking(level="host")
    assert (hosts.level, hosts.measure, len(hosts)) == ("host", None, 2)
    assert hosts.bound == pages.bound
    sums = numpy.bincount(HOST_OF, weights=pages.importance())
    assert hosts.importance() == pytest.approx(sums, abs=1e-15)
    best = [HOSTS[at] for at in numpy.argsort(-sums)]
    assert [site.url for site in hosts.top(5)] == best
    assert [site.url for site in store.top(1, level="host")] == best[:1]
    assert [hosts.rank(name).pages for name in HOSTS] == [2, 3]
    assert store.rank("b.example", level="host").visits == 1
    assert store.ranks(["c.example", "a.example"], level="host")[0] is None
    assert store.rank(URLS[0]).pages is None


def test_sites_are_tables(store):
    hosts = store.ranking(level="host")
    for table in hosts, hosts.to_arrow():
        rows = pyarrow.table(table).to_pylist()
        assert [(row["url"], row["page"], row["pages"]) for row in rows] == [("a.example", 0, 2), ("b.example", 1, 3)]
        assert [row["importance"] for row in rows] == list(hosts.importance())
    assert hosts.to_arrow().column_names[-1] == "pages"
    assert "pages" not in store.ranking().to_arrow().column_names


def test_the_history_of_a_site(store, path):
    first = store.rank("a.example", level="host")
    store.add("http://c.example/", ["http://a.example/"])
    store.publish(settle=1e-12)
    moments = store.history("a.example", level="host")
    assert [moment.importance for moment in moments] == [
        first.importance,
        store.rank("a.example", level="host").importance,
    ]
    assert [moment.count for moment in moments] == [2, 3]
    assert [moment.rank for moment in store.history("c.example", level="host")][0] is None


def test_links_between_sites_are_those_of_their_pages(store):
    pairs = [(HOST_OF[a], HOST_OF[b]) for a, b in LINKS]
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    src, dst, weight = store.edges("host", weights=True)
    assert (src.dtype, dst.dtype, weight.dtype) == (numpy.uint32, numpy.uint32, numpy.uint64)
    assert dict(zip(zip(src.tolist(), dst.tolist()), weight.tolist())) == counts
    *_, once = store.edges("host", weights=True, site_links="once")
    assert once.tolist() == [1] * len(counts)
    assert len(store.edges("host")) == 2


def test_links_between_pages_have_weights(store):
    src, dst, weight = store.edges(weights=True)
    assert set(zip(src.tolist(), dst.tolist())) == set(LINKS) and weight.tolist() == [1] * len(LINKS)


def test_measures_are_computed(store, path):
    with pytest.raises(cashrank.NotFound, match="harmonic"):
        store.ranking(measure="harmonic")
    degrees = numpy.bincount([b for _, b in LINKS], minlength=5)
    ranking = store.compute("in-degree")
    assert (ranking.level, ranking.measure) == ("page", "in-degree")
    assert ranking.info["computed"]["measure"] == "in-degree"
    scores = ranking.importance()
    assert scores / scores.sum() == pytest.approx(degrees / degrees.sum())
    assert store.rank(URLS[2], measure="in-degree").importance == scores[2]
    # Each links to the other.
    store.compute("in-degree", level="host")
    assert [site.rank for site in store.top(5, level="host", measure="in-degree")] == [1, 1]
    # The store is open for adding as before.
    assert store.add("http://c.example/", [URLS[0]]) is None and store.checkpoint()
    assert store.pushed == 4


def test_measures_have_their_parameters(store):
    src, dst = store.edges()
    teleport = [3, 0, 0, 0, 1]
    expected = cashrank.pagerank(src, dst, teleport=teleport, damping=0.5, nodes=5)
    chosen = {URLS[0].upper().replace("HTTP", "http"): 3, f"url:{URLS[4]}": 1}
    found = store.compute("personalised", teleport=chosen, damping=0.5, until=1e-8)
    assert numpy.abs(found.importance() - expected).sum() < 2e-8
    alike = store.compute("personalised", teleport=["host:a.example", "host:b.example"], until=1e-8)
    assert numpy.abs(alike.importance() - store.ranking().importance()).sum() < 2e-8
    for wrong in [{"damping": 0.5}, {"until": 1e-3}, {"teleport": [URLS[0]]}, {"level": "planet"}]:
        with pytest.raises(cashrank.InvalidInput):
            store.compute("in-degree", **wrong)
    with pytest.raises(cashrank.InvalidInput):
        store.compute("personalised")
    with pytest.raises(cashrank.NotFound):
        store.compute("personalised", teleport=["host:nowhere.example"])


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.ranking(level="planet"),
        lambda store: store.ranking(measure="charm"),
        lambda store: store.edges("planet"),
        lambda store: store.edges("host", site_links="twice"),
        lambda store: store.top(5, "host:a.example", level="host"),
    ],
)
def test_words_that_mean_nothing_are_refused(store, call):
    with pytest.raises(cashrank.InvalidInput):
        call(store)


def test_opaque_names_have_no_sites(path):
    with cashrank.open(path, names="opaque") as store:
        store.add("a", ["b"])
        store.publish()
        with pytest.raises(cashrank.Unsupported, match="host"):
            store.ranking(level="host")
