"""How many fetches it takes to find the pages of highest PageRank: in breadth-first order, and with cashrank.

python measure.py CASHRANK [--by scrapy|urlfrontier] (FILE... | --made PAGES) [--strategy ORDER] [--top N]

Each file is a site, served on this machine at an address of its own (127.0.0.2 and so on): a WARC (.warc.gz), or crawl records with links
(.jsonl). What is final is the ranking of all of it: `cashrank compute` over the links of a whole crawl. For 50, 80, 90, 95 and all
of the N best pages: after how many fetches they were fetched, in each order. By Scrapy, both orders are crawled with its own settings; by
URLFrontier, by one client, which fetches one page after the other.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "tests")]

from sites import Site, documentation, of_records, of_warc  # noqa: E402


class Sites:
    """Sites at addresses of their own, and what was asked for of all of them, in order."""

    def __init__(self, files, made, seed):
        pages = [of_warc(file) if file.endswith(".gz") else of_records(open(file)) for file in files]
        pages += [(documentation(made, seed), "/")] if made else []
        self.asked, self.sites, self.starts = [], [], []
        for at, (of_site, start) in enumerate(pages):
            site = Site(of_site, f"127.0.0.{2 + at}", lambda path, at=at: self.asked.append(self.sites[at].address + path))
            self.sites.append(site)
            self.starts.append(site.address + start)

    def fetched(self):
        """What was fetched since this was asked last, each once."""
        asked, self.asked[:] = list(dict.fromkeys(self.asked)), []
        return asked

    def has(self, url):
        return any(url.startswith(site.address + "/") for site in self.sites)


def by_scrapy(sites, store, settings):
    arguments = [",".join(sites.starts), store, json.dumps(settings)]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "no_proxy": "*"}
    crawl = [sys.executable, HERE / "tests/crawl.py", *arguments]
    done = subprocess.run(crawl, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    stats = json.loads(done.stdout)
    print(json.dumps({name: value for name, value in stats.items() if name.startswith("cashrank/")}))
    return sites.fetched()


def orders(args, sites, store):
    """What was fetched breadth first, and with cashrank."""
    cashrank = os.path.abspath(args.cashrank)
    if args.by == "urlfrontier":
        import frontier_crawl

        frontier_crawl.crawl(sites.starts, store, cashrank, args.strategy, args.every)
        ours = sites.fetched()
        frontier_crawl.breadth_first(sites.starts)
        return sites.fetched(), ours
    settings = {"DOWNLOAD_DELAY": args.delay, "RANDOMIZE_DOWNLOAD_DELAY": False, "RETRY_ENABLED": False}
    own = {"CASHRANK_COMMAND": [cashrank], "CASHRANK_NEXT": {"strategy": args.strategy}, "CASHRANK_SNAPSHOT_EVERY": args.every}
    ours = by_scrapy(sites, store, {**settings, **own})
    return by_scrapy(sites, "", settings), ours


def best(cashrank, store, sites, top):
    """The sites' pages of highest PageRank, by the links that the store keeps of the whole crawl."""
    ranks = f"{store}.tsv"
    of = ["--store", store, "--measure", "pagerank"]
    subprocess.run([cashrank, "compute", *of, "--until", "1e-12"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([cashrank, "export", *of, "--to", "tsv", "-o", ranks], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = []
    with open(ranks) as file:
        names = file.readline().rstrip("\n").split("\t")
        for line in file:
            row = dict(zip(names, line.rstrip("\n").split("\t")))
            rows.append((float(row.get("importance") or row["pagerank"]), row["url"]))
    rows.sort(reverse=True)
    return [url for _, url in rows if sites.has(url)][:top]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cashrank")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--by", choices=["scrapy", "urlfrontier"], default="scrapy")
    parser.add_argument("--made", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", default="forecast:unseen=1")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--every", default="500ms")
    parser.add_argument("--top", type=int, default=100)
    args = parser.parse_intermixed_args()
    sites = Sites(args.files, args.made, args.seed)
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        started = time.monotonic()
        breadth_first, ours = orders(args, sites, store)
        seconds = time.monotonic() - started
        wanted = best(os.path.abspath(args.cashrank), store, sites, args.top)
    print(f"fetches: {len(breadth_first)} breadth first, {len(ours)} with cashrank; pages wanted: {len(wanted)}; {seconds:.0f} s in all")
    places = []
    for asked in (breadth_first, ours):
        place = {url: at + 1 for at, url in enumerate(asked)}
        places.append(sorted(place.get(url, len(asked) + 1) for url in wanted))
    print("found\tbreadth-first\tcashrank\tratio")
    for share in (50, 80, 90, 95, 100):
        at = max(0, len(wanted) * share // 100 - 1)
        print(f"{share} %\t{places[0][at]}\t{places[1][at]}\t{places[1][at] / places[0][at]:.2f}")
    for site in sites.sites:
        site.close()


if __name__ == "__main__":
    main()
