"""How many fetches it takes to find the pages of highest PageRank: Scrapy in its own breadth-first order, and with cashrank.

python measure.py CASHRANK (WARC... | --made PAGES) [--strategy NAME] [--delay SECONDS] [--top N]

The site is served on this machine. What is final is the ranking of all of it: `cashrank pagerank` over the records of a whole crawl.
For 50, 80, 90, 95 and all of the N pages: after how many fetches they were fetched, in each order.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "tests")]

from sites import Site, documentation, of_warc  # noqa: E402


def crawl(site, start, store, settings):
    done = subprocess.run(
        [sys.executable, HERE / "tests/crawl.py", site.address + start, store, json.dumps(settings)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(HERE), "no_proxy": "*"},
    )
    asked, site.asked[:] = list(dict.fromkeys(site.asked)), []
    return asked, json.loads(done.stdout)


def best(cashrank, store, site, top):
    """The paths of the site's pages of highest PageRank, by the links that the store keeps of the whole crawl."""
    ranks = f"{store}.tsv"
    subprocess.run([cashrank, "pagerank", "--store", store, "-o", ranks], check=True, stdout=subprocess.DEVNULL)
    rows = []
    with open(ranks) as file:
        names = file.readline().rstrip("\n").split("\t")
        for line in file:
            row = dict(zip(names, line.rstrip("\n").split("\t")))
            rows.append((float(row.get("importance") or row["pagerank"]), row["url"]))
    rows.sort(reverse=True)
    return [url[len(site.address) :] for _, url in rows if url.startswith(site.address + "/")][:top]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cashrank")
    parser.add_argument("warc", nargs="*")
    parser.add_argument("--made", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", default="forecast")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--every", default="25")
    parser.add_argument("--top", type=int, default=100)
    args = parser.parse_args()
    pages, start = documentation(args.made or 2, args.seed), "/"
    for warc in args.warc:
        pages, start = of_warc(warc)
    site = Site(pages)
    settings = {"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 4, "DOWNLOAD_DELAY": args.delay,
                "RANDOMIZE_DOWNLOAD_DELAY": False, "RETRY_ENABLED": False}
    ours = {**settings, "CASHRANK_COMMAND": [os.path.abspath(args.cashrank)], "CASHRANK_NEXT": {"strategy": args.strategy},
            "CASHRANK_SNAPSHOT_EVERY": args.every, "CASHRANK_REFRESH": 0.05}
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        with_cashrank, stats = crawl(site, start, store, ours)
        breadth_first, _ = crawl(site, start, "", settings)
        wanted = best(os.path.abspath(args.cashrank), store, site, args.top)
    print(json.dumps({key: value for key, value in stats.items() if key.startswith("cashrank/")}))
    print(f"fetches: {len(breadth_first)} breadth first, {len(with_cashrank)} with cashrank; pages wanted: {len(wanted)}")
    places = []
    for asked in (breadth_first, with_cashrank):
        place = {path: at + 1 for at, path in enumerate(asked)}
        places.append(sorted(place.get(path, len(asked) + 1) for path in wanted))
    print("found\tbreadth-first\tcashrank\tratio")
    for share in (50, 80, 90, 95, 100):
        at = max(0, len(wanted) * share // 100 - 1)
        print(f"{share} %\t{places[0][at]}\t{places[1][at]}\t{places[1][at] / places[0][at]:.2f}")
    site.close()


if __name__ == "__main__":
    main()
