"""Measures every model and writes docs/models.md: `python -m tests.conformance.torch_models.measure [NAME...]`."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance.torch_models.zoo import Model, models

TABLE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
BEHIND = "## What is found of every layer"
"""The heading behind the table: what stands there stays, with the figures of `recall` and of `benchmarks.models`."""


def measure(model: Model) -> dict[str, Any]:
    """Traces and plans one model in this process; compares a small one with torch."""
    import numpy as np
    import torch

    import topos_core as tp
    from topos_core.importers.torch_export.dtypes import array_of
    from topos_core.importers.torch_export.record import record_torch, weights_of_torch
    from topos_core.importers.torch_export.target import Target, build
    from topos_core.run.interpreter import interpret
    from topos_core.session.inputs import seeded_inputs

    target = Target(model.build, "factory")
    positional, named = (model.specs, {}) if isinstance(model.specs, tuple) else ((), model.specs)
    started = time.process_time()
    tape = record_torch(target, tuple(positional), dict(named))
    traced = time.process_time() - started
    started = time.process_time()
    plan = tp.plan(tape, machine="reference")
    planned = time.process_time() - started
    verdicts: dict[str, Counter[str]] = {}
    for verdict, decisions in (("taken", plan.taken), ("declined", plan.declined), ("blocked", plan.blocked)):
        for decision in decisions:
            verdicts.setdefault(decision.match.pattern, Counter())[verdict] += 1
    row: dict[str, Any] = {
        "model": model.name,
        "ops": len(tape.ops),
        "parameters": sum(tape.type_of(value).size for value in tape.parameters),
        "opaque": dict(Counter(op.attributes["foreign"] for op in tape.ops if op.name == "opaque")),
        "notes": sorted({op.attributes["note"] for op in tape.ops if op.name == "opaque" and op.attributes["note"]}),
        "patterns": {name: dict(found) for name, found in sorted(verdicts.items())},
        "observations": Counter(each.kind for each in tape.observations if each.kind != "output"),
        "trace_seconds": round(traced, 2),
        "plan_seconds": round(planned, 2),
        "difference": None,
    }
    if model.small and not row["opaque"]:
        filled = dataclasses.replace(tape, defaults=weights_of_torch(target, tape))
        ranges = [tape.ranges.get(value) for value in tape.inputs]
        inputs = seeded_inputs([tape.type_of(value) for value in tape.inputs], ranges, 0)
        module = build(target, weights=True)
        tensors = [torch.from_numpy(np.array(array)) for array in inputs]
        with torch.no_grad():
            given = {} if not named else dict(zip(named, tensors, strict=True))
            result = module(*([] if named else tensors), **given)
        leaves = torch.utils._pytree.tree_leaves(dict(result) if named else result)
        wanted = [array_of(each) for each in leaves if isinstance(each, torch.Tensor)]
        found = interpret(filled, inputs)
        executed = tp.plan(filled, machine="host").run(*inputs)
        flat = [each for each in torch.utils._pytree.tree_leaves(executed) if isinstance(each, np.ndarray)]
        row["difference"] = max(map(apart, found, wanted), default=0.0)
        row["executed"] = max(map(apart, flat, wanted), default=0.0)
    row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return row


def apart(found: Any, wanted: Any) -> float:
    """Gives the largest difference, relative to the largest magnitude."""
    import numpy as np

    if found.size == 0 or found.shape != wanted.shape:
        return 0.0 if found.shape == wanted.shape else float("inf")
    scale = max(float(np.abs(wanted.astype(np.float64)).max()), 1e-30)
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()) / scale


def in_a_child(work: Callable[[Model], dict[str, Any]], model: Model) -> dict[str, Any]:
    """Works on a model in a forked process: torch is imported once, and every model has a memory of its own."""
    importlib.import_module("torch")
    importlib.import_module("transformers")
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        try:
            row = work(model)
        except BaseException as error:
            row = {"model": model.name, "error": f"{type(error).__name__}: {error}"[:300]}
            traceback.print_exc()
        with os.fdopen(writing, "w") as pipe:
            json.dump(row, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(process, 0)
    return json.loads(text) if text else {"model": model.name, "error": "the process ended"}


def main(wanted: list[str]) -> None:
    """Measures the models whose names hold one of the words, all without any; the page's lines of the others stay."""
    warnings.filterwarnings("ignore")
    lines = _lines_of(TABLE.read_text(encoding="utf-8")) if wanted else {}
    for model in reversed(models()):
        if not wanted or any(each.lower() in model.name.lower() for each in wanted):
            row = in_a_child(measure, model)
            print(json.dumps(row), flush=True)
            lines[model.name] = line(row)
            TABLE.write_text(table([lines[each.name] for each in models() if each.name in lines]))


def _lines_of(page: str) -> dict[str, str]:
    """Gives the table's lines of a page by their models."""
    return {
        each.split("|")[1].strip(): each for each in page.partition(BEHIND)[0].splitlines() if each.startswith("| ")
    }


def table(rows: list[str]) -> str:
    """Writes the lines of the models as the page docs/models.md."""
    lines = [
        "# Models of torch", "",
        "What `topos plan` makes of models as people have them: built from code with random weights, in evaluation mode, planned for",
        "`home` on the `reference` machine. Written by `python -m tests.conformance.torch_models.measure`.", "",
        "Seconds are processor time in a process that has imported torch and transformers: tracing (with torch.export), then planning. The",
        "peak is that process's resident memory, of which about 300 MiB are the imports. Weights are never allocated for a plan. The",
        "difference is that of the interpreted tape and of the executed plan to torch's own result, relative to its largest magnitude, with",
        "weights from seed 0. A line is as its model was last measured; names behind the command renew theirs.", "",
        "| model | parameters | ops | opaque | taken | declined | trace + plan s | peak MiB | tape, plan against torch |",
        "|---|---:|---:|---|---|---|---:|---:|---|",
    ]  # fmt: skip
    kept = TABLE.read_text(encoding="utf-8").partition(BEHIND)[2]
    return "\n".join(lines + rows) + f"\n\n{BEHIND}{kept}"


def line(row: dict[str, Any]) -> str:
    """Writes the line of one model."""
    if "error" in row:
        return f"| {row['model']} | | | {row['error']} | | | | | |"
    opaque = ", ".join(f"{name.removeprefix('aten.')} {count}" for name, count in row["opaque"].items()) or "none"
    columns = [
        ", ".join(f"{name} {found[verdict]}" for name, found in row["patterns"].items() if verdict in found)
        for verdict in ("taken", "declined")
    ]
    apart_from = "" if row["difference"] is None else f"{row['difference']:.1e}, {row['executed']:.1e}"
    return (
        f"| {row['model']} | {row['parameters']:,} | {row['ops']:,} | {opaque} | {columns[0]} | {columns[1]} |"
        f" {row['trace_seconds']:.1f} + {row['plan_seconds']:.1f} | {row['peak_mib']:,} | {apart_from} |"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
