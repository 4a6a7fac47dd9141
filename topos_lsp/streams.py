"""Keeps the protocol's two streams for the protocol alone: whoever prints or reads after this reaches others."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Moves standard input and output to private descriptors and gives them.

    Descriptor 0 then reads nothing and descriptor 1 writes to standard error, in this process and in every child: a stray
    `print` of a library cannot break the protocol, and nobody else can take its bytes.
    """
    sys.stdout.flush()
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return reader, writer
