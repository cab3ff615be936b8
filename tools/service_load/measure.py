"""What serving costs an ingest, and how long its answers take meanwhile.

python measure.py CASHRANK INPUT [--pairs N] [--rate R] [--snapshot-every T] [-- INGEST OPTIONS]

Runs the same ingest, at full speed, in turn without the service and with it: N pairs, the order within a pair changing, so that what else
the machine does meets both. With it, a client asks for /next, R times a second, and for /status and /top now and then. Prints each run as a
line of JSON: seconds, processor seconds of all threads and of those of the service, and of the answers how many, and their latencies in
milliseconds at the median, the 90th and 99th percentile and the longest. Then ratios of the run with the service to that without: of
seconds, of processor seconds, and of those of the ingest's own threads, each with the median over the pairs; and the service's own
processor seconds as a share of the ingest's. Linux only.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PATHS = ["/next?n=1000"] * 8 + ["/status", "/top?n=20"]


def asking(address, rate, ended, times, statuses):
    """Asks until the ingest ended: an answer that comes late delays no question that is due by more than itself."""
    connection, due, at = http.client.HTTPConnection(address, timeout=60), time.monotonic(), 0
    while not ended.is_set():
        path, at = PATHS[at % len(PATHS)], at + 1
        started = time.monotonic()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            # The ingest ended meanwhile.
            return
        took = time.monotonic() - started
        kind = path.split("?")[0]
        statuses[f"{kind} {answer.status}"] = statuses.get(f"{kind} {answer.status}", 0) + 1
        if answer.status == 200:
            times.setdefault(kind, []).append(took)
        due += 1 / rate
        time.sleep(max(0, due - time.monotonic()))


def of_service(name):
    return name in ("serve", "frontier", "next-first", "next-refresh") or name.startswith("tokio-r")


def watched(pid, ended, seconds):
    """Puts down how long each thread of the service has run, ten times a second: `seconds` by thread."""
    while not ended.wait(0.1):
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                of_thread = f"/proc/{pid}/task/{thread}"
                with open(f"{of_thread}/comm") as name, open(f"{of_thread}/schedstat") as ran:
                    if of_service(name.read().strip()):
                        seconds[thread] = int(ran.read().split()[0]) / 1e9
        except OSError:
            # A thread, or all of it, ended meanwhile.
            pass


def percentiles(times):
    ranked = sorted(1000 * time for time in times)
    at = lambda share: round(ranked[min(len(ranked) - 1, int(share * len(ranked)))], 2)
    return {"n": len(ranked), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "longest": round(ranked[-1], 2)}


def run(args, folder, served):
    store = os.path.join(folder, "store")
    shutil.rmtree(store, ignore_errors=True)
    command = [args.cashrank, "ingest", args.input, "--store", store, "--snapshot-every", args.snapshot_every, "--keep-snapshots", "2", *args.options]
    command += ["--listen", "127.0.0.1:0"] if served else []
    started = time.monotonic()
    ingest = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ended, times, statuses, clients = threading.Event(), {}, {}, []

    def said():
        for line in ingest.stderr:
            if line.startswith("serving at http://"):
                address = line.strip().removeprefix("serving at http://").rstrip("/")
                client = threading.Thread(target=asking, args=(address, args.rate, ended, times, statuses))
                client.start()
                clients.append(client)

    reader = threading.Thread(target=said)
    reader.start()
    of_threads = {}
    watcher = threading.Thread(target=watched, args=(ingest.pid, ended, of_threads))
    watcher.start()
    _, status, usage = os.wait4(ingest.pid, 0)
    seconds = time.monotonic() - started
    ended.set()
    ingest.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    watcher.join()
    for client in clients:
        client.join()
    assert ingest.returncode == 0, ingest.returncode
    told = {"served": served, "seconds": round(seconds, 2), "cpu": round(usage.ru_utime + usage.ru_stime, 2), "cpu_of_service": round(sum(of_threads.values()), 2), "mib": usage.ru_maxrss >> 10}
    if served:
        told |= {"statuses": statuses, "ms": {kind: percentiles(of) for kind, of in times.items()}}
    print(json.dumps(told), flush=True)
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cashrank")
    parser.add_argument("input")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--snapshot-every", default="2s")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:end])
    args.options = sys.argv[end + 1 :]
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(args.pairs):
            order = (False, True) if pair % 2 == 0 else (True, False)
            pairs.append({served: run(args, folder, served) for served in order})
    own = lambda run: run["cpu"] - run["cpu_of_service"]
    ratios = {
        "seconds": [pair[True]["seconds"] / pair[False]["seconds"] for pair in pairs],
        "cpu": [pair[True]["cpu"] / pair[False]["cpu"] for pair in pairs],
        "cpu of the ingest's own threads": [own(pair[True]) / own(pair[False]) for pair in pairs],
        "cpu of the service, to that of the ingest": [pair[True]["cpu_of_service"] / own(pair[True]) for pair in pairs],
    }
    for what, found in ratios.items():
        print(f"{what}: median ratio {statistics.median(found):.3f} of {' '.join(f'{ratio:.3f}' for ratio in sorted(found))}")


if __name__ == "__main__":
    main()
