from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, TypedDict, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self, Unpack

__all__ = [
    "Candidate",
    "Comparison",
    "Moment",
    "Move",
    "Page",
    "Ranking",
    "SnapshotInfo",
    "Store",
    "__version__",
    "open",
    "pagerank",
]

__version__: str

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...

class _HasUrl(Protocol):
    @property
    def url(self) -> str: ...

_Url = str | bytes
_Link = _Url | tuple[_Url, str | None]
_Scope = str | Iterable[str] | None
_Snapshot = int | str | date | datetime | None
_SiteLinks = Literal["count", "once"]

class _Settings(TypedDict, total=False):
    damping: float | None
    self_links: Literal["keep", "drop"] | None
    follow: str | None
    scope: _Scope
    drop_params: _Scope
    shard: str | None
    names: Literal["url", "opaque"] | None
    keep_links: bool | None
    keep_snapshots: int | str | None
    memory: int | None
    limit_pages: int | None
    limit_links: int | None
    limit_url: int | None

class _Next(TypedDict, total=False):
    strategy: str | None
    refetch: bool | None
    budget: float | str | None
    per_host: int | None
    per_domain: int | None
    scope: _Scope
    known_hosts: bool | None
    older_than: timedelta | str | None
    focus: Mapping[str, float] | str | Iterable[str] | None
    retry_after: timedelta | str | None
    max_failures: int | None
    as_of: datetime | date | str | None

def open(
    path: str | PathLike[str], mode: Literal["a", "r"] = "a", **settings: Unpack[_Settings]
) -> Store: ...
def pagerank(
    src: ArrayLike,
    dst: ArrayLike,
    weights: ArrayLike | None = None,
    teleport: ArrayLike | None = None,
    *,
    damping: float = 0.85,
    until: float = 1e-9,
    nodes: int | None = None,
    self_links: Literal["keep", "drop"] = "keep",
) -> NDArray[np.float64]: ...
@final
class Store:
    @property
    def path(self) -> Path: ...
    @property
    def mode(self) -> Literal["a", "r"]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def pushed(self) -> int: ...
    @property
    def counters(self) -> dict[str, Any]: ...
    def add(
        self,
        url: _Url,
        links: Iterable[_Link] | None = None,
        *,
        status: int | None = None,
        fetched_at: float | datetime | str | None = None,
        redirect: _Url | None = None,
        base: _Url | None = None,
        digest: str | None = None,
        unchanged: bool = False,
    ) -> str | None: ...
    def add_batch(
        self,
        table: _ArrowStream | _ArrowArray,
        *,
        url: str = "url",
        links: str = "links",
        status: str | None = None,
        fetched_at: str | None = None,
        redirect: str | None = None,
        digest: str | None = None,
    ) -> int: ...
    def checkpoint(self) -> int: ...
    def publish(self, settle: float | None = 0.01) -> Ranking: ...
    def ingest(
        self,
        inputs: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        format: str | None = None,
        settle: float | None = 0.01,
        leave_unfinished: bool = False,
    ) -> int: ...
    def compute(
        self,
        measure: str,
        *,
        level: str = "page",
        teleport: Mapping[str, int] | str | Iterable[str] | None = None,
        damping: float | None = None,
        until: float | None = None,
    ) -> Ranking: ...
    def close(self) -> None: ...
    def ranking(
        self,
        snapshot: _Snapshot = None,
        *,
        level: str = "page",
        measure: str | None = None,
    ) -> Ranking: ...
    def snapshots(self) -> list[SnapshotInfo]: ...
    def top(
        self,
        n: int = 20,
        scope: _Scope = None,
        *,
        without_gone: bool = False,
        level: str = "page",
        measure: str | None = None,
    ) -> list[Page]: ...
    def rank(self, url: str, *, level: str = "page", measure: str | None = None) -> Page | None: ...
    def ranks(
        self, urls: Sequence[str], *, level: str = "page", measure: str | None = None
    ) -> list[Page | None]: ...
    def history(
        self, url: str, *, level: str = "page", measure: str | None = None
    ) -> list[Moment]: ...
    def links(
        self, url: str, n: int | None = None, *, incoming: bool = False
    ) -> list[Page]: ...
    @overload
    def edges(
        self,
        level: str = "page",
        *,
        weights: Literal[False] = False,
        site_links: _SiteLinks = "count",
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    @overload
    def edges(
        self,
        level: str = "page",
        *,
        weights: Literal[True],
        site_links: _SiteLinks = "count",
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64]]: ...
    def next(
        self,
        n: int = 100,
        *,
        exclude: str | Iterable[str | _HasUrl] | None = None,
        seeds: str | Iterable[str | _HasUrl] | None = None,
        **options: Unpack[_Next],
    ) -> list[Candidate]: ...
    def compare(
        self,
        since: int | str | date | datetime,
        until: _Snapshot = None,
        *,
        count: int = 20,
        by: Literal["change", "relative", "rank"] = "relative",
        top: int | None = 1000,
        certain_only: bool = False,
    ) -> Comparison: ...
    def verify(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Ranking:
    @property
    def bound(self) -> float | None: ...
    @property
    def level(self) -> str: ...
    @property
    def measure(self) -> str | None: ...
    @property
    def number(self) -> int: ...
    @property
    def time(self) -> datetime | None: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def certain_top(self) -> int | None: ...
    def top(
        self, n: int = 20, scope: _Scope = None, *, without_gone: bool = False
    ) -> list[Page]: ...
    def rank(self, url: str) -> Page | None: ...
    def ranks(self, urls: Sequence[str]) -> list[Page | None]: ...
    def importance(self) -> NDArray[np.float64]: ...
    def to_arrow(self) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __bool__(self) -> bool: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Page:
    @property
    def rank(self) -> int: ...
    @property
    def importance(self) -> float: ...
    @property
    def url(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def visits(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def pages(self) -> int | None: ...
    @property
    def last_fetch(self) -> datetime | None: ...
    @property
    def last_fetch_s(self) -> int | None: ...
    @property
    def state(self) -> str | None: ...
    @property
    def cash(self) -> float | None: ...
    @property
    def distributed(self) -> float | None: ...

@final
class Candidate:
    @property
    def url(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def importance(self) -> float: ...
    @property
    def fetched(self) -> bool: ...
    @property
    def visits(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def page(self) -> int | None: ...
    @property
    def compared(self) -> int: ...
    @property
    def changed(self) -> int: ...
    @property
    def last_fetch(self) -> datetime | None: ...
    @property
    def last_fetch_s(self) -> int | None: ...

@final
class Move:
    @property
    def url(self) -> str: ...
    @property
    def state(self) -> str | None: ...
    @property
    def rank_before(self) -> int | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def importance_before(self) -> float | None: ...
    @property
    def importance(self) -> float | None: ...
    @property
    def certain(self) -> bool | None: ...
    @property
    def change(self) -> float: ...

@final
class Moment:
    @property
    def snapshot(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def importance(self) -> float | None: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def time(self) -> datetime | None: ...
    @property
    def time_s(self) -> int | None: ...

@final
class Comparison:
    @property
    def rose(self) -> list[Move]: ...
    @property
    def fell(self) -> list[Move]: ...
    @property
    def new(self) -> list[Move]: ...
    @property
    def missing(self) -> list[Move]: ...
    @property
    def summary(self) -> dict[str, Any]: ...

@final
class SnapshotInfo:
    @property
    def number(self) -> int: ...
    @property
    def path(self) -> Path: ...
    @property
    def bytes(self) -> int: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def current(self) -> bool: ...
    @property
    def pages(self) -> int | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def time(self) -> datetime | None: ...
    @property
    def time_s(self) -> int | None: ...
