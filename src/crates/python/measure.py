"""Time the package, the command and other programs: python measure.py [--command cashrank] FOLDER

The crawl is synthetic: PAGES records of 20 links each on average, to pages drawn by a power law. benches/EXPERIMENTS.md has
results. Needs numpy and pyarrow; networkx, igraph and scipy are measured where they are installed.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

import cashrank

LINKS = 20  # A page.


def timed(what, work, who=resource.RUSAGE_SELF):
    """Prints seconds by the clock and of processors, and the largest memory so far."""

    def processors():
        used = resource.getrusage(who)
        return used.ru_utime + used.ru_stime

    before, used = time.perf_counter(), processors()
    result = work()
    seconds, used = time.perf_counter() - before, processors() - used
    peak = resource.getrusage(who).ru_maxrss / 1024
    print(f"{what}: {seconds:.2f} s, of processors {used:.2f} s; peak {peak:.0f} MB", flush=True)
    return result


def graph(pages):
    """Targets by row: few pages get most links."""
    random = numpy.random.default_rng(1)
    targets = (pages * random.random((pages, LINKS)) ** 3).astype(numpy.int64)
    order = random.permutation(pages)
    return order[targets]


def names(pages):
    return [f"https://host{page % 5000}.example/section/{page // 5000}/page{page}.html" for page in range(pages)]


def make(folder, pages):
    urls, targets = names(pages), graph(pages)
    with open(folder / "crawl.jsonl", "w") as file:
        for url, row in zip(urls, targets):
            file.write(json.dumps({"url": url, "links": [urls[to] for to in row]}) + "\n")
    strings = pyarrow.array(urls)
    links = strings.take(pyarrow.array(targets.ravel()))
    offsets = pyarrow.array(numpy.arange(pages + 1, dtype=numpy.int32) * LINKS)
    lists = pyarrow.ListArray.from_arrays(offsets, links)
    pyarrow.parquet.write_table(pyarrow.table({"url": strings, "links": lists}), folder / "crawl.parquet")
    numpy.save(folder / "targets.npy", targets)


def iterator(folder):
    targets = numpy.load(folder / "targets.npy")
    urls = names(len(targets))

    def crawl():
        for url, row in zip(urls, targets.tolist()):
            yield url, [urls[to] for to in row]

    timed("making the records alone", lambda: sum(1 for _ in crawl()))

    def push():
        for url, links in crawl():
            store.add(url, links)
        store.checkpoint()

    with cashrank.open(folder / "iterator.store") as store:
        timed("store.add of each, and a checkpoint", push)
        timed("publish(0.01)", store.publish)


def batches(folder):
    file = pyarrow.parquet.ParquetFile(folder / "crawl.parquet")
    reader = pyarrow.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(8192))

    def push():
        store.add_batch(reader)
        store.checkpoint()

    with cashrank.open(folder / "batches.store") as store:
        timed("store.add_batch of a Parquet file, and a checkpoint", push)
        timed("publish(0.01)", store.publish)
        timed("edges", store.edges)
        ranking = store.ranking()
        timed("pyarrow.table(ranking)", lambda: pyarrow.table(ranking))


def ours(folder):
    targets = numpy.load(folder / "targets.npy")
    src, dst = numpy.repeat(numpy.arange(len(targets)), LINKS), targets.ravel()
    pairs = numpy.unique(src * len(targets) + dst)
    src, dst = pairs // len(targets), pairs % len(targets)
    numpy.savez(folder / "edges.npz", src=src, dst=dst)
    for until in (1e-6, 1e-9):
        scores = timed(f"cashrank.pagerank, until={until}", lambda: cashrank.pagerank(src, dst, until=until))
        numpy.save(folder / f"scores-{until}.npy", scores)


def other(folder, name):
    edges = numpy.load(folder / "edges.npz")
    src, dst = edges["src"], edges["dst"]
    nodes = int(max(src.max(), dst.max())) + 1
    if name == "networkx":
        import networkx

        made = networkx.DiGraph()
        timed("networkx: the graph", lambda: made.add_edges_from(zip(src.tolist(), dst.tolist())))
        found = timed("networkx: pagerank, tol=1e-9/n", lambda: networkx.pagerank(made, 0.85, tol=1e-9 / nodes, max_iter=1000))
        scores = numpy.zeros(nodes)
        scores[list(found)] = list(found.values())
    elif name == "igraph":
        import igraph

        pairs = numpy.stack([src, dst], 1)
        made = timed("igraph: the graph", lambda: igraph.Graph(nodes, pairs, directed=True))
        scores = numpy.array(timed("igraph: pagerank (PRPACK)", lambda: made.pagerank(damping=0.85)))
    else:
        scores = timed("scipy: power iteration to 1e-9, the matrix included", lambda: by_scipy(src, dst, nodes))
    for until in (1e-6, 1e-9):
        distance = numpy.abs(scores - numpy.load(folder / f"scores-{until}.npy")).sum()
        print(f"{name}: L1 distance from cashrank's of until={until}: {distance:.2e}")


def by_scipy(src, dst, nodes, damping=0.85, until=1e-9):
    import scipy.sparse

    degrees = numpy.bincount(src, minlength=nodes)
    matrix = scipy.sparse.csr_array((1.0 / degrees[src], (dst, src)), shape=(nodes, nodes))
    empty = degrees == 0
    scores = numpy.full(nodes, 1 / nodes)
    while True:
        now = damping * (matrix @ scores + scores[empty].sum() / nodes) + (1 - damping) / nodes
        moved = numpy.abs(now - scores).sum()
        scores = now
        if moved * damping / (1 - damping) <= until:
            return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--command", default="cashrank")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder
    parts = {"iterator": iterator, "batches": batches, "ours": ours}
    if arguments.part in parts:
        return parts[arguments.part](folder)
    if arguments.part:
        return other(folder, arguments.part)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "targets.npy").exists():
        make(folder, arguments.pages)
    ingest = [arguments.command, "ingest", folder / "crawl.jsonl", "--quiet", "--store", folder / "command.store"]
    timed("the command, with its ranking", lambda: subprocess.run(ingest, check=True), resource.RUSAGE_CHILDREN)
    # Each in a process of its own, so that its peak of memory is its own.
    for part in [*parts, "scipy", "igraph", "networkx"]:
        print(f"-- {part}", flush=True)
        if subprocess.run([sys.executable, __file__, folder, "--part", part]).returncode:
            print(f"{part}: not measured")


if __name__ == "__main__":
    main()
