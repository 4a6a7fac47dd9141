"""Measures every model and writes docs/models.md: `python -m tests.conformance.torch_models.measure [NAME...]`."""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conformance.torch_models.zoo import Model, models

TABLE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
FIGURES = Path(__file__).with_name("figures.json")


def measure(model: Model) -> dict[str, Any]:
    """Traces and plans one model in this process; compares a small one with torch."""
    import numpy as np
    import torch

    import topos_core as tp
    from topos_core.importers import imported
    from topos_core.importers.torch_export.dtypes import array_of
    from topos_core.importers.torch_export.record import record_torch, weights_of_torch
    from topos_core.importers.torch_export.target import Target, build

    target = Target(model.build, "factory")
    positional, named = (model.specs, {}) if isinstance(model.specs, tuple) else ((), model.specs)
    started = time.perf_counter()
    tape = record_torch(target, tuple(positional), dict(named))
    traced = time.perf_counter() - started
    started = time.perf_counter()
    plan = tp.plan(tape, machine="reference")
    planned = time.perf_counter() - started
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
        from topos_core.api import replace
        from topos_core.run.executor import execute, owned  # noqa: F401
        from topos_core.session.inputs import seeded_inputs

        filled = replace(tape, defaults=weights_of_torch(target, tape))
        ranges = [tape.ranges.get(value) for value in tape.inputs]
        inputs = seeded_inputs([tape.type_of(value) for value in tape.inputs], ranges, 0)
        module = build(target, weights=True)
        tensors = [torch.from_numpy(np.array(array)) for array in inputs]
        with torch.no_grad():
            given = {} if not named else dict(zip(named, tensors, strict=True))
            result = module(*([] if named else tensors), **given)
        wanted = [array_of(each) for each in torch.utils._pytree.tree_leaves(dict(result) if named else result) if isinstance(each, torch.Tensor)]
        from topos_core.run.interpreter import interpret

        found = interpret(filled, inputs)
        executed = tp.plan(filled, machine="host").run(*inputs)
        flat = [each for each in torch.utils._pytree.tree_leaves(executed) if isinstance(each, np.ndarray)]
        row["difference"] = max(map(apart, found, wanted), default=0.0)
        row["executed"] = max(map(apart, flat, wanted), default=0.0)
    row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    assert imported is not None
    return row


def apart(found: Any, wanted: Any) -> float:
    """Gives the largest difference, relative to the largest magnitude."""
    import numpy as np

    if found.size == 0 or found.shape != wanted.shape:
        return 0.0 if found.shape == wanted.shape else float("inf")
    scale = max(float(np.abs(wanted.astype(np.float64)).max()), 1e-30)
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()) / scale


def _child(name: str, pipe: Any) -> None:
    model = next(each for each in models() if each.name == name)
    try:
        pipe.send(measure(model))
    except BaseException as error:
        pipe.send({"model": name, "error": f"{type(error).__name__}: {error}"[:300], "trace": traceback.format_exc()[-3000:]})


def main(wanted: list[str]) -> None:
    """Measures each model in a process of its own."""
    context = multiprocessing.get_context("spawn")
    rows = json.loads(FIGURES.read_text()) if wanted and FIGURES.exists() else {}
    for model in models():
        if wanted and not any(each.lower() in model.name.lower() for each in wanted):
            continue
        here, there = context.Pipe()
        process = context.Process(target=_child, args=(model.name, there))
        process.start()
        there.close()
        try:
            row = here.recv()
        except EOFError:
            row = {"model": model.name, "error": "the process ended"}
        process.join()
        rows[model.name] = row
        print(json.dumps(row), flush=True)
    FIGURES.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
