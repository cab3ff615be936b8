"""Rank web pages while they are crawled, and find out which to crawl next.

    import cashrank

    with cashrank.open("ranks") as store:
        for page in my_crawler():
            store.add(page.url, status=page.status, links=page.links)
        store.publish(settle=1e-6)
        for page in store.top(20):
            print(page.rank, page.importance, page.url)

open() gives a Store, whose ranking() is a Ranking. pagerank() ranks a graph of numbers. All that can go wrong is a
cashrank.Error.
"""

from ._cashrank import (
    Candidate,
    Comparison,
    Moment,
    Move,
    Page,
    Ranking,
    SnapshotInfo,
    Store,
    __version__,
    open,
    pagerank,
)
from ._errors import (
    Closed,
    Conflict,
    Damaged,
    DiskError,
    Error,
    InternalError,
    InUse,
    InvalidInput,
    NotFound,
    OutOfRoom,
    Unsupported,
)

__all__ = [
    "Candidate",
    "Closed",
    "Comparison",
    "Conflict",
    "Damaged",
    "DiskError",
    "Error",
    "InUse",
    "InternalError",
    "InvalidInput",
    "Moment",
    "Move",
    "NotFound",
    "OutOfRoom",
    "Page",
    "Ranking",
    "SnapshotInfo",
    "Store",
    "Unsupported",
    "__version__",
    "open",
    "pagerank",
]
