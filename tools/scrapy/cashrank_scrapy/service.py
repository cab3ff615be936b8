"""Asking cashrank's service."""

import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

#: The longest answer that is read, in bytes.
LONGEST = 64 << 20
#: Seconds that an answer may take.
PATIENCE = 60

# The service is on this machine, or where the user says: never behind a proxy that the environment names.
_OPENER = build_opener(ProxyHandler({}))


class Service:
    """A service of ``cashrank serve`` or ``cashrank ingest --listen``."""

    def __init__(self, address, token=None):
        self.address = address.rstrip("/")
        self.token = token

    def next(self, n, options, known=None):
        """The URLs to crawl next, best first, and the mark of that list; None: there is none yet, or no other than the one with the mark ``known``.

        Raises OSError or ValueError if there is no answer.
        """
        query = urlencode([("n", n), *options.items()])
        request = Request(f"{self.address}/next?{query}")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if known:
            request.add_header("If-None-Match", known)
        try:
            with _OPENER.open(request, timeout=PATIENCE) as answer:
                mark, body = answer.headers["ETag"], answer.read(LONGEST + 1)
        except HTTPError as error:
            with error:
                # The same as before; or nothing yet.
                if error.code in (304, 503):
                    return None
                raise OSError(f"{error.code}: {_told(error.read(10_000))}") from None
        if len(body) > LONGEST:
            raise ValueError(f"an answer of more than {LONGEST} bytes")
        return mark, [page["url"] for page in json.loads(body)["next"]]


def _told(body):
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return text.strip()
