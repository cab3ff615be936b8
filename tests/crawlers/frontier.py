"""A client of URLFrontier's interface, made by another toolchain from the same protocol file (pip install grpcio-tools).

python frontier.py PROTOCOL_FILE ADDRESS fresh|again: "fresh" tries every call on a frontier that is empty; "again" finds what "fresh" left, in a
service that was started anew. The service has a store in which z, y and x of http://s.example/ are linked from 3, 2 and 1 pages.
"""

import importlib
import sys
import tempfile
import time
from pathlib import Path

import grpc
from grpc_tools import protoc

proto, address, phase = sys.argv[1:]
made = tempfile.TemporaryDirectory()
folder = str(Path(proto).parent)
arguments = ["", f"-I{folder}", f"--python_out={made.name}", f"--grpc_python_out={made.name}", Path(proto).name]
assert protoc.main(arguments) == 0
sys.path.insert(0, made.name)
pb = importlib.import_module("urlfrontier_pb2")
calls = importlib.import_module("urlfrontier_pb2_grpc")

channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
frontier = calls.URLFrontierStub(channel)
OK, SKIPPED, FAIL = 0, 1, 2


def info(url, key="", crawl="", **metadata):
    lists = {name: pb.StringList(values=values) for name, values in metadata.items()}
    return pb.URLInfo(url=url, key=key, crawlID=crawl, metadata=lists)


def found(url, key="", crawl="", id="", **metadata):
    return pb.URLItem(ID=id, discovered=pb.DiscoveredURLItem(info=info(url, key, crawl, **metadata)))


def known(url, date, key="", crawl="", **metadata):
    item = pb.KnownURLItem(info=info(url, key, crawl, **metadata), refetchable_from_date=date)
    return pb.URLItem(known=item)


def put(*items):
    return [(ack.ID, ack.status) for ack in frontier.PutURLs(iter(items), timeout=30)]


def get(**params):
    params.setdefault("crawlID", "")
    return list(frontier.GetURLs(pb.GetParams(**params), timeout=30))


def urls(**params):
    return [given.url for given in get(**params)]


def stats(**params):
    return frontier.GetStats(pb.QueueWithinCrawlParams(**params), timeout=30)


def status(url, **params):
    return frontier.GetURLStatus(pb.URLStatusRequest(url=url, **params), timeout=30)


def refused(code, call):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() in code, (error.code(), error.details())
        return error.details()
    raise AssertionError("it was not refused")


def fresh():
    frontier.SetDelay(pb.QueueDelayParams(delay_requestable=0), timeout=30)
    # Acknowledgements: by the identifier that was sent, else by the URL; in order.
    a, b = "http://a.example/1", "http://b.example/1"
    assert put(found(a, id="first"), found(b), found(a)) == [("first", OK), (b, OK), (a, SKIPPED)]
    assert put(found("x" * 9000), found(""), pb.URLItem(ID="empty")) == [("x" * 9000, SKIPPED), ("", SKIPPED), ("empty", SKIPPED)]
    assert put(found("http://a.example/2", language=["en", "de"])) == [("http://a.example/2", OK)]
    # A host is a URL's queue unless another is named.
    queues = frontier.ListQueues(pb.Pagination(), timeout=30)
    assert (list(queues.values), queues.crawlID) == (["a.example", "b.example"], "DEFAULT")
    assert list(frontier.ListQueues(pb.Pagination(start=1, size=1), timeout=30).values) == ["b.example"]
    assert list(frontier.ListCrawls(pb.Local(), timeout=30).values) == ["DEFAULT"]
    assert len(frontier.ListNodes(pb.Empty(), timeout=30).values) == 1
    told = stats()
    assert (told.size, told.inProcess, told.numberOfQueues) == (3, 0, 2)
    # Limits of URLs per queue and of queues; metadata and names come back.
    given = get(max_urls_per_queue=1, max_queues=1, delay_requestable=60)
    assert [(item.url, item.key, item.crawlID) for item in given] == [(a, "a.example", "DEFAULT")]
    assert stats(key="a.example").inProcess == 1
    assert urls(max_urls_per_queue=1, delay_requestable=60) == [b]
    given = get(key="a.example", delay_requestable=1)
    assert [item.url for item in given] == ["http://a.example/2"]
    assert list(given[0].metadata["language"].values) == ["en", "de"]
    time.sleep(2)
    assert urls(key="a.example", delay_requestable=60) == ["http://a.example/2"], "its time was up"
    # Fetched: never again, or from a date on.
    now = int(time.time())
    assert put(known(a, 0), known("http://a.example/2", now + 2), known(b, now + 10_000)) != []
    told = stats()
    assert (told.size, told.inProcess, told.counts["completed"]) == (2, 0, 1)
    assert urls() == []
    assert status(a).known.refetchable_from_date == 0
    assert status(b).known.refetchable_from_date == now + 10_000
    assert now - 60 < status(a).creation_date <= now
    time.sleep(3)
    assert urls(delay_requestable=1) == ["http://a.example/2"]
    refused([grpc.StatusCode.NOT_FOUND], lambda: status("http://a.example/none"))
    # Of a queue: blocks, delays, limits.
    put(*(found(f"http://q.example/{n}") for n in range(5)))
    frontier.BlockQueueUntil(pb.BlockQueueParams(key="q.example", time=now + 10_000), timeout=30)
    assert urls(key="q.example") == []
    assert "q.example" not in frontier.ListQueues(pb.Pagination(), timeout=30).values
    assert "q.example" in frontier.ListQueues(pb.Pagination(include_inactive=True), timeout=30).values
    frontier.BlockQueueUntil(pb.BlockQueueParams(key="q.example", time=0), timeout=30)
    frontier.SetDelay(pb.QueueDelayParams(key="q.example", delay_requestable=1000), timeout=30)
    assert urls(key="q.example", max_urls_per_queue=2) == ["http://q.example/0", "http://q.example/1"]
    assert urls(key="q.example") == []
    frontier.SetDelay(pb.QueueDelayParams(key="q.example", delay_requestable=0), timeout=30)
    put(known("http://q.example/0", 0))
    frontier.SetCrawlLimit(pb.CrawlLimitParams(key="q.example", limit=1), timeout=30)
    assert urls(key="q.example") == []
    frontier.SetCrawlLimit(pb.CrawlLimitParams(key="q.example", limit=0), timeout=30)
    assert urls(key="q.example", max_urls_per_queue=2, delay_requestable=1000) == ["http://q.example/2", "http://q.example/3"]
    # Off and on.
    frontier.SetActive(pb.Active(state=False), timeout=30)
    assert not frontier.GetActive(pb.Local(), timeout=30).state and urls() == []
    frontier.SetActive(pb.Active(state=True), timeout=30)
    assert frontier.GetActive(pb.Local(), timeout=30).state
    # Lists and counts.
    listed = frontier.ListURLs(pb.ListUrlParams(key="q.example", start=1, size=3), timeout=30)
    assert [item.known.info.url for item in listed] == [f"http://q.example/{n}" for n in (1, 2, 3)]
    count = lambda **params: frontier.CountURLs(pb.CountUrlParams(**params), timeout=30).value
    assert (count(), count(key="q.example"), count(filter="A.EXAMPLE"), count(filter="A.EXAMPLE", ignoreCase=True)) == (8, 5, 0, 2)
    # Batches of links, and crawls that know nothing of each other.
    batch = pb.DiscoveredBatch(ID="links", items=[info("http://a.example/1", crawl="two"), info("http://c.example/", crawl="two"),
                                                  info("http://c.example/", crawl="two"), info("", crawl="two")])
    (ack,) = frontier.PutDiscovered(iter([batch]), timeout=30)
    assert (ack.ID, list(ack.statuses)) == ("links", [OK, OK, SKIPPED, SKIPPED])
    assert list(frontier.ListCrawls(pb.Local(), timeout=30).values) == ["DEFAULT", "two"]
    assert sorted(urls(crawlID="two", delay_requestable=1000)) == ["http://a.example/1", "http://c.example/"]
    assert frontier.DeleteQueue(pb.QueueWithinCrawlParams(key="c.example", crawlID="two"), timeout=30).value == 1
    assert frontier.PurgeURLs(pb.PurgeUrlParams(crawlID="two", days=1), timeout=30).value == 0
    assert frontier.DeleteCrawl(pb.DeleteCrawlMessage(value="two"), timeout=30).value == 1
    assert list(frontier.ListCrawls(pb.Local(), timeout=30).values) == ["DEFAULT"]
    refused([grpc.StatusCode.UNIMPLEMENTED], lambda: frontier.SetLogLevel(pb.LogLevelParams(package="x"), timeout=30))
    # Many at once, in one stream, as fast as they can be sent. Each is a frame of HTTP/2, so small that many fit into what a
    # client may send before they are taken: the service took that for an attack, and ended the connection.
    acks = put(*(found(f"http://many.example/{n}", id=str(n)) for n in range(10_000)))
    assert acks == [(str(n), OK) for n in range(10_000)]
    assert len(urls(key="many.example", delay_requestable=1000)) == 10_000
    scored()
    hostile()
    assert frontier.DeleteQueue(pb.QueueWithinCrawlParams(key="many.example"), timeout=30).value == 10_000


def scored():
    """Pages come in the order of the strategy, which here is by FICA's distance: that of z is log10(1), of y log10(2) or
    more, of x log10(3); not as they were put."""
    for attempt in range(100):
        crawl = f"scored-{attempt}"
        put(*(found(f"http://s.example/{name}", crawl=crawl) for name in ("unknown", "x", "Y/../y", "z")))
        order = urls(crawlID=crawl, delay_requestable=1000)
        if order[0] != "http://s.example/unknown":
            assert order == [f"http://s.example/{name}" for name in ("z", "Y/../y", "x", "unknown")], order
            return
        time.sleep(0.1)
    raise AssertionError("the strategy's list never came")


def hostile():
    """Bytes that are no message, and messages that are too long, are refused; the next call is answered."""
    raw = lambda name: channel.unary_unary(f"/urlfrontier.URLFrontier/{name}")
    wrong = [grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.RESOURCE_EXHAUSTED]
    for body in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x08" * 50, bytes(2 << 20), b"\x0a\x02\xc3\x28"):
        refused(wrong, lambda: raw("GetStats")(body, timeout=30))
    refused([grpc.StatusCode.UNIMPLEMENTED], lambda: raw("Nothing")(b"", timeout=30))

    def broken():
        yield found("http://late.example/1").SerializeToString()
        yield b"\xff\xff\xff"

    stream = channel.stream_stream("/urlfrontier.URLFrontier/PutURLs")
    refused(wrong, lambda: list(stream(broken(), timeout=30)))
    # A client that puts and fetches no answers, and goes away.
    for _ in range(20):
        stream = frontier.PutURLs((found(f"http://deaf.example/{n}") for n in range(100_000)), timeout=30)
        time.sleep(0.05)
        stream.cancel()
    assert stats().numberOfQueues > 0
    frontier.DeleteQueue(pb.QueueWithinCrawlParams(key="deaf.example"), timeout=30)
    frontier.DeleteQueue(pb.QueueWithinCrawlParams(key="late.example"), timeout=30)


def again():
    """What was put, what became of it and what was set is there; of what was handed out, nothing is lost."""
    count = frontier.CountURLs(pb.CountUrlParams(), timeout=30).value
    assert count == 8, count
    assert stats().counts["completed"] == 2
    assert urls(key="q.example", max_urls_per_queue=10) in ([], ["http://q.example/4"]) or stats(key="q.example").size == 4
    assert stats(key="q.example").size == 4


{"fresh": fresh, "again": again}[phase]()
print("passed")
