"""Measures every kernel of home against float64 and writes `topos_core/kernels/envelope_table.py`.

Each vector width runs in a process of its own, all at once; the table holds the largest error of all of them, doubled. Measured are
every kind of probe of the patterns' examples and of the longer programs, as they are, and `DRAWS` of the probes that
the law of every kernel draws (`topos_core/kernels/drawn.py`; seeded, and those at which it once failed), whose errors are
divided by their condition (`topos_core/kernels/conditioning.py`): among drawn programs are sums that cancel.
`python -m benchmarks.measure_envelopes [PATTERN...]` takes about an hour and needs a machine with AVX-512; with patterns,
the other rows stay, which must have been measured with the same versions.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.longer_programs import programs
from topos_core.kernels.conditioning import conditioned
from topos_core.kernels.convolution.choice import WINOGRAD
from topos_core.kernels.drawn import TILES, drawn, form, found
from topos_core.kernels.envelope_table import PROBE, RELATIVE
from topos_core.kernels.home.manifest import CONVOLUTIONS, patterns
from topos_core.kernels.probes import KINDS, Measured, Probe, Program, measure, probes
from topos_core.matching.catalog import patterns as patterns_of
from topos_core.matching.search import search
from topos_core.recording.trace import trace

WIDTHS: Final[Mapping[str, Mapping[str, str]]] = {
    "512": {},
    "256": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,-avx512f"},
    "128": {"NUMBA_CPU_NAME": "generic"},
}
DTYPES: Final = ("f32", "f64", "f16", "bf16")
TABLE: Final = Path(__file__).parents[1] / "topos_core" / "kernels" / "envelope_table.py"
MARGIN: Final = 2.0
DRAWS: Final = 400
"""Drawn probes of a pattern and a vector width, of all dtypes together."""


def measured(chosen: Collection[str]) -> dict[str, dict[str, float]]:
    """Measures this process' vector width: the largest relative error by pattern and dtype."""
    longer = programs()
    result: dict[str, dict[str, float]] = {}
    for pattern in sorted(chosen):
        row: dict[str, float] = {}
        for dtype in DTYPES:
            for probe in _probes(pattern, dtype, longer.get(WINOGRAD if pattern in TILES else pattern, ())):
                error = _told(pattern, dtype, probe).relative
                row[dtype] = max(row.get(dtype, 0.0), error)
        fixed = dict(row)
        for dtype, probe in _drawn(pattern, [dtype for dtype in DTYPES if dtype in row]):
            row[dtype] = max(row[dtype], conditioned(probe, _told(pattern, dtype, probe), row[dtype]))
        for dtype, error in row.items():
            print(f"{pattern:24} {dtype:5} {fixed[dtype]:.2g}, with drawn {error:.2g}", file=sys.stderr, flush=True)
        result[pattern] = row
    return result


def _told(pattern: str, dtype: str, probe: Probe) -> Measured:
    """Measures a probe and prints what should not be."""
    found = measure(probe)
    if not found.specials:
        print(f"{pattern} {dtype} {probe.kind} {probe.match.id}: NaN or infinity in another place", file=sys.stderr)
    if found.relative > 1e-3 and dtype in ("f32", "f64"):
        print(f"{pattern} {dtype} {probe.kind} {probe.match.id}: {found.relative:.2g}", file=sys.stderr)
    return found


def _drawn(pattern: str, dtypes: Sequence[str]) -> Iterator[tuple[str, Probe]]:
    """Draws probes with a seed that is the pattern's name, and gives those at which the law once failed."""
    for dtype in dtypes:
        yield from ((dtype, probe) for probe in found(pattern, dtype))
    choose = random.Random(pattern).choice
    for _ in range(DRAWS):
        each = drawn(pattern, dtypes, choose)
        if each is not None:
            yield each.dtype, each.probe


def _probes(pattern: str, dtype: str, longer: tuple[Program, ...]) -> Iterator[Probe]:
    """Gives a pattern's probes; one of Winograd's forms has programs of its own alone, in f32."""
    if pattern not in TILES:
        yield from probes(pattern, dtype, longer)
        return
    for function, specs in longer if dtype == "f32" else ():
        tape = trace(function, **specs)
        known = [match for match in search(tape, patterns_of().values()).matches if match.pattern in CONVOLUTIONS]
        whole = max(known, key=lambda match: len(match.interior))
        if form(Probe(tape, whole, KINDS[0])) is TILES[pattern]:
            yield from (Probe(tape, whole, kind) for kind in KINDS)


def main() -> None:
    """Measures all widths and writes the table."""
    words = [word for word in sys.argv[1:] if word != "--here"]
    unknown = set(words) - patterns() - TILES.keys()
    if unknown:
        sys.exit(f"home has no kernel for {', '.join(sorted(unknown))}")
    if "--here" in sys.argv:
        print(json.dumps(measured(words or patterns() | TILES.keys())))
        return
    if words and _versions() != PROBE:
        sys.exit(f"the table was measured with {PROBE}, this would be {_versions()}: measure all patterns")
    largest: dict[str, dict[str, float]] = {}
    command = [sys.executable, "-m", "benchmarks.measure_envelopes", "--here", *words]
    running = {
        width: subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
        for width, environment in WIDTHS.items()
    }
    for width, process in running.items():
        printed, _ = process.communicate()
        if process.returncode:
            sys.exit(f"{width}-bit vectors: the measurement ended with status {process.returncode}")
        for pattern, errors in json.loads(printed).items():
            row = largest.setdefault(pattern, {})
            for dtype, error in errors.items():
                row[dtype] = max(row.get(dtype, 0.0), error)
    rows = {pattern: {d: _rounded_up(MARGIN * e) for d, e in errors.items()} for pattern, errors in largest.items()}
    if words:
        rows = {pattern: {d: f"{e:.1e}" for d, e in errors.items()} for pattern, errors in RELATIVE.items()} | rows
    lines = [
        '"""Measured errors of home\'s kernels against float64; written by `benchmarks/measure_envelopes.py`."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        f'PROBE: Final = "{_versions()}"',
        '"""What the errors were measured with: the largest of the probe set, over all vector widths, doubled."""',
        "",
        f"DRAWN: Final = {DRAWS}",
        '"""Drawn probes of every pattern and vector width that are among them, beside the fixed ones."""',
        "",
        "RELATIVE: Final = {",
    ]
    for pattern, errors in sorted(rows.items()):
        row = ", ".join(f'"{dtype}": {error}' for dtype, error in errors.items())
        lines.append(f'    "{pattern}": {{{row}}},')
    told = '"""By pattern and dtype: max |got - f64| / max |f64|; of drawn probes, divided by their condition."""'
    TABLE.write_text("\n".join([*lines, "}", told, ""]))


def _versions() -> str:
    names = ", ".join(f"{name} {version(name)}" for name in ("numpy", "llvmlite"))
    return f"probe set 3; {names}; 128, 256 and 512-bit vectors"


def _rounded_up(value: float) -> str:
    if value == 0.0:
        return "0.0"
    digits = float(f"{value:.1e}")
    return f"{digits if digits >= value else digits + 10 ** (np.floor(np.log10(value)) - 1):.1e}"


if __name__ == "__main__":
    main()
