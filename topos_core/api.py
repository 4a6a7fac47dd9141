"""The facade: trace, plan, run, emit and describe in a few calls. Delegates downward and decides nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from topos_core.document.formats.text import render_plan
from topos_core.document.places import relative_path
from topos_core.document.plan_document import plan_document
from topos_core.document.project import project_of, target_of
from topos_core.errors import ConfigurationError
from topos_core.importers.imported import trace
from topos_core.importers.target import load
from topos_core.kernels.kernel import Dialect, Fidelity
from topos_core.matching.catalog import patterns
from topos_core.matching.group import Kind, Node, group, kind_of
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.search import search
from topos_core.ops.catalog import definitions
from topos_core.plan.consumers import consumers
from topos_core.plan.decision import Decision
from topos_core.plan.named import Named, patterns_named, rows_named, values_named
from topos_core.plan.plan import PlanData
from topos_core.plan.planner import Planner
from topos_core.plan.request import ConsumerName, Request
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    import networkx

    from topos_core.run.proof import Proof

__all__ = ["Plan", "load", "plan", "planner", "trace"]


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
        observe=values_named(recorded, observe),
        off=patterns_named(off),
        dialect=dialect,
    )
    ready = planner(recorded)
    bound = {name: _snapshot(array) for name, array in (parameters or {}).items()}
    if bound:
        from topos_core.run.interpreter import fitted_parameters

        fitted_parameters(recorded, bound)  # what does not fit is told now, not by the first run
    return Plan(ready.plan(request), ready, bound)


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
        beside: Iterable[Named] = (),
        off: Iterable[str] = (),
        **changes: Any,
    ) -> Plan:
        """Plans again on the same tape and match pool, with changes on top of this plan's request.

        Args:
            observe: Values that are read in addition.
            ignore: Observed names, or rows of the tape's observations, that are left out.
            beside: Observed names, or rows, that block nothing: what they read is recomputed beside the regions that hide it.
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
                f"no option {wrong!r}; use one of observe ignore beside off {' '.join(sorted(known))}", code="TP504"
            )
        request = replace(
            now,
            observe=tuple(dict.fromkeys((*now.observe, *values_named(self.tape, observe)))),
            ignore=now.ignore | rows_named(self.tape, ignore),
            beside=now.beside | rows_named(self.tape, beside),
            off=now.off | patterns_named(off),
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
        folder = root if root is not None else project_of(self.tape)
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
        root = root if root is not None else project_of(self.tape)
        others = [
            self.planner.decide(replace(self.data.request, consumer=name))
            for name in ("home", "stablehlo")
            if name != self.data.request.consumer
        ]
        target = target if target is not None else target_of(self.tape, root)
        asked = self.data.request
        plain = replace(asked, observe=(), ignore=frozenset(), beside=frozenset(), off=frozenset(), off_at=frozenset())
        return plan_document(
            self.data, target, others=others, root=root, sources=sources, curve=curve,
            plain=None if plain == asked else partial(self.planner.decide, plain), unobserved=self._unobserved(),
        )  # fmt: skip

    def _unobserved(self) -> PlanData | None:
        """Plans without the observations that block; None where nothing blocks, or only what is returned does."""
        asked, own = self.data.request, len(self.tape.observations)
        rows = {row for decision in self.data.with_verdict("blocked") for row in decision.observations}
        ignored = frozenset(row for row in rows if row < own and self.tape.observations[row].kind != "output")
        values = {self.data.observations[row].value for row in rows if row >= own}
        if not ignored and not values:
            return None
        left = tuple(value for value in asked.observe if value not in values)
        return self.planner.plan(replace(asked, ignore=asked.ignore | ignored, observe=left))

    def describe(self, *, colour: bool = False) -> str:
        """Tells every verdict in words."""
        return render_plan(self.document(sources=False), colour=colour)

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """Gives the tape as a graph, as `topos_core.document.formats.graph` writes it: a node per value, an edge per operand link."""
        from topos_core.document.formats.graph import graph

        return graph(self.document(sources=False))

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
