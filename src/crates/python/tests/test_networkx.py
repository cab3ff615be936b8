"""networkx's own tests of PageRank, with cashrank in its place."""

import importlib

import networkx
import numpy
import pytest
from networkx.algorithms.link_analysis import pagerank_alg

import cashrank


def pagerank(
    G, alpha=0.85, personalization=None, max_iter=100, tol=1e-6, nstart=None, weight="weight", dangling=None
):
    """Replace networkx.pagerank by cashrank.pagerank; the start of the iteration, nstart, does not affect the result."""
    number = {node: at for at, node in enumerate(G)}
    links = [(number[a], number[b], w) for a, b, w in G.to_directed().edges(data=weight, default=1)]
    shares = None if personalization is None else [personalization.get(node, 0) for node in G]
    if shares is not None and not any(shares):
        raise ZeroDivisionError
    if dangling is not None:
        # A page without links whose importance goes where teleport does not is one with weighted links.
        ends = {a for a, _, _ in links}
        to = [(number[node], share) for node, share in dangling.items()]
        links += [(at, b, share) for at in number.values() if at not in ends for b, share in to]
    src, dst, weights = zip(*links) if links else ([], [], [])
    found = cashrank.pagerank(src, dst, weights, shares, damping=alpha, until=tol, nodes=len(number))
    return dict(zip(number, found.tolist()))


# Theirs, which is another name for the one of SciPy.
theirs_for_real = networkx.pagerank
NAMES = ["_pagerank_python", "_pagerank_scipy", "_pagerank_numpy"]

# The parameters of its tests are made when they are imported.
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(networkx, "pagerank", pagerank)
    for name in NAMES:
        patch.setattr(pagerank_alg, name, pagerank)
    theirs = importlib.import_module("networkx.algorithms.link_analysis.tests.test_pagerank")


@pytest.fixture(autouse=True)
def in_its_place(monkeypatch):
    monkeypatch.setattr(networkx, "pagerank", pagerank)


class TestPageRank(theirs.TestPageRankScipy):
    # It has all tests of theirs.TestPageRank, and those of the variant of SciPy.

    # They bound the number of steps. cashrank has none to bound: it ends at the certified bound.
    test_pagerank_max_iter = None
    test_scipy_pagerank_max_iter = None
    # They try another function, which returns the matrix.
    test_google_matrix = None
    test_dangling_matrix = None


def test_it_is_cashrank_that_is_tried():
    assert theirs._pagerank_scipy is pagerank and theirs.nx.pagerank is pagerank


@pytest.mark.parametrize("seed", range(3))
def test_any_weights_and_any_teleport(seed):
    """Compare with networkx, converged, on a graph with repeated links, self-links and pages without links."""
    random = numpy.random.default_rng(seed)
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(60))
    for a, b in random.integers(60, size=(150, 2)):
        graph.add_edge(a, b, weight=random.random() * 10.0 ** random.integers(-3, 4))
    teleport = dict(enumerate(random.random(60)))
    found = pagerank(graph, 0.85, teleport, tol=1e-11)
    expected = theirs_for_real(graph, 0.85, teleport, tol=1e-15, max_iter=10_000)
    # Damping is rounded to a multiple of 2**-32.
    off = sum(abs(found[node] - expected[node]) for node in graph)
    assert off < 1e-11 + 2 * 2**-32 / 0.15
