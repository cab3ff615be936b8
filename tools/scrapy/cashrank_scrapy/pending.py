"""Requests that wait, and their order."""

import heapq
from urllib.parse import urldefrag


def page_of(url):
    """The page of a URL, as cashrank names it: without its fragment."""
    return urldefrag(url).url


class Pending:
    """Requests that wait, in their order: priority, then the newest list that names the page and the place in it, then the
    order in which they came.

    Each belongs to a slot, which is what a crawler's limits are about, like a host. A slot that has enough for now is passed over.
    """

    def __init__(self):
        self._requests = {}  # number -> (request, slot)
        self._pages = {}  # page -> numbers
        self._places = {}  # page -> place in the newest list
        self._slots = {}  # slot -> heap of entries
        self._heads = []  # heap of (first entry of a slot, slot): each slot's first one is there, unless the slot is passed over
        self._passed_over = set()
        self._entries = 0
        self._list = 0
        self._next = 0

    def __len__(self):
        return len(self._requests)

    def add(self, request, slot=""):
        """Takes a request; its number, by which requests are told from each other."""
        number, self._next = self._next, self._next + 1
        page = page_of(request.url)
        self._requests[number] = request, slot
        self._pages.setdefault(page, []).append(number)
        place = self._places.get(page)
        of_list = (0, 0) if place is None else (-self._list, place)
        self._push(slot, (-request.priority, *of_list, number))
        return number

    def order(self, pages):
        """Takes a new list of pages, best first."""
        self._list += 1
        self._places = {page: place for place, page in enumerate(pages)}
        for page, place in self._places.items():
            for number in self._pages.get(page, ()):
                # The older entry stays, further behind, and is passed over when its request is gone.
                request, slot = self._requests[number]
                self._push(slot, (-request.priority, -self._list, place, number))
        if self._entries > 4 * len(self._requests) + 1000:
            self._forget()

    def pop(self, is_full=lambda slot: False):
        """The next request, its number, and whether a list named it; None: there is none, or all slots are full."""
        for slot in [slot for slot in self._passed_over if not is_full(slot)]:
            self._passed_over.remove(slot)
            self._show(slot)
        while self._heads:
            entry, slot = heapq.heappop(self._heads)
            if entry != self._first(slot):
                continue
            if is_full(slot):
                self._passed_over.add(slot)
                continue
            heapq.heappop(self._slots[slot])
            self._entries -= 1
            _, of_list, _, number = entry
            request, _ = self._requests.pop(number)
            self._show(slot)
            page = page_of(request.url)
            self._pages[page].remove(number)
            if not self._pages[page]:
                del self._pages[page]
            return request, number, of_list < 0
        return None

    def all(self):
        """All that wait and their numbers, as they came."""
        return [(number, request) for number, (request, _) in self._requests.items()]

    def _push(self, slot, entry):
        heap = self._slots.setdefault(slot, [])
        heapq.heappush(heap, entry)
        self._entries += 1
        if heap[0] == entry:
            heapq.heappush(self._heads, (entry, slot))

    def _first(self, slot):
        """The first entry of a slot whose request still waits; None: there is none."""
        heap = self._slots.get(slot, [])
        while heap and heap[0][-1] not in self._requests:
            heapq.heappop(heap)
            self._entries -= 1
        if not heap:
            self._slots.pop(slot, None)
            return None
        return heap[0]

    def _show(self, slot):
        first = self._first(slot)
        if first is not None:
            heapq.heappush(self._heads, (first, slot))

    def _forget(self):
        """Drops all but the first entry of each request."""
        self._heads = []
        self._entries = 0
        for slot, heap in list(self._slots.items()):
            first = {}
            for entry in heap:
                number = entry[-1]
                if number in self._requests and (number not in first or entry < first[number]):
                    first[number] = entry
            self._slots[slot] = list(first.values())
            self._entries += len(first)
            heapq.heapify(self._slots[slot])
            if slot not in self._passed_over:
                self._show(slot)
