"""Latencies of the language server, with ruff and ty beside it where they are installed.

    python -m benchmarks.editor [--edits 100] [--starts 5] [--soak 1000] [--only numpy|torch|others|soak] [--part plans|answers]

Each part of each case takes less than 150 seconds on a quiet machine. Prints milliseconds with the bars that hold on a quiet machine, and the load average before and after.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.editor import others, topos
from benchmarks.editor.models import numpy_case, torch_case
from benchmarks.editor.table import header, resident, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--soak", type=int, default=0, metavar="EDITS")
    parser.add_argument("--only", choices=("numpy", "torch", "others", "soak"), action="append")
    parser.add_argument("--part", choices=topos.PARTS, action="append", help="rows of a case; all of them by default")
    options = parser.parse_args()
    wanted = options.only or ["numpy", "torch", "others", *(["soak"] if options.soak else [])]
    print(f"{options.edits} edits, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    header()
    home = Path(tempfile.mkdtemp(prefix="topos-editor-"))
    client = None
    try:
        if set(wanted) - {"others"}:
            client, folder = topos.start(home, options.starts)
        edited = None
        files = len({"numpy", "torch"} & set(wanted))
        for name, case in (("numpy", numpy_case()), ("torch", torch_case())):
            if name in wanted:
                edited = topos.measure(client, folder, case, options.edits, options.part or topos.PARTS)
        if "soak" in wanted:
            edited = edited if edited and edited.case.bar == 250 else topos.Edited(client, folder, numpy_case())
            topos.soak(client, edited, options.soak or 1000, max(files, 1))
        if client is not None:
            value("topos: the server's resident MiB", f"{resident(client.process.pid):.1f}", "<= 80")
            client.shutdown()
        if "others" in wanted:
            for name in others.SERVERS:
                others.measure(home, name, numpy_case(), options.edits)
    finally:
        if client is not None:
            client.close()
        shutil.rmtree(home, ignore_errors=True)
    print(f"load average afterwards {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
