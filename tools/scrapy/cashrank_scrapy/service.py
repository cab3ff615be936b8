"""Asking cashrank's service."""

import json
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

#: The longest answer that is read, in bytes.
LONGEST = 64 << 20
#: Seconds that an answer may take.
PATIENCE = 30

# The service is on this machine, or where the user says: never behind a proxy that the environment names.
_OPENER = build_opener(ProxyHandler({}))


class Service:
    """A service of ``cashrank serve`` or ``cashrank ingest --serve``."""

    def __init__(self, address, token=None):
        self.address = address.rstrip("/")
        self.token = token

    def get(self, path, options=()):
        """The answer to a question. Raises OSError or ValueError if there is none."""
        query = urlencode(list(options))
        request = Request(f"{self.address}/{path}" + (f"?{query}" if query else ""))
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with _OPENER.open(request, timeout=PATIENCE) as answer:
            body = answer.read(LONGEST + 1)
        if len(body) > LONGEST:
            raise ValueError(f"{path}: an answer of more than {LONGEST} bytes")
        return json.loads(body)

    def snapshot(self):
        """The name of the newest ranking; None: there is none yet."""
        return self.get("status")["snapshot"]

    def next(self, n, options=()):
        """The URLs to crawl next, best first."""
        return [page["url"] for page in self.get("next", [("n", n), *options])["next"]]
