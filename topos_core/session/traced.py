"""One traced target: its tape, its match pool and planner, and what can be asked of them without recording again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from topos_core import api
from topos_core.document.changes import changes
from topos_core.errors import ConfigurationError, TraceError
from topos_core.importers.imported import record, weights_of
from topos_core.importers.model_file import read_model
from topos_core.matching.catalog import patterns
from topos_core.plan.decision import Decision
from topos_core.plan.named import no_pattern, patterns_named
from topos_core.plan.plan import PlanData
from topos_core.plan.planner import Planner
from topos_core.plan.request import Request
from topos_core.recording.model import entry_of
from topos_core.recording.spec import framework_and_specs, parse_specs
from topos_core.session.entries import Comment
from topos_core.tape.tape import Tape

Report = Callable[[str, int, int], None]


@dataclass(slots=True)
class Traced:
    """A target that was recorded.

    Args:
        target: `path:name`, the path relative to the root.
        path: The file, absolute.
        root: The project's root.
        function: What was recorded; `run` asks its mark for `example=` and `metric=`.
        tape: The recorded program.
        planner: Plans requests over the tape's one match pool.
        comments: The file's `# topos:` comments.
        framework: Who records it, where its mark says so.
    """

    target: str
    path: str
    root: str
    function: Any
    tape: Tape
    planner: Planner
    comments: tuple[Comment, ...]
    framework: str | None = None
    _off: tuple[tuple[int, str, int], ...] = field(init=False)
    _base: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._off = tuple(self._switched_off())

    @property
    def off_lines(self) -> list[int]:
        """Lists the lines whose `# topos: off[PATTERN]` comment switches something off."""
        return sorted({line for line, _, _ in self._off})

    @property
    def off_unknown(self) -> dict[str, str]:
        """Says of each name in a `# topos: off[...]` comment that is no pattern's that it is none."""
        names = {name for comment in self.comments if comment.kind == "off" for name in comment.names}
        return {name: no_pattern(name) for name in sorted(names.difference(patterns()))}

    def document(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Plans under some options and gives the document, with the other consumers' verdicts in it."""
        sources = bool(options.get("sources", True))
        document = self.plan(options).document(target=self.target, root=self.root, sources=sources)
        self._base.setdefault("regions", document["regions"])
        return document

    def changes(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Plans under other options and gives what differs from the target's first document; the curve only where asked for."""
        if not self._base:
            self.document({})
        curve = bool(options.get("liveness"))
        planned = self.plan(options).document(target=self.target, root=self.root, sources=False, curve=curve)
        return changes(self._base, planned)

    def proofs(self, options: Mapping[str, Any], progress: Report) -> list[dict[str, Any]]:
        """Proves every match that the plan under some options decides."""
        from topos_core.document.display import display
        from topos_core.run.proof import prove

        decisions = self.plan(options).data.decisions
        rows = [proof.to_json() for proof in prove(self.tape, (one.match for one in decisions), progress)]
        return [{**row, "reason": display(row["reason"])} for row in rows]

    def emit(self, options: Mapping[str, Any], *, verify: bool, progress: Report) -> dict[str, Any]:
        """Emits the target as StableHLO under some options; gives `text`, and `verification` where asked for.

        Raises:
            ConfigurationError: TP507, it holds a foreign op; TP506, jax is missing for a verification.
        """
        plan = self.plan({**options, "consumer": "stablehlo"})
        text = plan.emit_stablehlo(root=self.root)
        if not verify:
            return {"text": text}
        from topos_core.session.running import verify_text

        return {"text": text, "verification": verify_text(self.with_weights(), plan, text, progress)}

    def phases(self, values: Sequence[int] | None, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Gives what runs at some values, or in the whole program, in its three forms, each group once.

        Raises:
            ConfigurationError: TP505, the tape has no such value.
        """
        from topos_core.document.phases import phases

        wrong = next((value for value in values or () if not 0 <= value < len(self.tape.ops)), None)
        if wrong is not None:
            raise ConfigurationError(f"no value {wrong}; the tape has {len(self.tape.ops)}", code="TP505")
        plan = self.plan(options)
        return phases(plan.data, plan.groups, values, root=self.root)

    def kernels(self, region: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Lists the kernels that run a taken region on this machine.

        Raises:
            ConfigurationError: TP505, the plan takes no such region; TP507, it is not one of home's.
        """
        from topos_core.document.kernels import kernel_listing
        from topos_core.kernels.listing import listing
        from topos_core.run.executor import default_threads

        data = self.plan(options).data
        if data.request.consumer != "home":
            raise ConfigurationError(
                f"{data.request.consumer} runs no kernel of topos; ask for a region of consumer home", code="TP507"
            )
        return kernel_listing(listing(self.tape, _taken(data, region).match, default_threads(), data.request.off))

    def certificate(self, region: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Gives what algebra says of a taken region's match, and measures nothing.

        Raises:
            ConfigurationError: TP505, the plan takes no such region.
        """
        from topos_core.document import phrases
        from topos_core.document.display import display
        from topos_core.matching.certificate import certify

        found = certify(self.tape, _taken(self.plan(options).data, region).match)
        said = phrases.certified(
            found.answer, display(found.reason), found.samples, [display(one) for one in found.assumed]
        )
        return {"answer": found.answer, "text": said}

    def run(self, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
        """Runs the target as the request says; gives the figures of the run."""
        from topos_core.session.running import run_target

        return run_target(self.with_weights(), request, progress)

    def bench(self, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
        """Measures the target against what else can run it; gives `topos.bench/1`."""
        from topos_core.session.benching import bench_target

        return bench_target(self.with_weights(), request, progress)

    def with_weights(self) -> Traced:
        """Gives the target with values for every parameter: a module of torch is traced without its weights.

        Raises:
            ToposError: They cannot be made.
        """
        values = weights_of(self.function, self.tape, framework=self.framework)
        if values is self.tape.defaults:
            return self
        tape = replace(self.tape, defaults=values)
        return replace(self, tape=tape, planner=api.planner(tape))

    def request(self, options: Mapping[str, Any]) -> Request:
        """Reads a request's `options`.

        Raises:
            ConfigurationError: TP504, an option that is none, or an observed name that the tape does not have.
        """
        known = ("consumer", "fidelity", "machine", "cost", "dialect")
        other = ("observe", "ignore", "beside", "off", "off_at", "dims", "sources", "liveness", "prove")
        wrong = next((key for key in options if key not in (*known, *other)), None)
        if wrong is not None:
            raise ConfigurationError(
                f"no option is called {wrong!r}; there are {', '.join((*known, *other))}", code="TP504"
            )
        off_at = frozenset((pattern, root) for pattern, root in options.get("off_at") or ())
        patterns_named(pattern for pattern, _ in off_at)
        settings = {key: options[key] for key in known if options.get(key) is not None}
        return Request(
            **{"machine": "reference", **settings},
            observe=tuple(value for name in options.get("observe") or () for value in self._values(name)),
            ignore=frozenset(options.get("ignore") or ()),
            beside=frozenset(options.get("beside") or ()),
            off=patterns_named(options.get("off") or ()),
            off_at=off_at.union((pattern, root) for _, pattern, root in self._off),
        )

    def plan(self, options: Mapping[str, Any]) -> api.Plan:
        """Plans under some options."""
        return api.Plan(self.planner.plan(self.request(options)), self.planner, {})

    def _values(self, name: int | str) -> list[int]:
        """Finds the values of a name, of a number, or of `%number`."""
        if isinstance(name, int):
            return [name]
        found = [value for value, each in self.tape.names.items() if each == name]
        if not found:
            named = sorted(set(self.tape.names.values()))
            raise ConfigurationError(
                f"no value is called {name!r}; there are {', '.join(named) or 'no names'}, and numbers such as 12",
                code="TP504",
            )
        return found

    def _switched_off(self) -> Iterable[tuple[int, str, int]]:
        """Finds the matches that `# topos: off[PATTERN]` comments name: recorded on the comment's line, or called from it."""
        wanted = [comment for comment in self.comments if comment.kind == "off"]
        if not wanted:
            return
        for match in self.planner.pool.matches:
            frames = self.tape.location_of(match.root).frames
            for comment in wanted:
                if (
                    match.pattern in comment.names
                    and not match.nearer
                    and any(
                        frame.span.path == self.path and frame.span.line <= comment.line <= frame.span.end_line
                        for frame in frames
                    )
                ):
                    yield comment.line, match.pattern, match.root


def _taken(plan: PlanData, region: str) -> Decision:
    found = next((one for one in plan.taken if f"{one.match.pattern}@{one.match.root}" == region), None)
    if found is None:
        raise ConfigurationError(f"the plan takes no region {region}", code="TP505")
    return found


def trace_entry(
    found: Any,
    specs: str | None,
    target: str,
    path: str,
    text: str,
    root: str,
    comments: tuple[Comment, ...],
    dims: Mapping[str, int],
) -> Traced:
    """Records one entry, with the specs given or those of its own mark, and searches its tape.

    Raises:
        TraceError: TP408, it has no input specs; TP401, TP402 as in `record`.
        ConfigurationError: TP502, TP503, TP504, the specs cannot be read or do not fit.
        BaseException: Whatever its code raises.
    """
    sources = {path: text}
    framework, inputs = (None, None) if specs is None else framework_and_specs(specs)
    if inputs is not None and (inputs.strip() or entry_of(found) is None):
        positional, named = parse_specs(inputs, dims)
        tape = record(found, positional, named, sources=sources, dims=dims, framework=framework)
    elif entry_of(found) is not None:
        tape = record(found, sources=sources, dims=dims, framework=framework)
    else:
        raise TraceError(
            f"{target} has no input specs; write `# topos: entry inputs=f32[...]` above it, or `@tp.model(...)`",
            code="TP408",
        )
    return Traced(target, path, root, found, tape, api.planner(tape), comments, framework)


def traced_model(target: str, path: str, root: str, dims: Mapping[str, int]) -> Traced:
    """Reads a model file and searches its tape.

    Raises:
        TraceError: TP402, TP409, TP209, as in `read_model`.
        ConfigurationError: TP505, it cannot be read.
    """
    tape = read_model(path, dims=dims, root=root)
    return Traced(target, path, root, None, tape, api.planner(tape), ())
