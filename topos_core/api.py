"""The facade: trace, plan, run, emit and describe in a few calls. Delegates downward and decides nothing.

Longer than most files because it is the one place that a person reads to learn the surface.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from topos_core.document.formats.text import render_plan
from topos_core.document.places import relative_path
from topos_core.document.plan_document import plan_document
from topos_core.errors import ConfigurationError, ToposError, TraceError
from topos_core.importers.imported import loading, record, trace, weights_of
from topos_core.importers.model_file import ENTRY, MODEL_FILES, read_model
from topos_core.kernels.kernel import Dialect, Fidelity
from topos_core.kernels.variants import VARIANTS
from topos_core.matching.catalog import patterns
from topos_core.matching.group import Kind, Node, group, kind_of
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.search import search
from topos_core.ops.catalog import definitions
from topos_core.plan.consumers import consumers
from topos_core.plan.decision import Decision
from topos_core.plan.plan import PlanData
from topos_core.plan.planner import Planner
from topos_core.plan.request import ConsumerName, Request
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    import networkx

    from topos_core.run.proof import Proof

__all__ = ["Plan", "load", "plan", "planner", "trace"]

Named = int | str

LARGEST_WEIGHTS: Final = 256 * 2**20


def planner(tape: Tape) -> Planner:
    """Searches a tape once and gives what plans any number of requests over it."""
    known = patterns()
    last = frozenset(name for name, pattern in known.items() if pattern.last)
    return Planner(tape, search(tape, known.values()), consumers(), last)


def plan(
    tape: Tape | Callable[..., Any],
    *,
    consumer: ConsumerName = "home",
    fidelity: Fidelity = "fast",
    observe: Iterable[Named] = (),
    machine: str = "host",
    parameters: Mapping[Named, np.ndarray] | None = None,
    cost: Literal["model", "always"] = "model",
    dialect: Dialect = "portable",
    off: Iterable[str] = (),
) -> Plan:
    """Plans a tape, or a function marked by `tp.model`.

    Args:
        tape: What to plan.
        consumer: Who elects: `home` or `stablehlo`.
        fidelity: `exact` (bit-identical to the recorded ops) or `fast` (inside a measured envelope).
        observe: Names or numbers of values that are read besides the tape's own observations.
        machine: A machine profile: `host`, `reference`, or an accelerator for planning only.
        parameters: Arrays that replace the tape's snapshots, by name or value.
        cost: `model`, or `always` to elect every legal match.
        dialect: For `stablehlo`: `portable`, `xla` or `iree`.
        off: Patterns that are switched off, and kernels (`winograd`).

    Raises:
        ConfigurationError: TP502, parameters that do not fit; TP504, an option, value or name that does not exist.
        TraceError: TP4xx, the function could not be recorded.
    """
    recorded = tape if isinstance(tape, Tape) else trace(tape)
    request = Request(
        consumer=consumer,
        fidelity=fidelity,
        machine=machine,
        cost=cost,
        observe=_values(recorded, observe),
        off=_patterns(off),
        dialect=dialect,
    )
    ready = planner(recorded)
    bound = {name: _snapshot(array) for name, array in (parameters or {}).items()}
    if bound:
        from topos_core.run.interpreter import fitted_parameters

        fitted_parameters(recorded, bound)  # what does not fit is told now, not by the first run
    return Plan(ready.plan(request), ready, bound)


def load(target: str, *specs: Any, **named: Any) -> Tape:
    """Loads `path/model.py:name` and records it, or reads a model file (`model.onnx`, `module.mlir`).

    A program's file is run as a script's module would be: from the folder it stands in; specs may be given where the entry has
    none of its own. A class of torch is built without its weights; up to 256 MiB they are made afterwards, from torch's seed 0,
    so that its plan runs. A model file has inputs of its own; extents that it leaves open are given by name:
    `load("model.onnx", N=4)`.

    Raises:
        ConfigurationError: TP505, no such file or name; TP507, a format that this build does not read; TP209, an open extent.
        TraceError: TP4xx, the entry could not be recorded or the model not read.
    """
    file = target.removesuffix(f":{ENTRY}")
    if file.endswith(MODEL_FILES):
        return _read(file, specs, named)
    path, _, name = target.rpartition(":")
    if not path or not path.endswith(".py"):
        suffix = Path(target).suffix or "no suffix"
        if target.endswith(".py"):
            raise ConfigurationError(f"{target} names no entry; write {target}:NAME", code="TP505")
        raise ConfigurationError(
            f"{target} ({suffix}) cannot be read by this build; load path/model.py:NAME, model.onnx or module.mlir",
            code="TP507",
        )
    found = _attribute(_module(path), name, path)
    tape = record(found, specs, named)
    if sum(tape.type_of(value).bytes for value in tape.parameters) > LARGEST_WEIGHTS:
        return tape
    return replace(tape, defaults=weights_of(found, tape))


def _read(file: str, specs: Sequence[Any], dims: Mapping[str, Any]) -> Tape:
    if specs or any(type(extent) is not int for extent in dims.values()):
        raise ConfigurationError(
            f"{file} has inputs of its own; give the extents that it leaves open as numbers by name: N=4", code="TP505"
        )
    path = os.path.abspath(file)
    return read_model(path, dims=dims, root=os.path.dirname(path))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One request over one tape, decided. Immutable; may be run from several threads.

    Args:
        data: Decisions, schedule, liveness and totals.
        planner: Plans further requests over the same tape and match pool.
        parameters: Arrays bound in place of the tape's snapshots, by name or value; snapshots of their own.
    """

    data: PlanData
    planner: Planner
    parameters: Mapping[Named, np.ndarray]
    _runs: list[Callable[..., Any]] = field(default_factory=list, init=False, repr=False)  # made ready by the first run

    @property
    def tape(self) -> Tape:
        """Gives the spec."""
        return self.data.tape

    @property
    def taken(self) -> tuple[Decision, ...]:
        """Lists what runs in place of recorded ops."""
        return self.data.taken

    @property
    def declined(self) -> tuple[Decision, ...]:
        """Lists what was recognised and is not taken, each with its code and numbers."""
        return self.data.with_verdict("declined")

    @property
    def blocked(self) -> tuple[Decision, ...]:
        """Lists what would be taken if nobody read its inside."""
        return self.data.with_verdict("blocked")

    @property
    def near_misses(self) -> tuple[NearMiss, ...]:
        """Lists where a pattern almost matched."""
        return self.data.near_misses

    @property
    def patterns(self) -> tuple[Match, ...]:
        """Lists the matches that this plan took."""
        return tuple(decision.match for decision in self.data.taken)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Lists the recorded ops that one loop nest could run, by value, where no match was taken; two ops at least."""
        rows = definitions()
        steps = self.data.schedule.steps
        made = {value: number for number, step in enumerate(steps) for value in step.produces}
        kept = set(self.data.schedule.kept)
        nodes = [
            Node(
                kind=Kind.OPAQUE if step.match is not None else kind_of(name, rows[name].kind),
                reads=tuple(made[value] for value in step.reads if value in made),
                external=any(value in kept for value in step.produces),
            )
            for step in steps
            for name in (self.tape.ops[step.value].name,)
        ]
        found = (tuple(steps[number].value for number in each.nodes) for each in group(nodes))
        return tuple(values for values in found if len(values) > 1)

    def what_if(
        self,
        *,
        observe: Iterable[Named] = (),
        ignore: Iterable[Named] = (),
        off: Iterable[str] = (),
        **changes: Any,
    ) -> Plan:
        """Plans again on the same tape and match pool, with changes on top of this plan's request.

        Args:
            observe: Values that are read in addition.
            ignore: Observed names, or rows of the tape's observations, that are left out.
            off: Patterns switched off in addition.
            changes: Other fields of the request: `consumer`, `fidelity`, `machine`, `cost`, `dialect`, `off_at`.

        Raises:
            ConfigurationError: TP504, an option, value, row or name that does not exist.
        """
        now = self.data.request
        known = {"consumer", "fidelity", "machine", "cost", "dialect", "off_at"}
        if changes.keys() - known:
            wrong = sorted(changes.keys() - known)[0]
            raise ConfigurationError(
                f"no option {wrong!r}; use one of observe ignore off {' '.join(sorted(known))}", code="TP504"
            )
        request = replace(
            now,
            observe=tuple(dict.fromkeys((*now.observe, *_values(self.tape, observe)))),
            ignore=now.ignore | _rows(self.tape, ignore),
            off=now.off | _patterns(off),
            **changes,
        )
        return replace(self, data=self.planner.plan(request))

    def run(self, *inputs: Any, observed: bool = False, threads: int | None = None) -> Any:
        """Runs the plan and gives the function's own structure; `observed=True` adds `{name: array}` of observed values.

        Raises:
            ConfigurationError: TP502, inputs that do not fit; TP504, no thread to run on; TP507, an opaque op, or a plan that is not for this host.
        """
        ready = self._runs
        if not ready and (self.data.request.consumer != "home" or self.data.machine.planning_only):
            raise ConfigurationError(
                f"a plan for {self.data.request.consumer} on {self.data.machine.name} cannot run here;"
                " plan with consumer home and machine host or reference",
                code="TP507",
            )
        if threads is not None and threads < 1:
            raise ConfigurationError(f"{threads} threads cannot run anything; give 1 or more", code="TP504")
        if not ready:
            executor = importlib.import_module("topos_core.run.executor")
            ready.append(partial(executor.run, self.data, program=executor.make_program(self.data, self.parameters)))
        return ready[0](inputs, observed=observed, threads=threads)

    def prove(self) -> tuple[Proof, ...]:
        """Proves that every match of this plan is what was recorded: by algebra, by measuring where that cannot say."""
        from topos_core.run.proof import prove

        return prove(self.tape, (decision.match for decision in self.data.decisions))

    def emit_stablehlo(self, *, locations: bool = True, root: str | None = None) -> str:
        """Writes the tape as StableHLO text, with this plan's raises, or those of the same request for `stablehlo`.

        Args:
            locations: Ends every line with the expression that it comes from; no path names a machine's folders.
            root: The project's folder; by default that of the nearest pyproject.toml, else the working directory.

        Raises:
            ConfigurationError: TP507, an opaque op.
        """
        from topos_core.emission.module import emit_matches

        data = self.data
        if data.request.consumer != "stablehlo":
            data = self.planner.plan(replace(data.request, consumer="stablehlo"))
        matches = [decision.match for decision in data.taken]
        folder = root if root is not None else _project(self.tape)
        paths = partial(relative_path, root=folder)
        return emit_matches(data.tape, matches, data.observed, locations=locations, paths=paths)

    def document(
        self, *, target: str | None = None, root: str | None = None, sources: bool = True, curve: bool = True
    ) -> dict[str, Any]:
        """Gives the `topos.plan/1` document, with the other consumers' verdicts.

        Args:
            target: What the program is called; by default `path:function` of its outermost frame.
            root: The project's folder; by default that of the nearest pyproject.toml, else the working directory.
            sources: Whether the traced texts come along.
            curve: Whether the live bytes along the schedule come along.
        """
        root = root if root is not None else _project(self.tape)
        others = [
            self.planner.decide(replace(self.data.request, consumer=name))
            for name in ("home", "stablehlo")
            if name != self.data.request.consumer
        ]
        target = target if target is not None else _target(self.tape, root)
        asked = self.data.request
        plain = replace(asked, observe=(), ignore=frozenset(), off=frozenset(), off_at=frozenset())
        return plan_document(
            self.data, target, others=others, root=root, sources=sources, curve=curve,
            plain=None if plain == asked else partial(self.planner.decide, plain),
        )  # fmt: skip

    def describe(self, *, colour: bool = False) -> str:
        """Tells every verdict in words."""
        return render_plan(self.document(sources=False), colour=colour)

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """Gives the tape as a graph: a node per value, an edge per operand link, regions on the nodes they hold.

        Node data: `op`, `type`, `attributes`, `name`, `scope`, `span` (path, line, column, end_line, end_column),
        `region` (the id of the region that decides it, the taken one first) and `verdict`. Edge data: `operand`, its
        position. The graph's own data has `target`, `consumer` and `regions` by id.
        """
        import networkx

        document = self.document(sources=False)
        graph: networkx.MultiDiGraph[int] = networkx.MultiDiGraph(
            target=document["target"],
            consumer=document["consumer"],
            regions={region["id"]: region for region in document["regions"]},
        )
        ops, frames = document["ops"], document["frames"]
        names = {row["value"]: row["name"] for row in (*document["inputs"], *document["parameters"])}
        holds = _holders(document["regions"])
        for value in range(len(ops["name"])):
            location = ops["location"][value]
            path, *place = frames[document["spans"][location]][:5]
            region = holds.get(value)
            graph.add_node(
                value,
                op=document["names"][ops["name"][value]],
                type=document["types"][ops["type"][value]],
                attributes=ops["attributes"][value],
                name=names.get(value),
                scope=tuple(document["scopes"][document["locations"][location][0]]),
                span=(document["paths"][path], *place),
                region=region["id"] if region is not None else None,
                verdict=region["verdict"] if region is not None else None,
            )
        for value, operands in enumerate(ops["operands"]):
            for position, operand in enumerate(operands):
                graph.add_edge(operand, value, operand=position)
        return graph

    def _repr_html_(self) -> str:
        """Shows the plan in a notebook: the page, or a table where it is not installed or would be too large."""
        from topos_core.document.formats.notebook import LARGEST_PAGE, framed, table

        document = self.document()
        export = _exporter()
        page = export(document) if export is not None else None
        if page is None or len(page) > LARGEST_PAGE:
            return table(document)
        return framed(page)

    def __copy__(self) -> Plan:
        return self

    def __deepcopy__(self, memo: Any) -> Plan:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a plan is not pickled; record and plan in the other process, or fork after planning")

    def __repr__(self) -> str:
        request, counts = self.data.request, (len(self.taken), len(self.declined), len(self.blocked))
        return "<Plan {} {}: {} taken, {} declined, {} blocked>".format(request.consumer, request.fidelity, *counts)


def _exporter() -> Callable[[Mapping[str, Any]], str] | None:
    """Finds what writes a document as a page: a front end says so by its entry point, core imports none."""
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group="topos.exporters", name="html")), None)
    if found is None:
        return None
    try:
        export: Callable[[Mapping[str, Any]], str] = found.load()
    except ImportError:
        return None  # it was named by an installation that has lost it
    return export


def _snapshot(array: np.ndarray) -> np.ndarray:
    """Binds a parameter now: what its owner writes later changes no plan."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def _holders(regions: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Picks one region per value: taken before blocked before declined, the larger before the smaller."""
    order = {"taken": 0, "blocked": 1, "declined": 2}
    holds: dict[int, Mapping[str, Any]] = {}
    shown = [region for region in regions if region["verdict"] in order]
    for region in sorted(shown, key=lambda r: (order[r["verdict"]], -len(r["nodes"]), r["root"])):
        for value in region["nodes"]:
            holds.setdefault(value, region)
    return holds


def _values(tape: Tape, wanted: Iterable[Named]) -> tuple[int, ...]:
    """Turns names and numbers into values."""
    found: list[int] = []
    for each in (wanted,) if isinstance(wanted, (str, int)) else wanted:
        if isinstance(each, int):
            found.append(each)
            continue
        values = [value for value, name in tape.names.items() if name == each]
        if not values:
            known = " ".join(sorted(set(tape.names.values()))) or "none"
            raise ConfigurationError(f"no value is named {each!r}; named are: {known}", code="TP504")
        found += values
    return tuple(found)


def _rows(tape: Tape, wanted: Iterable[Named]) -> frozenset[int]:
    """Turns observed names and row numbers into rows of the tape's observations."""
    found: set[int] = set()
    for each in (wanted,) if isinstance(wanted, (str, int)) else wanted:
        if isinstance(each, int):
            found.add(each)
            continue
        rows = {
            k
            for k, o in enumerate(tape.observations)
            if each in (o.name, tape.names.get(o.value)) and o.kind != "output"
        }
        if not rows:
            known = " ".join(sorted({o.name for o in tape.observations if o.name})) or "none"
            raise ConfigurationError(f"no observation is named {each!r}; named are: {known}", code="TP504")
        found |= rows
    return frozenset(found)


def _patterns(wanted: Iterable[str]) -> frozenset[str]:
    names = frozenset((wanted,) if isinstance(wanted, str) else wanted)
    known = (*patterns(), *VARIANTS)
    unknown = sorted(names - set(known))
    if unknown:
        raise ConfigurationError(f"no pattern {unknown[0]!r}; there are: {' '.join(known)}", code="TP504")
    return names


def _project(tape: Tape) -> str:
    """Finds the folder of the nearest pyproject.toml above the program's first user file."""
    for location in tape.locations:
        for frame in location.frames:
            if frame.kind == "user" and os.path.isabs(frame.span.path):
                for folder in Path(frame.span.path).parents:
                    if (folder / "pyproject.toml").is_file():
                        return str(folder)
                return os.getcwd()
    return os.getcwd()


def _target(tape: Tape, root: str) -> str:
    """Names a program by the outermost user frame of its last op."""
    for op in reversed(tape.ops):
        frames = [frame for frame in tape.locations[op.location].frames if frame.kind == "user"]
        if frames:
            return f"{relative_path(frames[-1].span.path, root)}:{frames[-1].function}"
    return "tape"


def _module(path: str) -> Any:
    file = Path(path).resolve()
    if not file.is_file():
        raise ConfigurationError(f"no file {path}; a target is written path/model.py:NAME", code="TP505")
    name = file.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(file):
            return known
        name = f"{name}_{zlib.crc32(str(file).encode()):08x}"  # another module has the name
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it runs
    folder = str(file.parent)
    sys.path.insert(0, folder)
    try:
        with loading(file.read_text(errors="replace")):
            spec.loader.exec_module(module)
    except ToposError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        code = "TP403" if isinstance(error, SyntaxError) else "TP404" if isinstance(error, ImportError) else "TP402"
        raise TraceError(f"{path} raised {type(error).__name__}: {error}", code=code) from error
    finally:
        sys.path.remove(folder)
    return module


def _attribute(module: Any, name: str, path: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(f"{path} has no {name!r}", code="TP505")
        found = getattr(found, part)
    return found
