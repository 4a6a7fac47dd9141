"""`topos lsp [--stdio|--tcp PORT]`: serves editors."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Serves one editor until it says `exit`, hangs up or dies; gives the exit code: 0 after `shutdown`, else 1."""
    options, unknown = _parser().parse_known_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="topos lsp: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)
    if unknown:  # editors add arguments of their own, and a server that exits over one is only seen to crash
        logging.warning("arguments left out: %s", " ".join(unknown))
    from topos_lsp import serving

    if options.tcp is not None:
        return serving.tcp(options.tcp, options.clientProcessId)
    return serving.stdio(options.clientProcessId)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="topos lsp", description="Serves editors.", allow_abbrev=False)
    parser.add_argument("--stdio", action="store_true", help="speak over standard input and output (the default)")
    parser.add_argument("--tcp", type=int, metavar="PORT", help="listen on a loopback port instead, for one editor")
    parser.add_argument("--clientProcessId", type=int, metavar="PID", help="end when this process ends")
    return parser


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # a thread that waits on a hung client must not keep us
