"""Rankings of pages and sites by `cashrank compute` beside independent ones, by scipy and networkx.

    compare.py CASHRANK graph ADJACENCY.tsv.zst

A graph has a line for each page: its number and those of its targets, as in the data set cnr-2000. Pages are
named http://hH.dD.example/N, forty to a host and ten hosts to a domain, in the order of their numbers, which is that of their
URLs.

Prints a line for each comparison, and ends with 1 if one is beyond what the ranking says of itself. Needs numpy, scipy,
networkx and the command zstd.
"""

import collections
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import networkx
import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

CASHRANK = sys.argv[1] if len(sys.argv) > 1 else sys.exit(__doc__)
FOLDER = Path(tempfile.mkdtemp(prefix="cashrank-compare-"))
PAGES_OF_HOST, HOSTS_OF_DOMAIN = 40, 10
failed = False


def report(what, found, most, note=""):
    global failed
    is_good = found <= most
    failed |= not is_good
    print(f"{what:<66} {found:.3e}  at most {most:.3e}  {'ok' if is_good else 'NO'}  {note}", flush=True)


def compute(inputs, *options):
    """Names and scores, and what the ranking says of itself."""
    out = FOLDER / "ranks.tsv"
    command = [CASHRANK, "compute", *map(str, inputs), *options, "--json", "--force", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    said = json.loads(done.stdout)
    with open(out, encoding="utf-8") as lines:
        next(lines)
        rows = (line.rstrip("\n").split("\t") for line in lines)
        scores = {row[0]: float(row[1]) for row in rows}
    return scores, said


def pagerank(weights, teleport=None, damping=0.85):
    """x = d M x + (1 - d l(x)) t by power iteration in 64 bits, until it moves less than 1e-14."""
    n = weights.shape[0]
    sums = np.asarray(weights.sum(axis=1)).ravel()
    linked = sums > 0
    inverse = np.divide(1.0, sums, out=np.zeros(n), where=linked)
    step = (sparse.diags(inverse) @ weights).T.tocsr()
    t = np.full(n, 1.0 / n) if teleport is None else teleport / teleport.sum()
    x = t.copy()
    for _ in range(10_000):
        new = damping * (step @ x) + (1.0 - damping * x[linked].sum()) * t
        moved = np.abs(new - x).sum()
        x = new
        if moved < 1e-14:
            break
    return x / x.sum()


def harmonic(links):
    """Exactly, by searches along the links, a hundred at a time."""
    n = links.shape[0]
    links = (links > 0).astype(float).tocsr()
    sums = np.zeros(n)
    for first in range(0, n, 100):
        distances = dijkstra(links, unweighted=True, indices=range(first, min(first + 100, n)))
        with np.errstate(divide="ignore"):
            inverse = np.where((distances > 0) & np.isfinite(distances), 1.0 / distances, 0.0)
        sums += inverse.sum(axis=0)
    return sums


def hits(links, hubs):
    """The eigenvector of A^T A, or A A^T, from the start of equal entries where there are links."""
    matrix = (links @ links.T if hubs else links.T @ links).tocsr()
    x = (np.asarray(matrix.sum(axis=1)).ravel() > 0).astype(float)
    x /= x.sum()
    for _ in range(200_000):
        new = matrix @ x
        new /= new.sum()
        moved = np.abs(new - x).sum()
        x = new
        if moved < 1e-15:
            break
    return x


def salsa(links):
    """Of each component of authorities that share a hub: its part of all authorities, by in-degree within."""
    into = np.asarray(links.sum(axis=0)).ravel()
    graph = networkx.Graph()
    coo = links.tocoo()
    graph.add_edges_from((("h", by), ("a", to)) for by, to in zip(coo.row.tolist(), coo.col.tolist()))
    scores, all_authorities = np.zeros(links.shape[0]), (into > 0).sum()
    for component in networkx.connected_components(graph):
        of = np.array([node for kind, node in component if kind == "a"])
        scores[of] = len(of) / all_authorities * into[of] / into[of].sum()
    return scores


def l1(scores, names, exact):
    assert set(scores) == set(names), (len(scores), len(names), sorted(set(scores) ^ set(names))[:5])
    return sum(abs(scores[name] - value) for name, value in zip(names, exact))


# A graph of numbers, with names.


def read_graph(path):
    text = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout.decode()
    return [[int(number) for number in line.split("\t")[1:] if number] for line in text.splitlines()]


def name(page):
    host = page // PAGES_OF_HOST
    return f"http://h{host}.d{host // HOSTS_OF_DOMAIN}.example/{page}"


def grouped(rows, group, weigh):
    """The links between groups, without those inside: each link, each page that links, or one."""
    weights = collections.Counter()
    for page, row in enumerate(rows):
        of = [group(target) for target in set(row) if target != page]
        own = group(page)
        if weigh == "count":
            weights.update((own, to) for to in of if to != own)
        else:
            weights.update((own, to) for to in set(of) if to != own)
    pairs = list(weights)
    values = [weights[pair] if weigh != "once" else 1 for pair in pairs]
    n = group(len(rows) - 1) + 1
    rows_, columns = zip(*pairs)
    return sparse.csr_matrix((np.array(values, float), (rows_, columns)), shape=(n, n))


def compare_graph(path):
    rows = read_graph(path)
    crawl = FOLDER / "graph.jsonl"
    with open(crawl, "w") as out:
        for page, row in enumerate(rows):
            out.write(json.dumps({"url": name(page), "links": [name(to) for to in row]}) + "\n")
    hosts = lambda page: page // PAGES_OF_HOST
    domains = lambda page: page // PAGES_OF_HOST // HOSTS_OF_DOMAIN
    n_hosts = hosts(len(rows) - 1) + 1
    host_names = [f"h{host}.d{host // HOSTS_OF_DOMAIN}.example" for host in range(n_hosts)]
    domain_names = [f"d{domain}.example" for domain in range(domains(len(rows) - 1) + 1)]
    print(f"{Path(path).name}: {len(rows)} pages, {n_hosts} hosts, {len(domain_names)} domains")
    for level, group, names in [("host", hosts, host_names), ("domain", domains, domain_names)]:
        for weigh in ["count", "pages", "once"]:
            graph = grouped(rows, group, weigh)
            exact = pagerank(graph)
            for until in ["1e-3", "1e-6", "1e-10"]:
                scores, said = compute([crawl], "--level", level, "--measure", "pagerank", "--site-links", weigh, "--until", until)
                report(f"PageRank of {level}s, links by {weigh}, until {until}: L1", l1(scores, names, exact), said["accuracy"]["bound_l1"])
            if weigh == "once" and level == "domain":
                by_networkx = networkx.pagerank(networkx.from_scipy_sparse_array(graph, create_using=networkx.DiGraph), tol=1e-13, max_iter=1000)
                report("PageRank of domains beside networkx, until 1e-10: L1", l1(scores, names, by_networkx.values()), said["accuracy"]["bound_l1"] + 1e-9)
    links = grouped(rows, hosts, "once")
    trusted = FOLDER / "trusted.txt"
    trusted.write_text("".join(f"host:{host}\t{1 + at % 3}\n" for at, host in enumerate(host_names[::50])))
    teleport = np.zeros(n_hosts)
    teleport[::50] = [1 + at % 3 for at in range(len(host_names[::50]))]
    scores, said = compute([crawl], "--level", "host", "--measure", "personalised", "--teleport", str(trusted), "--site-links", "once", "--until", "1e-9")
    report("personalised PageRank of hosts: L1", l1(scores, host_names, pagerank(links, teleport)), said["accuracy"]["bound_l1"])
    exact = harmonic(links)
    scores, said = compute([crawl], "--level", "host", "--measure", "harmonic")
    worst = max(abs(scores[host] - value) / max(value, 1e-300) for host, value in zip(host_names, exact))
    report(f"harmonic centrality of hosts, {said['accuracy']}: largest relative error", worst, 1e-9)
    for registers in ["64", "256", "1024"]:
        scores, said = compute([crawl], "--level", "host", "--measure", "harmonic", "--registers", registers)
        errors = [(scores[host] - value) / value for host, value in zip(host_names, exact) if value > 0]
        rms = math.sqrt(sum(error * error for error in errors) / len(errors))
        # All hosts that one large part of the graph reaches share the error of its counter: two standard errors.
        report(f"harmonic centrality of hosts, {registers} registers: error (rms)", rms, 2 * said["accuracy"]["standard_error"])
    for weigh in ["count", "once"]:
        links = grouped(rows, hosts, weigh)
        for measure, exact in [("hits-authorities", hits(links, False)), ("hits-hubs", hits(links, True)), ("salsa", salsa(links))]:
            scores, said = compute([crawl], "--level", "host", "--measure", measure, "--site-links", weigh, "--until", "1e-13")
            worst = max(abs(scores[host] - value) for host, value in zip(host_names, exact))
            report(f"{measure} of hosts, links by {weigh}: largest error", worst, 1e-9, json.dumps(said["accuracy"]))


match sys.argv[2:]:
    case ["graph", path]:
        compare_graph(path)
    case _:
        sys.exit(__doc__)
sys.exit(failed)
