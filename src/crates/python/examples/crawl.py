"""Crawl one host, the most important pages first: python crawl.py STORE URL [--pages N] [--delay SECONDS]

It goes on where it stopped. It reads no robots.txt: use it on your own site.
"""

import argparse
import time
from html.parser import HTMLParser
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import cashrank

ROUND = 10  # Pages to fetch between two rankings.
LARGEST = 4 << 20  # Bytes read of a page.


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []
        self.base = None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and attributes.get("href"):
            self.links.append((attributes["href"], attributes.get("rel")))
        elif tag == "base" and self.base is None:
            self.base = attributes.get("href")


def fetch(url):
    """Status, final URL, links of a page, and what they are relative to. A failure without an answer has a negative status."""
    try:
        with urlopen(url, timeout=10) as answer:
            if answer.headers.get_content_type() != "text/html":
                return answer.status, answer.url, [], None
            page = Links()
            page.feed(answer.read(LARGEST).decode("utf-8", "replace"))
            return answer.status, answer.url, page.links, page.base
    except HTTPError as error:
        return error.code, url, [], None
    except (URLError, OSError, ValueError):
        return -1, url, [], None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("url")
    parser.add_argument("--pages", type=int, default=100, help="stop after this many pages")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between two fetches")
    arguments = parser.parse_args()
    scope = f"host:{urlsplit(arguments.url).hostname}"

    left = arguments.pages
    with cashrank.open(arguments.store) as store:
        while left > 0:
            todo = store.next(min(ROUND, left), scope=scope, seeds=[arguments.url])
            if not todo:
                break
            for page in todo:
                status, final, links, base = fetch(page.url)
                if final != page.url:
                    store.add(page.url, status=301, redirect=final, fetched_at=time.time())
                store.add(final, links, status=status, base=base, fetched_at=time.time())
                left -= 1
                time.sleep(arguments.delay)
            store.publish()
        print(f"{len(store)} pages; total error at most {store.bound}")
        for page in store.top(10, scope=scope):
            print(f"{page.rank:6} {page.importance:.4e} {page.url}")


if __name__ == "__main__":
    main()
