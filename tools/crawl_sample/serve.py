"""Serves a folder of static pages on the loopback address only, until stopped.

    python3 serve.py FOLDER [PORT]

Like `python3 -m http.server --bind 127.0.0.1`, except that a folder without an index page is
404 and not a listing: listings are this server's pages, not the documentation's.
"""

import functools
import http
import http.server
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def list_directory(self, path):
        self.send_error(http.HTTPStatus.NOT_FOUND, "No index page")

    def log_message(self, *args):
        pass


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    port = int(sys.argv[2]) if len(sys.argv) == 3 else 8000
    handler = functools.partial(Handler, directory=sys.argv[1])
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
