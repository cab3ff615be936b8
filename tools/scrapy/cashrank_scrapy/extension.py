"""Streams what a spider fetches into a store, by a ``cashrank ingest`` that runs beside the crawl."""

import json
import logging
import queue
import re
import subprocess
import threading

from scrapy import signals
from scrapy.exceptions import NotConfigured

from .record import record_of
from .service import Service

logger = logging.getLogger(__name__)

#: What the ingest says of each snapshot, twice a second.
SNAPSHOT = re.compile(r"\S+Z (snapshot |\d+ older snapshots? removed)")
#: Records that wait for the ingest; then the crawl waits, too.
WAITING = 1000
#: Seconds that the crawl waits for an ingest that takes nothing.
PATIENCE = 60
#: Seconds that the ingest may take to end, after its last record: it makes its last ranking.
ENDING = 600


class Extension:
    """See README.md for the settings."""

    def __init__(self, crawler):
        settings = crawler.settings
        self.stats = crawler.stats
        self.service = None
        self._process = None
        self._queue = queue.Queue(WAITING)
        self._stuck = False
        self._threads = []
        address = settings.get("CASHRANK_SERVICE")
        if address:
            self.service = Service(address, settings.get("CASHRANK_TOKEN"))
            return
        store = settings.get("CASHRANK_STORE")
        if not store:
            raise NotConfigured("CASHRANK_STORE is not set")
        self._command = [
            *settings.getlist("CASHRANK_COMMAND", ["cashrank"]),
            *["ingest", "-", "--format", "records", "--new-stream", "--store", str(store)],
            *["--listen", "127.0.0.1:0", "--keep-snapshots", "2"],
            *["--snapshot-every", str(settings.get("CASHRANK_SNAPSHOT_EVERY", "500ms"))],
            *settings.getlist("CASHRANK_OPTIONS", []),
        ]
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)
        # A redirect, or a failure that is tried again, is never received by a spider.
        crawler.signals.connect(self.response_downloaded, signals.response_downloaded)
        crawler.signals.connect(self.response_received, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def spider_opened(self, spider):
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
            )
        except OSError as error:
            logger.error("cashrank cannot be run: %s; the crawl goes on without it", error)
            return
        for target in (self._write, self._read):
            thread = threading.Thread(target=target, name="cashrank", daemon=True)
            thread.start()
            self._threads.append(thread)

    def response_downloaded(self, response, request, spider):
        if response.status != 200:
            self._send(response)

    def response_received(self, response, request, spider):
        if response.status == 200:
            self._send(response)

    def _send(self, response):
        if not response.url.startswith(("http:", "https:")):
            return
        if self._process is None:
            self.stats.inc_value("cashrank/lost")
            return
        try:
            # The writer goes on taking records from an ingest that ended: only one that hangs is waited for.
            self._queue.put(record_of(response), timeout=0 if self._stuck else PATIENCE)
            self._stuck = False
        except queue.Full:
            if not self._stuck:
                logger.error("cashrank has taken no record for %d s; the crawl goes on without it", PATIENCE)
            self._stuck = True
            self.stats.inc_value("cashrank/lost")

    def spider_closed(self, spider, reason):
        if self._process is None:
            return
        try:
            self._queue.put(None, timeout=PATIENCE)
        except queue.Full:
            self._process.terminate()
        for thread in self._threads:
            thread.join(0 if self._stuck else ENDING)
        try:
            code = self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            logger.error("cashrank does not end: stopping it; the store keeps what it has read")
            self._process.terminate()
            code = self._process.wait()
        if code not in (0, 3):
            logger.error("cashrank ended with exit code %d", code)

    def _write(self):
        """Writes records to the ingest, until there are no more, and counts those that it does not take."""
        pipe, broken = self._process.stdin, False
        while (record := self._queue.get()) is not None:
            if not broken:
                try:
                    pipe.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                    pipe.flush()
                    self.stats.inc_value("cashrank/records")
                    continue
                except OSError as error:
                    logger.error("cashrank takes no more records: %s", error)
                    broken = True
            self.stats.inc_value("cashrank/lost")
        try:
            pipe.close()
        except OSError:
            pass

    def _read(self):
        """Reads what the ingest says, and finds its address in it. Of snapshots, the log tells the last one only."""
        snapshot = None
        for line in self._process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            if text.startswith("serving at "):
                self.service = Service(text[len("serving at ") :])
                logger.info("cashrank serves at %s", self.service.address)
            elif found := SNAPSHOT.match(text):
                if found[1] == "snapshot ":
                    self.stats.inc_value("cashrank/snapshots")
                    snapshot = text
            else:
                logger.info("cashrank: %s", text)
        if snapshot:
            logger.info("cashrank: %s", snapshot)
