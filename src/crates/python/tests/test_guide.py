"""The guide's chapter is a program that runs, and so is the example."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import cashrank

PACKAGE = Path(__file__).parent.parent
GUIDE = PACKAGE.parents[2] / "formats" / "guide" / "python.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="SKIPPED: the guide is not beside the package")
def test_the_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    code = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(code) >= 7
    exec(compile("".join(code), str(GUIDE), "exec"), {})
    said = capsys.readouterr().out
    assert "https://example.org/news" in said and "not a cashrank store" in said
    named = re.findall(r"^\| `(\w+)` \|", text, re.M)
    errors = [getattr(cashrank, name) for name in cashrank.__all__]
    errors = {kind.__name__ for kind in errors if isinstance(kind, type) and issubclass(kind, cashrank.Error)}
    assert set(named) == errors - {"Error"}


def test_the_example(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    for number in range(30):
        links = "".join(f'<a href="/{to}.html">{to}</a>' for to in (0, number + 1, number * 3 % 30))
        (site / f"{number}.html").write_text(f"<html>{links}<a href='mailto:a@example.org'>a</a></html>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/1.html"
    command = [sys.executable, PACKAGE / "examples" / "crawl.py", tmp_path / "ranks", url, "--pages", "25", "--delay", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    server.shutdown()
    with cashrank.open(tmp_path / "ranks", "r") as store:
        assert store.counters["records"] == 25
        best = store.top(1)[0].url
    # All pages link to it.
    assert best.endswith("/0.html")
    assert best in ran.stdout
