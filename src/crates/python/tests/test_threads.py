"""Threads, the interpreter's lock, and Ctrl-C."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import cashrank


def graph(nodes, links):
    random = numpy.random.default_rng(1)
    return random.integers(0, nodes, links), random.integers(0, nodes, links)


def test_threads_add_by_turns(path):
    def add(thread):
        for number in range(500):
            store.add(f"http://{thread}.example/{number}", ["/", f"/{number + 1}"])

    with cashrank.open(path) as store:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(add, range(8)))
        store.publish()
        assert store.pushed == 4_000
        assert len(store) == 8 * 502
        store.verify()


def test_threads_ask_while_another_adds(path):
    with cashrank.open(path) as store:
        store.add("http://a/", ["/0"])
        store.publish()
        done = threading.Event()
        sizes = []

        def ask():
            while not done.is_set():
                sizes.append((len(store), len(store.top(3)), len(store.edges()[0])))

        asking = threading.Thread(target=ask)
        asking.start()
        for number in range(20):
            store.add(f"http://a/{number}", [f"/{number + 1}"])
            store.publish()
        done.set()
        asking.join()
        assert sizes and sizes == sorted(sizes)


def test_closing_while_another_thread_publishes(path):
    store = cashrank.open(path)
    for number in range(2_000):
        store.add(f"http://a/{number}", [f"/{number * 7 % 2_000}", f"/{number * 3 % 2_000}"])
    with ThreadPoolExecutor(4) as threads:
        results = [threads.submit(store.publish, 1e-9) for _ in range(3)] + [threads.submit(store.close)]
    for result in results[:3]:
        assert result.exception() is None or isinstance(result.exception(), cashrank.Closed)
    assert results[3].exception() is None and store.closed


def test_the_lock_is_released():
    src, dst = graph(100_000, 2_000_000)
    with ThreadPoolExecutor(1) as threads:
        ticks = 0
        result = threads.submit(cashrank.pagerank, src, dst, damping=0.99, until=1e-11)
        while not result.done():
            time.sleep(0.001)
            ticks += 1
    assert result.result().shape == (100_000,)
    assert ticks > 20


def interrupted(work):
    """Send SIGINT soon after the work has begun; return how long it ran on."""
    sent = []

    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    # A shell has its jobs in the background ignore the signal, and so would Python.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            work()
    thread.join()
    signal.signal(signal.SIGINT, before)
    return time.monotonic() - sent[0]


def test_ctrl_c_ends_pagerank():
    # A ring both ways, with a shortcut here and there, and damping near 1: it would take minutes.
    pages = numpy.arange(200_000)
    src, dst = numpy.repeat(pages, 2), numpy.stack([pages + 1, pages - 1], 1).ravel() % 200_000
    dst[::7] = 0
    assert interrupted(lambda: cashrank.pagerank(src, dst, damping=0.999999, until=1e-6)) < 2


def test_ctrl_c_ends_publishing_without_a_ranking(path):
    src, dst = graph(100_000, 500_000)
    order = numpy.argsort(src, kind="stable")
    ends = numpy.searchsorted(src[order], numpy.arange(100_001))
    with cashrank.open(path, damping=0.999999) as store:
        for page in range(100_000):
            store.add(f"http://a/{page}", [f"/{to}" for to in dst[order[ends[page] : ends[page + 1]]]])
        store.checkpoint()
        assert interrupted(lambda: store.publish(settle=1e-12)) < 10
        assert store.snapshots() == []
        # It goes on, with all that was added.
        assert store.pushed == 100_000
        assert len(store.publish(settle=None)) == 100_000


def test_ctrl_c_ends_waiting_for_another_thread(path):
    src, dst = graph(30_000, 300_000)
    with cashrank.open(path, damping=0.999999) as store:
        for page in range(30_000):
            store.add(f"http://a/{page}", [f"/{to}" for to in dst[page * 10 : page * 10 + 10]])
        publishing = threading.Thread(target=store.publish, args=[1e-4])
        publishing.start()
        # The bound is far: this thread waits for its turn, and stops waiting.
        assert interrupted(lambda: store.add("http://a/", ["/1"])) < 1
        publishing.join()
        store.checkpoint()
        assert store.pushed >= 30_000
