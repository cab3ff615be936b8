"""Crawls one local site and writes crawl records (formats/records.md), one JSON object a line.

    scrapy runspider spider.py -a origin=http://127.0.0.1:8000/ \\
        -a public=https://doc.rust-lang.org/ -a include=std/,book/ -O crawl.jsonl

Arguments (`-a name=value`):

origin    Where the site is served. Nothing else is fetched. It is also the first page.
public    The address written instead of `origin` in the records. Default: `origin` itself.
          A link to it is followed too: the site served is taken for the public one.
include   Comma-separated path prefixes; pages outside them are recorded as links, never fetched.
          Default: the whole site.
omit      Comma-separated address prefixes; links that begin with one are not written.
anchors   `keep` (default), or `drop`: an `href` that is only a fragment (`#name`) is not written.
max_pages The crawl ends after this many records, if it didn't before. Default 5000.

A record has `url`, `fetched_at` (UTC), `status`, and either `links`, every `<a href>` and
`<area href>` of the page in document order, or `redirect`. Links are joined to the page's base
and otherwise left alone: fragments, repeats and schemes other than http stay. Pages are fetched
breadth first, and records come in the order in which the answers did. What was not written is
counted in the statistics that Scrapy prints at the end (`links_omitted`, `links_anchors`).
"""

import datetime
from urllib.parse import urljoin

import scrapy
from scrapy.exceptions import CloseSpider
from scrapy.http import TextResponse
from w3lib.html import strip_html5_whitespace


class CrawlSample(scrapy.Spider):
    name = "crawl_sample"
    custom_settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 8,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        # Redirects and failures are records of their own.
        "REDIRECT_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "RETRY_ENABLED": False,
        "HTTPERROR_ALLOW_ALL": True,
        # Breadth first.
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "FEED_EXPORT_ENCODING": "utf-8",
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }

    def __init__(
        self,
        origin,
        public=None,
        include="",
        omit="",
        anchors="keep",
        max_pages="5000",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if anchors not in ("keep", "drop"):
            raise ValueError("anchors is keep or drop")
        self.origin = origin
        self.public = public or origin
        self.include = tuple(origin + part for part in include.split(",") if part)
        self.omit = tuple(part for part in omit.split(",") if part)
        self.drop_anchors = anchors == "drop"
        self.left = int(max_pages)
        # Scrapy filters repeats too, but making a request for each of a million links is slow.
        self.asked = {origin}

    async def start(self):
        yield scrapy.Request(self.origin)

    def parse(self, response):
        if self.left == 0:
            raise CloseSpider("max_pages")
        self.left -= 1
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        record = {
            "url": self.published(response.url),
            "fetched_at": now.replace("+00:00", "Z"),
            "status": response.status,
        }
        found = []
        if 300 <= response.status < 400 and "Location" in response.headers:
            target = urljoin(response.url, response.headers["Location"].decode("latin-1"))
            record["redirect"] = self.published(target)
            found = [target]
        elif response.status == 200:
            found = self.links(response)
            record["links"] = [self.published(link) for link in found]
        yield record
        for link in found:
            page = self.served(link.partition("#")[0])
            if page.startswith(self.include or self.origin) and page not in self.asked:
                self.asked.add(page)
                yield scrapy.Request(page)

    def links(self, response):
        """Every link of the page, absolute, in document order; none if it is not HTML or text."""
        if not isinstance(response, TextResponse):
            return []
        links = []
        for href in response.xpath("//a/@href | //area/@href").getall():
            href = strip_html5_whitespace(href)
            if self.drop_anchors and href.startswith("#"):
                self.crawler.stats.inc_value("links_anchors")
                continue
            try:
                link = response.urljoin(href)
            except ValueError:  # Not joinable, such as `http://[`: kept as written.
                link = href
            if link.startswith(self.omit):
                self.crawler.stats.inc_value("links_omitted")
            else:
                links.append(link)
        return links

    def published(self, link):
        return self.public + link.removeprefix(self.origin) if link.startswith(self.origin) else link

    def served(self, link):
        return self.origin + link.removeprefix(self.public) if link.startswith(self.public) else link
