"""Runs `python -m topos_core.cli` as `topos`."""

import sys

from topos_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
