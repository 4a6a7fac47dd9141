"""Runs StableHLO text: the official parser and verifier, XLA on the CPU, and the official reference interpreter.

Needs jaxlib (and jax for XLA); both are imported where they are used, never by core.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from topos_core.emission.frames import pack, unpack
from topos_core.errors import ConfigurationError

REMEDY: Final = "pip install 'topos-inspector[jax]'"


class BackendFailure(Exception):
    """A backend refused the text or could not run it; the message says why."""


class NotOffered(BackendFailure):
    """A backend has not what the text needs, is too slow for it, or is not installed: nothing is said about the text."""


def parse(text: str) -> Any:
    """Parses and verifies a module; gives jaxlib's `ir.Module`.

    Raises:
        BackendFailure: The parser or the verifier refuses the text.
        ConfigurationError: jaxlib is missing (TP506).
    """
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import stablehlo
    except ImportError as problem:
        raise _missing("the official StableHLO parser", "jaxlib") from problem
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    with context, ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            module.operation.verify()
        except ir.MLIRError as problem:
            raise BackendFailure(_first_line(str(problem))) from problem
    return module


def run_xla(text: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Compiles with XLA for the CPU and runs once, in this process.

    Raises:
        BackendFailure: XLA refuses the text or cannot run it.
        ConfigurationError: jax is missing (TP506).
    """
    return compile_xla(text)(inputs)


def load_xla(text: str) -> tuple[Any, Any]:
    """Compiles with XLA for the CPU; gives jaxlib's loaded program and the device. Raises like `run_xla`."""
    module = parse(text)
    try:
        import jax
        from jaxlib import _jax
    except ImportError as problem:
        raise _missing("XLA", "jax") from problem
    device = jax.devices("cpu")[0]
    try:
        with module.context:
            program = device.client.compile_and_load(module, _jax.DeviceList((device,)), _jax.CompileOptions())
    except _jax.XlaRuntimeError as problem:
        raise BackendFailure(_first_line(str(problem))) from problem
    return program, device


def compile_xla(text: str) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Compiles with XLA for the CPU; gives what runs it. Raises like `run_xla`, and so does what it gives."""
    program, device = load_xla(text)
    import jax
    from jaxlib import _jax

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            with jax.enable_x64(True):  # device_put narrows f64 and i64 otherwise
                buffers = [jax.device_put(np.asarray(x, order="C"), device) for x in inputs]
            outputs = program.execute_sharded(buffers).disassemble_into_single_device_arrays()
            return [np.asarray(output[0]) for output in outputs]
        except _jax.XlaRuntimeError as problem:
            raise BackendFailure(_first_line(str(problem))) from problem

    return run


def run_reference(text: str, inputs: Sequence[np.ndarray], seconds: float = 120.0) -> list[np.ndarray]:
    """Runs the reference interpreter in a process of its own: it aborts on ops that it does not know.

    Raises:
        BackendFailure: It refuses the text or aborts; `NotOffered`, it lacks an op or takes longer than `seconds`.
        ConfigurationError: jaxlib is missing (TP506).
    """
    parse(text)
    lacking = sorted(set(_NOT_IN_REFERENCE.findall(text)))
    if lacking:
        raise NotOffered(f"it has no {', no '.join(lacking)}")
    home = str(Path(__file__).parents[2])  # the child runs this very topos_core, wherever it was started
    code = "import sys; sys.path.insert(0, sys.argv[1]); from topos_core.emission.reference_child import main; main()"
    command = [sys.executable, "-c", code, home]
    try:
        done = subprocess.run(
            command, input=pack({"text": text}, inputs), capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as problem:
        raise NotOffered(f"it takes longer than {seconds:.3g} s") from problem
    if done.returncode != 0:
        raise BackendFailure(_why(done.stderr.decode("utf-8", "replace"), done.returncode))
    return unpack(done.stdout)[1]


def run_iree(text: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Compiles with IREE for the host's CPU and runs once; not one of `BACKENDS`, since its packages are large.

    Raises:
        BackendFailure: IREE refuses the text or cannot run it.
        ConfigurationError: IREE is missing (TP506).
    """
    try:
        import iree.compiler
        import iree.runtime
    except ImportError as problem:
        message = (
            "IREE needs iree-base-compiler and iree-base-runtime; pip install iree-base-compiler iree-base-runtime"
        )
        raise ConfigurationError(message, code="TP506") from problem
    options = [
        "--iree-llvmcpu-target-cpu=host",
        "--iree-input-demote-f64-to-f32=false",
        "--iree-input-demote-i64-to-i32=false",
    ]
    try:
        code = iree.compiler.compile_str(text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=options)
        context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
        results = context.modules["topos"]["main"](*inputs)
    except (iree.compiler.CompilerToolError, RuntimeError, ValueError) as problem:
        raise BackendFailure(_first_line(str(problem))) from problem
    return [np.asarray(result) for result in (results if isinstance(results, (list, tuple)) else [results])]


_NOT_IN_REFERENCE: Final = re.compile(r"stablehlo\.(batch_norm_\w+|cholesky|custom_call|rng_bit_generator)\b")
"""Operations on which the reference interpreter aborts."""

BACKENDS: Final[Mapping[str, Callable[[str, Sequence[np.ndarray]], list[np.ndarray]]]] = MappingProxyType(
    {"xla": run_xla, "reference": run_reference}
)


def _missing(what: str, package: str) -> ConfigurationError:
    return ConfigurationError(f"{what} needs {package}, which is not installed; {REMEDY}", code="TP506")


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line), lines[0] if lines else "no message")


def _why(stderr: str, returncode: int) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = next((line for line in lines if "LLVM ERROR" in line or "error:" in line), lines[-1] if lines else "")
    ended = f"ended by signal {-returncode}" if returncode < 0 else f"ended with status {returncode}"
    return f"{ended}: {told}" if told else ended
