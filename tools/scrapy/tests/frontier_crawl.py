"""A crawl of sites on this machine by a client of URLFrontier's interface, which grpcio-tools makes from the protocol file.

The client knows nothing of orders: it asks for URLs, fetches them, says what it found, and logs its records to the ingest.
"""

import http.client
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import grpc
from scrapy.http import HtmlResponse, Response

from cashrank_scrapy.record import record_of

PROTOCOL = Path(__file__).parents[3] / "src/crates/frontier/urlfrontier.proto"
#: URLs asked for at once, of the queue with the best one: it fetches one after the other, so more queues would be no faster.
AT_ONCE = 2


def stubs(protocol=PROTOCOL):
    """The messages and the calls."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as made:
        options = [f"-I{protocol.parent}", f"--python_out={made}", f"--grpc_python_out={made}", protocol.name]
        assert protoc.main(["", *options]) == 0
        sys.path.insert(0, made)
        try:
            return importlib.import_module("urlfrontier_pb2"), importlib.import_module("urlfrontier_pb2_grpc")
        finally:
            sys.path.remove(made)


class Fetcher:
    """Fetches pages, over a connection that is kept for each host."""

    def __init__(self):
        self._connections = {}

    def fetch(self, url):
        parts = urlsplit(url)
        connection = self._connections.setdefault(parts.netloc, http.client.HTTPConnection(parts.netloc, timeout=30))
        connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
        answer = connection.getresponse()
        body, headers = answer.read(), dict(answer.getheaders())
        kind = HtmlResponse if "html" in answer.getheader("Content-Type", "") else Response
        return kind(url, status=answer.status, headers=headers, body=body)


def found_on(record, hosts):
    """The URLs of a record that are on these hosts, without their fragments."""
    links = [link if isinstance(link, str) else link["url"] for link in record.get("links", ())]
    links += [record["redirect"]] if "redirect" in record else []
    bare = dict.fromkeys(urldefrag(link).url for link in links)
    return [link for link in bare if urlsplit(link).scheme == "http" and urlsplit(link).netloc in hosts]


def breadth_first(starts):
    """Crawls all, first found first."""
    fetcher, hosts = Fetcher(), {urlsplit(start).netloc for start in starts}
    waiting, seen = list(starts), set(starts)
    for url in waiting:
        for link in found_on(record_of(fetcher.fetch(url)), hosts):
            if link not in seen:
                seen.add(link)
                waiting.append(link)


def crawl(starts, store, cashrank, strategy, every):
    """Crawls all in the order of a frontier."""
    pb, calls = stubs()
    options = ["--listen", "127.0.0.1:0", "--frontier", f"{store}.frontier", "--frontier-next", f"strategy={strategy}"]
    command = [cashrank, "ingest", "-", "--format", "records", "--store", store, "--snapshot-every", every, *options]
    ingest = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    address = next(line.split(b"http://")[1].strip(b"/\n").decode() for line in ingest.stderr if line.startswith(b"serving at"))
    channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
    frontier = calls.URLFrontierStub(channel)
    fetcher, hosts = Fetcher(), {urlsplit(start).netloc for start in starts}
    frontier.SetDelay(pb.QueueDelayParams(delay_requestable=0))
    discovered = lambda url: pb.URLInfo(url=url)
    list(frontier.PutDiscovered(iter([pb.DiscoveredBatch(items=map(discovered, starts))])))
    while True:
        given = list(frontier.GetURLs(pb.GetParams(max_queues=1, max_urls_per_queue=AT_ONCE, delay_requestable=600, crawlID="")))
        if not given:
            break
        for info in given:
            record = record_of(fetcher.fetch(info.url))
            ingest.stdin.write(json.dumps(record).encode() + b"\n")
            batch = pb.DiscoveredBatch(items=map(discovered, found_on(record, hosts)))
            list(frontier.PutDiscovered(iter([batch])))
            list(frontier.PutURLs(iter([pb.URLItem(known=pb.KnownURLItem(info=info))])))
        ingest.stdin.flush()
    channel.close()
    ingest.stdin.close()
    ingest.stderr.close()
    assert ingest.wait(600) == 0
