"""What can run a case of `topos bench`: topos itself, and torch, XLA, onnxruntime and OpenVINO where they are installed.

Each maker here is called in the contender's own process and gives a `Runner`. What exactly a contender runs is part of its
figures: a framework running the recorded ops one by one is slower than a model that was written for it.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

from topos_core.run.bench.contender import Contender, Runner, case_inputs, case_settings, case_tape

HERE: Final = "topos_core.session.contenders"
PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "home": ("numpy", "numba"),
    "interpreter": ("numpy",),
    "torch": ("torch",),
    "torch.compile": ("torch",),
    "xla": ("jax", "jaxlib"),
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
}
"""Every contender's name and the packages that it needs."""


def contenders(target: str, own: str | None, wanted: Sequence[str]) -> tuple[list[Contender], dict[str, str]]:
    """Lists the contenders for the recorded ops and for the target's own form, and says why others are left out.

    Args:
        target: What is measured, as messages name it.
        own: `torch` or `onnx` where the target is such a model, else None.
        wanted: Names of contenders.
    """
    found = [
        Contender("home", "the plan's kernels, results from topos's pool", f"{HERE}:home"),
        Contender("interpreter", "the recorded ops in NumPy, BLAS on one thread", f"{HERE}:interpreter"),
    ]
    if own == "torch":
        found.append(Contender("torch", "the target's own module", f"{HERE}:torch_own"))
        found.append(
            Contender("torch.compile", "the target's own module, compiled", f"{HERE}:torch_own", {"compiled": True})
        )
    else:
        found.append(Contender("torch", "the recorded ops, one call each", f"{HERE}:torch_ops"))
        found.append(Contender("torch.compile", "the recorded ops, compiled", f"{HERE}:torch_ops", {"compiled": True}))
    found.append(Contender("xla", "the StableHLO that topos emits; weights are arguments", f"{HERE}:xla"))
    if own == "onnx":
        found.append(Contender("onnxruntime", "the target's own file", f"{HERE}:onnxruntime_own"))
        found.append(Contender("openvino", "the target's own file, in f32", f"{HERE}:openvino_own"))
    out: dict[str, str] = {}
    kept = []
    for contender in found:
        missing = [package for package in PACKAGES[contender.name] if importlib.util.find_spec(package) is None]
        if contender.name not in wanted:
            continue
        if missing:
            out[contender.name] = f"{' and '.join(missing)} cannot be imported here"
        else:
            kept.append(contender)
    if own != "onnx":
        for name in ("onnxruntime", "openvino"):
            if name in wanted:
                out[name] = (
                    f"runs .onnx files alone, the target is {target}; bench an .onnx file that it was exported to"
                )
    return kept, out


def versions(name: str) -> str:
    """Names a contender's packages with their versions."""
    words = []
    for package in PACKAGES[name]:
        try:
            words.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            words.append(package)
    return ", ".join(words)


def home(folder: Path, threads: int) -> Runner:
    """Plans a case as its settings ask and runs it with this machine's kernels."""
    from topos_core.api import planner
    from topos_core.plan.request import Request
    from topos_core.run.executor import run
    from topos_core.run.program import make_program

    tape, inputs = case_tape(folder), case_inputs(folder)
    request = dict(case_settings(folder)["request"])
    for name in ("off", "ignore"):
        request[name] = frozenset(request[name])
    request["off_at"] = frozenset((pattern, root) for pattern, root in request["off_at"])
    request["observe"] = tuple(request["observe"])
    plan = planner(tape).plan(Request(**request))
    program = make_program(plan)
    return Runner(lambda: run(plan, inputs, threads=threads, program=program), _leaves)


def interpreter(folder: Path, threads: int) -> Runner:
    """Runs the recorded ops one by one with NumPy."""
    from topos_core.run.interpreter import interpret

    tape, inputs = case_tape(folder), case_inputs(folder)
    return Runner(lambda: interpret(tape, inputs), list)


def torch_ops(folder: Path, threads: int, compiled: bool = False) -> Runner:
    """Runs the recorded ops in torch."""
    import torch

    from topos_core.run.bench.torch_form import array_of, tensor_of, torch_function

    torch.set_num_threads(threads)
    function, held = torch_function(case_tape(folder))
    inputs = [tensor_of(array) for array in case_inputs(folder)]
    call = _compiled(torch, function) if compiled else function
    return Runner(_without_gradients(torch, call, (*inputs, *held)), lambda given: [array_of(each) for each in given])


def torch_own(folder: Path, threads: int, compiled: bool = False) -> Runner:
    """Runs the target's own module of torch, loaded from the user's file, with the weights that topos runs.

    A file that draws the weights of an instance draws other ones every time that it is loaded.
    """
    import torch

    from topos_core.importers.imported import loading
    from topos_core.importers.torch_export.record import held_by
    from topos_core.importers.torch_export.target import build, target_of
    from topos_core.run.bench.torch_form import array_of, tensor_of
    from topos_core.session.loading import load

    torch.set_num_threads(threads)
    entry = case_settings(folder)["entry"]
    with loading(entry["text"]):
        found: Any = load(entry["path"], entry["text"], entry["root"])
    for part in entry["name"].split("."):
        found = getattr(found, part)
    arrays = case_inputs(folder)
    target = target_of(found, told=True, fed=bool(arrays))
    if target is None:
        raise ValueError("the target is no module of torch")
    module, tape = build(target, weights=True), case_tape(folder)
    with torch.no_grad():
        for value, tensor in held_by(module, tape):
            if value in tape.defaults:
                tensor.copy_(tensor_of(tape.defaults[value]))
    call = _compiled(torch, module) if compiled else module
    inputs = [tensor_of(array) for array in arrays]
    return Runner(_without_gradients(torch, call, inputs), lambda given: [array_of(each) for each in _tensors(given)])


def xla(folder: Path, threads: int) -> Runner:
    """Runs the emitted StableHLO on XLA's CPU backend; arguments lie in its own buffers already."""
    import jax

    from topos_core.api import planner
    from topos_core.emission.backend import load_xla
    from topos_core.emission.module import emit_matches
    from topos_core.plan.request import Request

    tape = case_tape(folder)
    plan = planner(tape).plan(Request(consumer="stablehlo", dialect="xla"))
    text = emit_matches(tape, [decision.match for decision in plan.taken], locations=False)
    program, device = load_xla(text)
    with jax.enable_x64(True):
        arrays = (*case_inputs(folder), *(tape.defaults[value] for value in tape.parameters))
        buffers = [jax.device_put(np.asarray(array, order="C"), device) for array in arrays]

    def call() -> list[Any]:
        outputs = program.execute_sharded(buffers).disassemble_into_single_device_arrays()
        return [output[0].block_until_ready() for output in outputs]

    return Runner(call, lambda given: [np.asarray(each) for each in given])


def onnxruntime_own(folder: Path, threads: int) -> Runner:
    """Runs the target's file with onnxruntime; results are fresh arrays."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    path = case_settings(folder)["entry"]["path"]
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    feeds = dict(zip(names, case_inputs(folder), strict=True))
    return Runner(lambda: session.run(None, feeds), list)


def openvino_own(folder: Path, threads: int) -> Runner:
    """Runs the target's file with OpenVINO, in f32 as the file says; its default may choose bf16."""
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }  # fmt: skip
    core = openvino.Core()
    inputs = case_inputs(folder)
    model = core.read_model(case_settings(folder)["entry"]["path"])
    model.reshape({number: list(array.shape) for number, array in enumerate(inputs)})
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return Runner(
        lambda: request.infer(inputs, share_inputs=True, share_outputs=False),
        lambda given: [np.array(given[port]) for port in request.model_outputs],
    )


def _compiled(torch: Any, function: Callable[..., Any]) -> Any:
    """Compiles with frozen weights, as one does for inference."""
    import torch._inductor.config as settings

    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    settings.freezing = True
    return torch.compile(function, dynamic=False)


def _without_gradients(torch: Any, function: Callable[..., Any], arguments: Sequence[Any]) -> Callable[[], Any]:
    torch.set_grad_enabled(False)
    return lambda: function(*arguments)


def _leaves(given: Any) -> list[np.ndarray]:
    if isinstance(given, np.ndarray):
        return [given]
    if isinstance(given, Mapping):
        given = given.values()
    return [] if given is None else [leaf for each in given for leaf in _leaves(each)]


def _tensors(given: Any) -> list[Any]:
    if hasattr(given, "detach"):
        return [given]
    if isinstance(given, Mapping):
        given = given.values()
    return [] if given is None else [leaf for each in given for leaf in _tensors(each)]
