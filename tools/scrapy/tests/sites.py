"""Sites on this machine: made from a seed, the pages of a WARC, or the links of crawl records."""

import gzip
import json
import random
import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin, urlsplit


class Site:
    """Serves pages by their path until it is closed, and notes what was asked for, in order: the path, or what ``note`` makes of it."""

    def __init__(self, pages, host="127.0.0.1", note=None):
        self.asked = []
        note = note or self.asked.append

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                note(self.path)
                status, headers, body = pages.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://{host}:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def page(links, text=""):
    body = text + "".join(f'<p><a href="{link}">{link}</a>' for link in links)
    return 200, {"Content-Type": "text/html; charset=utf-8"}, body.encode()


def documentation(count, seed):
    """A site like that of a manual: sections of chapters of pages, each with the way up, the neighbours, some links to
    pages read often (a reference that few pages lead to is linked from everywhere below it), and a few to any."""
    dice = random.Random(seed)
    paths = ["/"] + [f"/s{n % 20}/c{n % 200}/p{n}.html" for n in range(1, count)]
    # Some pages are cited far more than others: the n-th as 1/n.
    cited = dice.sample(paths, len(paths))
    weights = [1 / (place + 1) for place in range(len(cited))]
    pages = {}
    for n, path in enumerate(paths):
        links = [paths[child] for child in range(20 * n + 1, min(20 * n + 21, count))]
        links += [paths[(n - 1) // 20], paths[n - 1], paths[(n + 1) % count]]
        links += dice.choices(cited, weights, k=6)
        pages[path] = page(dice.sample(links, len(links)))
    return pages


def of_warc(path):
    """The pages of a WARC, by their path, and the path of the first one. Links to its own host lead to this machine."""
    pages, first, host = {}, None, None
    with gzip.open(path) as file:
        while line := file.readline():
            if not line.startswith(b"WARC/"):
                continue
            head = {}
            while (line := file.readline().strip()):
                name, _, value = line.decode("latin-1").partition(":")
                head[name.lower()] = value.strip()
            block = file.read(int(head["content-length"]))
            if head.get("warc-type") != "response":
                continue
            parts = urlsplit(head["warc-target-uri"].strip("<>"))
            host = host or parts.netloc
            if parts.netloc != host:
                continue
            place = parts.path + (f"?{parts.query}" if parts.query else "")
            found = _answer(block, f"{parts.scheme}://{host}".encode())
            pages.setdefault(place, found)
            first = first or place
    return pages, first


def of_records(lines):
    """The pages of crawl records with ``url``, ``status``, ``links`` and ``location``, each with its links and no more, and the path of the
    first one. Links to the host of the first one lead to this machine."""
    pages, first, origin = {}, None, None
    for line in lines:
        record = json.loads(line)
        parts = urlsplit(record["url"])
        origin = origin or f"{parts.scheme}://{parts.netloc}"
        here = lambda url: url[len(origin) :] if url.startswith(origin + "/") else url
        place = here(record["url"])
        if place == record["url"]:
            continue
        first = first or place
        if record["location"]:
            answer = record["status"], {"Location": here(urljoin(record["url"], record["location"]))}, b""
        elif record["status"] == 200:
            answer = page([escape(here(link["url"])) for link in record["links"] or ()])
        else:
            answer = record["status"], {}, b""
        pages.setdefault(place, answer)
    return pages, first


def _answer(block, origin):
    head, _, body = block.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name.lower() in ("content-type", "location"):
            headers[name] = value.strip().replace(origin.decode(), "")
        if name.lower() == "transfer-encoding" and "chunked" in value:
            body = _joined(body)
    return int(lines[0].split(" ")[1]), headers, body.replace(origin, b"")


def _joined(body):
    out = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if length == 0:
            break
        out, body = out + body[:length], body[length + 2 :]
    return out
