"""Invalid use: each kind raises its own exception, whose text says what to do."""

import os
import subprocess
import sys

import pytest
from conftest import CRAWL

import cashrank


def test_the_tree_of_errors():
    for name in cashrank.__all__:
        found = getattr(cashrank, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert issubclass(found, cashrank.Error)
            assert found.__module__ == "cashrank" and found.__doc__
    assert issubclass(cashrank.InvalidInput, ValueError)
    assert issubclass(cashrank.NotFound, LookupError)
    assert issubclass(cashrank.DiskError, OSError)


def test_a_store_that_is_not_there(path):
    with pytest.raises(cashrank.NotFound, match="not a cashrank store"):
        cashrank.open(path, "r")
    assert not path.exists()


def test_a_store_in_use(path, store):
    with pytest.raises(cashrank.InUse, match="in use"):
        cashrank.open(path)
    code = f"import cashrank\ntry: cashrank.open({str(path)!r})\nexcept cashrank.InUse: print('in use')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout == "in use\n"
    # Asking takes no lock.
    with cashrank.open(path, mode="r") as reader:
        assert len(reader) == 5


def test_a_closed_store(path):
    store = cashrank.open(path)
    store.add(*CRAWL[0])
    store.close()
    store.close()
    assert store.closed and "closed" in repr(store)
    for use in [
        lambda: store.add(*CRAWL[0]),
        store.publish,
        store.checkpoint,
        store.top,
        store.next,
        store.edges,
        store.ranking,
        store.snapshots,
        store.verify,
        lambda: store.bound,
        lambda: store.counters,
        lambda: len(store),
        store.__enter__,
    ]:
        with pytest.raises(cashrank.Closed, match="closed"):
            use()
    with cashrank.open(path) as again:
        assert again.pushed == 1


def test_a_store_to_ask_only(path, store):
    with cashrank.open(path, "r") as reader:
        for use in [
            lambda: reader.add("http://a/"),
            reader.publish,
            reader.checkpoint,
            lambda: reader.ingest([]),
            lambda: reader.compute("harmonic"),
        ]:
            with pytest.raises(cashrank.InvalidInput, match='mode="a"'):
                use()


def test_other_settings(path, store):
    store.close()
    for settings in [{"damping": 0.9}, {"self_links": "keep"}, {"follow": "nofollow=0"}, {"scope": "host:a.example"}]:
        with pytest.raises(cashrank.Conflict):
            cashrank.open(path, **settings)
    cashrank.open(path, damping=0.85, self_links="drop", follow=None).close()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"damping": 1}, cashrank.InvalidInput),
        ({"self_links": "some"}, cashrank.InvalidInput),
        ({"follow": "nofollow=-1"}, cashrank.InvalidInput),
        ({"scope": "a.example"}, cashrank.InvalidInput),
        ({"names": "uri"}, cashrank.InvalidInput),
        ({"limit_links": 1 << 40}, cashrank.InvalidInput),
        ({"limit_url": 0}, cashrank.InvalidInput),
        ({"damping": "high"}, TypeError),
        ({"colour": "red"}, TypeError),
        ({"colour": None}, TypeError),
        ({"keep_snapshots": -1}, OverflowError),
    ],
)
def test_wrong_settings(path, settings, error):
    with pytest.raises(error):
        cashrank.open(path, **settings)
    assert not path.exists()


def test_wrong_modes(path):
    with pytest.raises(cashrank.InvalidInput, match="mode="):
        cashrank.open(path, "w")
    with pytest.raises(TypeError, match="no settings"):
        cashrank.open(path, "r", damping=0.85)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.add(None),
        lambda store: store.add("http://a/", "http://b/"),
        lambda store: store.add("http://a/", b"http://b/"),
        lambda store: store.add("http://a/", [None]),
        lambda store: store.add("http://a/", 7),
        lambda store: store.add("http://a/", [("/b", "nofollow", 1, 2)]),
        lambda store: store.add("http://a/", status="200"),
        lambda store: store.next("many"),
        lambda store: store.top(scope=[1]),
    ],
)
def test_wrong_types(store, call):
    with pytest.raises((TypeError, ValueError)):
        call(store)


def test_no_room(path):
    with cashrank.open(path, limit_pages=3) as store:
        store.add("http://a/", ["/b"])
        store.add("http://a/c", ["/d"])
        with pytest.raises(cashrank.OutOfRoom, match="limit_pages"):
            store.checkpoint()
    with cashrank.open(path, limit_pages=3) as store:
        # What fitted is there.
        assert store.pushed == 1


def test_damage_is_raised(path, store):
    store.publish()
    store.close()
    snapshot = path / "snapshots" / "000000000003.snapshot"
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 3] ^= 1
    snapshot.write_bytes(content)
    with cashrank.open(path, "r") as reader:
        with pytest.raises(cashrank.Damaged, match="000000000003.snapshot"):
            reader.verify()


def test_errors_of_the_system():
    # Nobody makes folders in /proc.
    with pytest.raises(cashrank.DiskError) as told:
        cashrank.open("/proc/ranks")
    assert told.value.errno and told.value.filename and "cannot" in str(told.value)


def test_a_file_is_no_store(tmp_path):
    file = tmp_path / "file"
    file.write_text("no directory")
    with pytest.raises(cashrank.InvalidInput, match="is a file"):
        cashrank.open(file)


def test_errors_of_iterators_pass_through(store):
    def links():
        yield "/x"
        raise KeyError("no more")

    with pytest.raises(KeyError):
        store.add("http://a.example/", links())
    assert store.pushed == 3


@pytest.mark.parametrize("settle", [0, -1, float("nan"), float("inf")])
def test_wrong_bounds(store, settle):
    with pytest.raises(cashrank.InvalidInput, match="settle"):
        store.publish(settle=settle)


def test_a_fork_must_open_it_again(store):
    child = os.fork()
    if child == 0:
        try:
            store.add("http://a/")
        except cashrank.Closed:
            os._exit(17)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    store.add("http://a/")
