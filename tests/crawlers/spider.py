"""Crawls a site and writes crawl records (formats/records.md):

scrapy runspider spider.py -a start=https://example.org/ -o -:jsonlines | cashrank ingest - --store ranks
"""

from datetime import datetime, timezone
from urllib.parse import urlsplit

import scrapy
from scrapy.linkextractors import LinkExtractor


class Pages(scrapy.Spider):
    name = "pages"
    # Redirects and failures are records of their own.
    custom_settings = {"REDIRECT_ENABLED": False, "HTTPERROR_ALLOW_ALL": True}
    extractor = LinkExtractor(unique=False, deny_extensions=[])

    def __init__(self, start, **kwargs):
        super().__init__(allowed_domains=[urlsplit(start).hostname], **kwargs)
        self.first = start

    async def start(self):
        yield scrapy.Request(self.first)

    def parse(self, response):
        now = datetime.now(timezone.utc).isoformat()
        record = {"url": response.url, "status": response.status, "fetched_at": now}
        if target := response.headers.get("Location"):
            record["redirect"] = response.urljoin(target.decode("latin-1"))
            yield response.follow(record["redirect"])
        elif response.status == 200 and isinstance(response, scrapy.http.TextResponse):
            links = self.extractor.extract_links(response)
            record["links"] = [{"url": link.url, "nofollow": link.nofollow} for link in links]
            yield from response.follow_all(links)
        yield record
