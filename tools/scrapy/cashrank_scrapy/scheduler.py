"""Hands requests out in the order of cashrank's strategies."""

import logging
from urllib.parse import urlsplit

from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet import task
from twisted.internet.threads import deferToThread

from .extension import Extension
from .journal import Journal
from .pending import Pending

logger = logging.getLogger(__name__)

#: The order, if the settings say nothing of it.
STRATEGY = "forecast:unseen=1"


class Scheduler(BaseScheduler):
    """See README.md for the settings."""

    def __init__(self, crawler):
        settings = crawler.settings
        self.crawler = crawler
        self.stats = crawler.stats
        self.pending = Pending()
        self.filter = build_from_crawler(load_object(settings["DUPEFILTER_CLASS"]), crawler)
        self._pages = settings.getint("CASHRANK_PAGES", 10_000)
        self._options = {"strategy": STRATEGY, **settings.getdict("CASHRANK_NEXT")}
        self._every = settings.getfloat("CASHRANK_REFRESH", 0.25)
        self._job = job_dir(settings)
        self._journal = None
        self._kept = set()  # numbers of requests that are in the journal
        self._out = {}  # those of them that are handed out: number -> request
        self._loop = None
        self._list = None
        self._failure = None

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def open(self, spider):
        if self._job:
            self._journal = Journal(self._job, spider)
            waiting = self._journal.open()
            for request in waiting:
                self._kept.add(self.pending.add(request, self._slot(request)))
            if waiting:
                logger.info("Resuming crawl (%d requests scheduled)", len(waiting))
        self._loop = task.LoopingCall(self._look)
        self._loop.start(self._every, now=False)
        return self.filter.open()

    def close(self, reason):
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._journal is not None:
            self._strike_done()
            self._journal.close()
            lost = len(self.pending) + len(self._out) - len(self._kept)
            if lost:
                logger.warning("JOBDIR: %d requests wait that cannot be kept; they are dropped", lost)
        return self.filter.close(reason)

    def has_pending_requests(self):
        return len(self.pending) > 0

    def enqueue_request(self, request):
        if not request.dont_filter and self.filter.request_seen(request):
            self.filter.log(request, self.crawler.spider)
            return False
        number = self.pending.add(request, self._slot(request))
        if self._journal is not None:
            self._keep(number, request)
        self.stats.inc_value("scheduler/enqueued")
        return True

    def _keep(self, number, request):
        try:
            self._journal.came(number, request)
            self._kept.add(number)
        except ValueError as error:
            if not self.stats.get_value("scheduler/unserializable"):
                logger.warning("JOBDIR: %s cannot be kept: %s; others are counted only", request, error)
            self.stats.inc_value("scheduler/unserializable")

    def next_request(self):
        found = self.pending.pop(self._is_full)
        if found is None:
            return None
        request, number, scored = found
        if self._journal is not None:
            self._strike_done()
        if number in self._kept:
            self._out[number] = request
        self.stats.inc_value("cashrank/scored" if scored else "cashrank/unscored")
        self.stats.inc_value("scheduler/dequeued")
        return request

    def _strike_done(self):
        """Takes those requests out of the journal that the spider is through with: what was found by them is in it by now."""
        slot = getattr(self.crawler.engine, "_slot", None)
        in_progress = getattr(slot, "inprogress", ())
        for number in [number for number, request in self._out.items() if request not in in_progress]:
            del self._out[number]
            self._kept.remove(number)
            self._journal.done(number)

    def _downloader(self):
        return self.crawler.engine and getattr(self.crawler.engine, "downloader", None)

    def _slot(self, request):
        """What the downloader's limits are about: a host, unless the request says otherwise."""
        downloader = self._downloader()
        if downloader is not None and hasattr(downloader, "get_slot_key"):
            return downloader.get_slot_key(request)
        return urlsplit(request.url).hostname or ""

    def _is_full(self, slot):
        """Whether the downloader has as many requests of a slot as it may work at: more would only wait there, in an order that
        is soon an old one, and in the place of other hosts' requests."""
        slots = getattr(self._downloader(), "slots", None) or {}
        found = slots.get(slot)
        return found is not None and 0 < found.concurrency <= len(found.active)

    def _service(self):
        extension = self.crawler.get_extension(Extension)
        return extension and extension.service

    def _look(self):
        """Takes a new list if there is one. The next look waits for this one to end."""
        service = self._service()
        if service is None:
            return None
        looking = deferToThread(service.next, self._pages, self._options, self._list)
        looking.addCallbacks(self._take, self._failed)
        return looking

    def _take(self, found):
        if self._failure is not None:
            logger.info("cashrank: it answers again")
            self._failure = None
        if found is not None:
            self._list, pages = found
            self.pending.order(pages)
            self.stats.inc_value("cashrank/lists")

    def _failed(self, failure):
        """Without a list, requests are handed out in the order that they have. The same is said once."""
        self.stats.inc_value("cashrank/failed_lists")
        text = str(failure.value)
        if text != self._failure:
            logger.error("cashrank: no list of pages: %s; the crawl goes on in the order that it has", text)
        self._failure = text
