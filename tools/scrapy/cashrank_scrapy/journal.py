"""Requests that wait, in a file of the job's folder (Scrapy's JOBDIR), so that a crawl goes on where it stopped.

The file is a log: what came, and what is done. It is written as that happens, so that a process that is killed loses nothing: requests
that waited wait again, and those that it was at. Opening the log reads all of it, and writes it anew without what is done. One that was
cut off is read as far as it is whole.

Records are: one byte (+ came, - done), the request's number in 8 bytes and, of one that came, the length of what follows in 4,
both in big endian, and the request as Scrapy's own queues keep it: a pickled dictionary.
"""

import os
import pickle
import struct
from pathlib import Path

from scrapy.utils.request import request_from_dict

_HEAD = struct.Struct(">cQ")
_LENGTH = struct.Struct(">I")
_NAME = "cashrank.requests"


class Journal:
    def __init__(self, folder, spider):
        self._path = Path(folder) / _NAME
        self._spider = spider
        self._file = None

    def open(self):
        """The requests that wait, as they came, each with its number in the log as it now is."""
        waiting = list(self._read().values())
        fresh = self._path.with_suffix(".new")
        with open(fresh, "wb") as file:
            for number, body in enumerate(waiting):
                file.write(_HEAD.pack(b"+", number) + _LENGTH.pack(len(body)) + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
        self._file = open(self._path, "ab", buffering=0)
        return [request_from_dict(pickle.loads(body), spider=self._spider) for body in waiting]

    def came(self, number, request):
        """Writes down a request. Raises ValueError for one that cannot be: it has a function that is none of the spider's, say."""
        try:
            body = pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        self._file.write(_HEAD.pack(b"+", number) + _LENGTH.pack(len(body)) + body)

    def done(self, number):
        self._file.write(_HEAD.pack(b"-", number))

    def close(self):
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def _read(self):
        waiting = {}
        try:
            file = open(self._path, "rb")
        except FileNotFoundError:
            return waiting
        with file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                kind, number = _HEAD.unpack(head)
                if kind == b"-":
                    waiting.pop(number, None)
                    continue
                length = file.read(_LENGTH.size)
                if kind != b"+" or len(length) < _LENGTH.size:
                    break
                (length,) = _LENGTH.unpack(length)
                body = file.read(length)
                if len(body) < length:
                    break
                waiting[number] = body
        return waiting
