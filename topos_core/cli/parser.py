"""The parser of every command: one line for what is wrong."""

from __future__ import annotations

import argparse
from typing import NoReturn

from topos_core.cli.main import USAGE


class Parser(argparse.ArgumentParser):
    """A parser whose errors say both values and the remedy, and exit with 2."""

    def error(self, message: str) -> NoReturn:
        """Writes the error and the way to help."""
        self.exit(USAGE, f"{self.prog}: {message}; see `{self.prog} --help`\n")
