"""Rankings of pages and sites by `cashrank compute` beside independent ones, by scipy and networkx.

    compare.py CASHRANK graph ADJACENCY.tsv.zst
    compare.py CASHRANK wats FILE.wat.gz ...

A graph has a line for each page: its number and those of its targets, as in the data set cnr-2000. Pages are
named http://hH.dD.example/N, forty to a host and ten hosts to a domain, in the order of their numbers, which is that of their
URLs. WAT files are read by a parser of this script's own, and their hosts and domains ranked as Common Crawl does.

Prints a line for each comparison, and ends with 1 if one is beyond what the ranking says of itself. Needs numpy, scipy,
networkx and the command zstd. Public suffixes of more than one label are listed here, those that the files have.
"""

import collections
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import networkx
import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

CASHRANK = sys.argv[1] if len(sys.argv) > 1 else sys.exit(__doc__)
FOLDER = Path(tempfile.mkdtemp(prefix="cashrank-compare-"))
PAGES_OF_HOST, HOSTS_OF_DOMAIN = 40, 10
# Public suffixes of more than one label that occur in the WATs.
SUFFIXES = set(
    "co.uk org.uk gov.uk ac.uk nhs.uk police.uk kent.sch.uk com.br com.au gov.au co.jp github.io googleapis.com googlecode.com".split()
)
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
    """The links between groups, without those inside: each link, or one."""
    weights = collections.Counter()
    for page, row in enumerate(rows):
        of = [group(target) for target in set(row) if target != page]
        own = group(page)
        weights.update((own, to) for to in of if to != own)
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
        for weigh in ["count", "once"]:
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
    for weigh in ["count", "once"]:
        links = grouped(rows, hosts, weigh)
        for measure, exact in [("hits-authorities", hits(links, False)), ("hits-hubs", hits(links, True))]:
            scores, said = compute([crawl], "--level", "host", "--measure", measure, "--site-links", weigh, "--until", "1e-13")
            worst = max(abs(scores[host] - value) for host, value in zip(host_names, exact))
            report(f"{measure} of hosts, links by {weigh}: largest error", worst, 1e-9, json.dumps(said["accuracy"]))


# WATs.


def records(path):
    with gzip.open(path, "rb") as file:
        while line := file.readline():
            if not line.startswith(b"WARC/"):
                continue
            head = {}
            while (line := file.readline()) not in (b"\r\n", b"\n", b""):
                key, _, value = line.partition(b":")
                head[key.strip().lower().decode()] = value.strip().decode("utf-8", "replace")
            yield head, file.read(int(head["content-length"]))


def refresh_of(metas):
    """The target of a refresh in the page."""
    for meta in metas:
        content = str(meta.get("content", ""))
        if str(meta.get("http-equiv", "")).lower() == "refresh" and "url=" in content.lower():
            yield content[content.lower().index("url=") + 4 :].strip("'\" ")


def read_wats(paths):
    """The pages that answered, and the links of each."""
    pages = {}
    for path in paths:
        for head, body in records(path):
            if head.get("warc-type") != "metadata":
                continue
            envelope = json.loads(body)["Envelope"]
            warc = envelope.get("WARC-Header-Metadata") or {}
            url = warc.get("WARC-Target-URI", "").strip("<>")
            if warc.get("WARC-Type") != "response" or not url.startswith("http"):
                continue
            response = envelope.get("Payload-Metadata", {}).get("HTTP-Response-Metadata", {})
            status = int(response.get("Response-Message", {}).get("Status", 0) or 0)
            headers = {key.lower(): value for key, value in (response.get("Headers") or {}).items()}
            html = response.get("HTML-Metadata") or {}
            page = html.get("Head", {})
            base, links = urljoin(url, page.get("Base", "") or ""), []
            if 300 <= status < 400:
                links = [headers["location"]] if "location" in headers else []
            elif status < 400:
                links = [link["url"] for link in html.get("Links") or [] if link.get("path") in ("A@/href", "AREA@/href") and link.get("url")]
                links += refresh_of(page.get("Metas") or [])
            pages[url] = []
            for link in links:
                try:
                    pages[url].append(urljoin(base, link.strip()))
                except ValueError:
                    pass
    return pages


def bare_host(url):
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower() if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""
    return host[4:] if host.startswith("www.") and "." in host[4:] else host


def domain_of(host):
    labels = host.split(".")
    if labels[-1].isdigit():
        return host
    of_suffix = next((n for n in (3, 2) if ".".join(labels[-n:]) in SUFFIXES), 1)
    return ".".join(labels[-of_suffix - 1 :])


def common_crawl(pages, site):
    """Positions and values of each site, and its hosts, by the definitions."""
    number, hosts, pairs = {}, collections.defaultdict(set), set()
    number_of = lambda name: number.setdefault(name, len(number))
    for url, links in pages.items():
        own = bare_host(url)
        for to in [own] + [bare_host(link) for link in links]:
            if not to:
                continue
            hosts[site(to)].add(to)
            a, b = number_of(site(own)), number_of(site(to))
            if a != b:
                pairs.add((a, b))
    graph = sparse.csr_matrix((np.ones(len(pairs)), tuple(zip(*pairs))), shape=(len(number), len(number)))
    return list(number), harmonic(graph), pagerank(graph), [len(hosts[name]) for name in number]


def compare_wats(paths):
    pages = read_wats(paths)
    store = FOLDER / "store"
    subprocess.run([CASHRANK, "ingest", *paths, "--store", store, "--quiet"], check=True)
    for level, site in [("barehost", lambda host: host), ("domain", domain_of)]:
        for measure in [["harmonic"], ["pagerank", "--until", "1e-12"]]:
            subprocess.run([CASHRANK, "compute", "--measure", *measure, "--level", level, "--site-links", "once", "--store", store], check=True, capture_output=True)
        done = subprocess.run([CASHRANK, "export", "--to", "common-crawl", "--level", level, "--store", store], check=True, capture_output=True, text=True)
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        names, centrality, ranks, hosts = common_crawl(pages, site)
        print(f"{len(paths)} WATs, {len(pages)} pages: {len(names)} {level}s, as Common Crawl ranks them")
        expected = ["#harmonicc_pos", "#harmonicc_val", "#pr_pos", "#pr_val", "#host_rev"] + ["#n_hosts"] * (level == "domain")
        assert lines[0] == expected, lines[0]
        turned = lambda name: name if name.split(".")[-1].isdigit() else ".".join(reversed(name.split(".")))
        own = {line[4]: line for line in lines[1:]}
        assert set(own) == set(map(turned, names)), sorted(set(own) ^ set(map(turned, names)))
        report(f"harmonic centrality of {level}s: largest error", max(abs(float(own[turned(name)][1]) - value) for name, value in zip(names, centrality)), 1e-9)
        report(f"PageRank of {level}s: L1", sum(abs(float(own[turned(name)][3]) - value) for name, value in zip(names, ranks)), 1e-9)
        if level == "domain":
            wrong = [name for name, count in zip(names, hosts) if own[turned(name)][5] != str(count)]
            report("domains with another number of hosts", len(wrong), 0, str(wrong[:5]))
        # Positions, where values are not equal.
        for column, values in [(0, centrality), (2, ranks)]:
            places = {name: int(own[turned(name)][column]) for name in names}
            assert sorted(places.values()) == list(range(1, len(names) + 1))
            by_place = sorted(zip(names, values), key=lambda pair: places[pair[0]])
            rises = sum(later > earlier + 1e-9 for (_, earlier), (_, later) in zip(by_place, by_place[1:]))
            report(f"{lines[0][column]} of {level}s: places in another order", rises, 0)


match sys.argv[2:]:
    case ["graph", path]:
        compare_graph(path)
    case ["wats", *paths] if paths:
        compare_wats(paths)
    case _:
        sys.exit(__doc__)
sys.exit(failed)
