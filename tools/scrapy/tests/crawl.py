"""A crawl of sites on this machine, in a process of its own (a reactor runs once).

python crawl.py ADDRESS,... STORE SETTINGS: settings as JSON; without a store, Scrapy's own breadth-first order. Prints Scrapy's statistics.
"""

import json
import sys
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

BREADTH_FIRST = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


class Pages(scrapy.Spider):
    name = "pages"
    extractor = LinkExtractor(deny_extensions=[])

    def __init__(self, addresses, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = addresses.split(",")
        self.allowed_domains = [urlsplit(url).hostname for url in self.start_urls]

    async def start(self):
        for url in self.start_urls:
            yield scrapy.Request(url)

    def parse(self, response):
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in self.extractor.extract_links(response):
                yield scrapy.Request(link.url)


def main():
    addresses, store, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    settings = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False, **settings}
    if store:
        settings["ADDONS"] = {"cashrank_scrapy.Addon": 500}
        settings["CASHRANK_STORE"] = store
    else:
        settings.update(BREADTH_FIRST)
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Pages)
    process.crawl(crawler, addresses=addresses)
    process.start()
    json.dump(crawler.stats.get_stats(), sys.stdout, default=str)


if __name__ == "__main__":
    main()
