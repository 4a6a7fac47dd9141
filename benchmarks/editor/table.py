"""What is printed, and how processes are looked at."""

import os
import statistics
import time

WIDTH = 58


def header():
    print(f"{'milliseconds':<{WIDTH}} {'median':>9} {'p95':>9} {'longest':>9}  bar", flush=True)


def row(name, figures, bar=""):
    """Prints a line of the table."""
    ordered = sorted(figures)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    print(f"{name:<{WIDTH}} {statistics.median(ordered):>9.1f} {high:>9.1f} {ordered[-1]:>9.1f}  {bar}", flush=True)


def value(name, figure, bar=""):
    """Prints a line with one figure."""
    print(f"{name:<{WIDTH}} {figure:>9} {'':>9} {'':>9}  {bar}", flush=True)


def milliseconds(begun):
    return (time.perf_counter() - begun) * 1000


def asked(client, method, params):
    """Gives the milliseconds of one request."""
    begun = time.perf_counter()
    client.request(method, params)
    return milliseconds(begun)


def resident(process):
    """Gives the resident MiB of a process."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def state(process):
    """Gives the state letter and the processor ticks of a process; None where it is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[11]) + int(fields[12])


def below(process):
    """Lists the processes below one."""
    found = [process]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    found += map(int, file.read().split())
        except OSError:
            continue
    return found[1:]


class Published:
    """Waits for the first diagnostics of a buffer, of a version, that pass a test."""

    def __init__(self, client, uri, version, passes):
        self.client, self.uri, self.version, self.passes = client, uri, version, passes
        self.seen = len(client.notifications)

    def wait(self, seconds=60):
        """Gives the time at which they came."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            while self.seen < len(self.client.notifications):
                method, params = self.client.notifications[self.seen]
                self.seen += 1
                if (
                    method == "textDocument/publishDiagnostics" and params["uri"] == self.uri
                    and params.get("version", self.version) == self.version and self.passes(params["diagnostics"])
                ):  # fmt: skip
                    return self.client.arrivals[self.seen - 1]
            time.sleep(0.0005)
        raise TimeoutError("the server did not answer in time")
