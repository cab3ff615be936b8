"""Crawl records of responses: JSON lines, as cashrank's formats/records.md has them."""

from datetime import datetime, timezone

from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

_EXTRACTOR = LinkExtractor(unique=False, deny_extensions=[])


def record_of(response, now=None):
    """The record of a response, as a dictionary."""
    now = now or datetime.now(timezone.utc)
    record = {"url": response.url, "status": response.status, "fetched_at": now.isoformat()}
    if response.request is not None and response.request.method != "GET":
        record["method"] = response.request.method
    target = response.headers.get("Location")
    if target is not None and 300 <= response.status < 400:
        record["redirect"] = response.urljoin(target.decode("latin-1"))
    elif response.status == 200 and isinstance(response, HtmlResponse):
        links = _EXTRACTOR.extract_links(response)
        record["links"] = [
            {"url": link.url, "nofollow": True} if link.nofollow else link.url for link in links
        ]
    elif response.status == 200:
        record["links"] = []
    return record
