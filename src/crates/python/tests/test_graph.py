"""PageRank of arrays, and links as arrays, against networkx and closed forms."""

import networkx
import numpy
import pytest
from conftest import LINKS
from test_store import pagerank

import cashrank


def test_edges_are_the_links(store):
    src, dst = store.edges()
    assert (src.dtype, dst.dtype) == (numpy.uint32, numpy.uint32)
    assert sorted(zip(src.tolist(), dst.tolist())) == LINKS
    assert src.flags.owndata is False and src.flags.writeable
    scores = cashrank.pagerank(src, dst, nodes=len(store))
    assert numpy.abs(scores - store.ranking().importance()).sum() < 3e-9


@pytest.mark.parametrize("until", [1e-6, 1e-11])
@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85, 0.99])
def test_it_agrees_with_networkx(damping, until):
    graph = networkx.scale_free_graph(2_000, seed=7)
    links = numpy.array([(src, dst) for src, dst, _ in graph.edges])
    scores = cashrank.pagerank(links[:, 0], links[:, 1], damping=damping, until=until)
    assert scores.shape == (2_000,) and scores.dtype == numpy.float64
    assert scores.sum() == pytest.approx(1)
    # Damping is rounded to a multiple of 2**-32, which moves PageRank by so much at most.
    rounding = 2 * 2**-32 / (1 - damping)
    expected = pagerank(links, 2_000, damping)
    assert numpy.abs(scores - expected).sum() <= until + rounding + 1e-12


def test_it_agrees_with_networkx_without_links_to_oneself():
    links = [(0, 0), (0, 1), (1, 2), (2, 2), (2, 0), (0, 1)]
    src, dst = zip(*links)
    kept = cashrank.pagerank(src, dst)
    dropped = cashrank.pagerank(src, dst, self_links="drop")
    assert numpy.abs(kept - pagerank(links, 3)).sum() < 3e-9
    assert numpy.abs(dropped - pagerank([link for link in links if link[0] != link[1]], 3)).sum() < 3e-9
    assert numpy.abs(kept - dropped).sum() > 0.1


def test_a_ring_ranks_all_pages_alike():
    src = numpy.arange(10)
    assert cashrank.pagerank(src, (src + 1) % 10) == pytest.approx(numpy.full(10, 0.1))


def test_pages_without_links():
    # 1 -> 0 among n pages, d = 1/2: with s what all are given, x0 = s + s/2, all others s.
    scores = cashrank.pagerank([1], [0], damping=0.5, nodes=4, until=1e-12)
    assert scores == pytest.approx(numpy.array([1.5, 1, 1, 1]) / 4.5, abs=1e-11)
    assert cashrank.pagerank([], []).shape == (0,)
    assert cashrank.pagerank([], [], nodes=3) == pytest.approx(numpy.full(3, 1 / 3))


def test_weights_of_repeated_links_add_up():
    # 0 -> 1 weighs 1 + 2 and 0 -> 2 weighs 1, d = 1/2, pages 1 and 2 lead nowhere: with s what all are given, x0 = s,
    # x1 = s + 3/8 s, x2 = s + 1/8 s.
    expected = numpy.array([1, 11 / 8, 9 / 8]) / 3.5
    for scale in [1, 1e-300, 1e300]:
        weights = numpy.array([1, 1, 2, 0]) * scale
        scores = cashrank.pagerank([0, 0, 0, 1], [1, 2, 1, 0], weights, damping=0.5, until=1e-12)
        assert scores == pytest.approx(expected, abs=1e-11)
    # The same without weights: repeated links count once.
    once = cashrank.pagerank([0, 0, 0], [1, 2, 1], damping=0.5, until=1e-12)
    assert numpy.array_equal(once, cashrank.pagerank([0, 0], [1, 2], [7, 7], damping=0.5, until=1e-12))


@pytest.mark.parametrize("until", [1e-6, 1e-12])
@pytest.mark.parametrize("scale", [1, 0.1, 1 / 3])
def test_teleport_is_where_surfers_begin(until, scale):
    # All begin at page 0 of a chain of two links and again at its end, or at page 3: x1 = d x0, x2 = d x1.
    teleport = numpy.array([3, 0, 0, 1]) * scale
    scores = cashrank.pagerank([0, 1], [1, 2], None, teleport, damping=0.5, until=until)
    assert numpy.abs(scores - numpy.array([12, 6, 3, 4]) / 25).sum() <= until
    # One page more than links name.
    with pytest.raises(cashrank.InvalidInput, match="teleport has 4 weights for 5 pages"):
        cashrank.pagerank([0, 1], [1, 2], teleport=teleport, nodes=5)


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"])
def test_integers_of_all_kinds(kind):
    src, dst = numpy.array([0, 1, 2, 0], kind), numpy.array([1, 2, 0, 2], kind)
    expected = cashrank.pagerank([0, 1, 2, 0], [1, 2, 0, 2])
    assert numpy.array_equal(cashrank.pagerank(src, dst), expected)
    # Every second one, backwards: no memory in one piece.
    wide = numpy.zeros(8, kind)
    wide[::2] = src[::-1]
    assert numpy.array_equal(cashrank.pagerank(wide[::2][::-1], dst), expected)


@pytest.mark.parametrize(
    ("src", "dst", "more", "error"),
    [
        ([0, 1], [1], {}, cashrank.InvalidInput),
        ([-1], [0], {}, cashrank.InvalidInput),
        ([2**32 - 1], [0], {}, cashrank.InvalidInput),
        ([0.5], [1.0], {}, TypeError),
        (["a"], ["b"], {}, TypeError),
        ([[0, 1]], [[1, 0]], {}, TypeError),
        ([0], [1], {"nodes": 1}, cashrank.InvalidInput),
        ([0], [1], {"nodes": 2**40}, cashrank.Unsupported),
        ([0], [1], {"nodes": -1}, OverflowError),
        ([0], [1], {"damping": 1.0}, cashrank.InvalidInput),
        ([0], [1], {"damping": float("nan")}, cashrank.InvalidInput),
        ([0], [1], {"until": 0.0}, cashrank.InvalidInput),
        ([0], [1], {"until": float("inf")}, cashrank.InvalidInput),
        ([0], [1], {"self_links": "some"}, cashrank.InvalidInput),
        ([0], [1], {"weights": [1, 2]}, cashrank.InvalidInput),
        ([0], [1], {"weights": [-1]}, cashrank.InvalidInput),
        ([0], [1], {"weights": [float("inf")]}, cashrank.InvalidInput),
        ([0], [1], {"weights": [[1]]}, TypeError),
        ([0], [1], {"weights": ["heavy"]}, ValueError),
        ([0], [1], {"teleport": [1]}, cashrank.InvalidInput),
        ([0], [1], {"teleport": [0, 0]}, cashrank.InvalidInput),
        ([0], [1], {"teleport": [0, float("nan")]}, cashrank.InvalidInput),
    ],
)
def test_what_makes_no_sense_is_refused(src, dst, more, error):
    with pytest.raises(error):
        cashrank.pagerank(src, dst, **more)


def test_a_bound_that_cannot_be_reached_is_refused():
    src = numpy.arange(1000)
    with pytest.raises(cashrank.InvalidInput, match="numbers of 64 bits"):
        cashrank.pagerank(src, (src * 7 + 1) % 1000, until=1e-19)


def test_any_ranking_is_within_the_largest_distance():
    # One sweep with this damping proves nothing: its bound is above 2.
    src = numpy.arange(1000)
    scores = cashrank.pagerank(src, (src * 7 + 1) % 1000, damping=0.9999, until=2)
    assert scores.shape == (1000,) and scores.sum() == pytest.approx(1)
