"""Hands requests out in the order of cashrank's strategies."""

import heapq
import logging
from urllib.parse import urldefrag

from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet import task
from twisted.internet.threads import deferToThread

from .extension import Extension

logger = logging.getLogger(__name__)


def page_of(url):
    """The page of a URL, as cashrank names it: without its fragment."""
    return urldefrag(url).url


class Pending:
    """Requests that wait, in their order: priority, then the newest list that names the page and the place in
    it, then the order in which they came."""

    def __init__(self):
        self._heap = []
        self._requests = {}  # number -> request
        self._pages = {}  # page -> numbers
        self._places = {}  # page -> place in the newest list
        self._list = 0
        self._next = 0

    def __len__(self):
        return len(self._requests)

    def add(self, request):
        number, self._next = self._next, self._next + 1
        page = page_of(request.url)
        self._requests[number] = request
        self._pages.setdefault(page, []).append(number)
        place = self._places.get(page)
        of_list = (0, 0) if place is None else (-self._list, place)
        heapq.heappush(self._heap, (-request.priority, *of_list, number))

    def order(self, pages):
        """Takes a new list of pages, best first."""
        self._list += 1
        self._places = {page: place for place, page in enumerate(pages)}
        for page, place in self._places.items():
            for number in self._pages.get(page, ()):
                # The older entry stays, further behind, and is passed over when its request is gone.
                entry = (-self._requests[number].priority, -self._list, place, number)
                heapq.heappush(self._heap, entry)
        if len(self._heap) > 4 * len(self._requests) + 1000:
            self._forget()

    def _forget(self):
        """Drops all but the first entry of each request."""
        first = {}
        for entry in self._heap:
            number = entry[-1]
            if number in self._requests and (number not in first or entry < first[number]):
                first[number] = entry
        self._heap = list(first.values())
        heapq.heapify(self._heap)

    def pop(self):
        """The next request, and whether a list named it; None: there is none."""
        while self._heap:
            _, of_list, _, number = heapq.heappop(self._heap)
            request = self._requests.pop(number, None)
            if request is None:
                continue
            page = page_of(request.url)
            self._pages[page].remove(number)
            if not self._pages[page]:
                del self._pages[page]
            return request, of_list < 0
        return None


class Scheduler(BaseScheduler):
    """See README.md for the settings."""

    def __init__(self, crawler):
        settings = crawler.settings
        self.crawler = crawler
        self.stats = crawler.stats
        self.pending = Pending()
        self.filter = build_from_crawler(load_object(settings["DUPEFILTER_CLASS"]), crawler)
        self._pages = settings.getint("CASHRANK_PAGES", 1000)
        self._options = list(settings.getdict("CASHRANK_NEXT").items())
        self._every = settings.getfloat("CASHRANK_REFRESH", 1.0)
        self._snapshot = None
        self._loop = None
        self._failure = None
        if settings.get("JOBDIR"):
            logger.warning("JOBDIR: requests that wait are kept in memory only, and not in this folder")

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def open(self, spider):
        self._loop = task.LoopingCall(self._look)
        self._loop.start(self._every, now=False)
        return self.filter.open()

    def close(self, reason):
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        return self.filter.close(reason)

    def has_pending_requests(self):
        return len(self.pending) > 0

    def enqueue_request(self, request):
        if not request.dont_filter and self.filter.request_seen(request):
            self.filter.log(request, self.crawler.spider)
            return False
        self.pending.add(request)
        self.stats.inc_value("scheduler/enqueued")
        return True

    def next_request(self):
        found = self.pending.pop()
        if found is None:
            return None
        request, scored = found
        self.stats.inc_value("cashrank/scored" if scored else "cashrank/unscored")
        self.stats.inc_value("scheduler/dequeued")
        return request

    def _service(self):
        extension = self.crawler.get_extension(Extension)
        return extension and extension.service

    def _look(self):
        """Takes a new list if there is a new ranking. The next look waits for this one to end."""
        service = self._service()
        if service is None:
            return None
        looking = deferToThread(self._ask, service)
        looking.addCallbacks(self._take, self._failed)
        return looking

    def _ask(self, service):
        snapshot = service.snapshot()
        if snapshot is None or snapshot == self._snapshot:
            return None
        return snapshot, service.next(self._pages, self._options)

    def _take(self, found):
        if found is not None:
            self._snapshot, pages = found
            self.pending.order(pages)
            self.stats.inc_value("cashrank/lists")

    def _failed(self, failure):
        self.stats.inc_value("cashrank/failed_lists")
        error = failure.value
        text = f"{error} {error.read(1000).decode('utf-8', 'replace') if hasattr(error, 'read') else ''}"
        # The same is said once.
        if text != self._failure:
            logger.error("cashrank: no list of pages: %s", text)
        self._failure = text
