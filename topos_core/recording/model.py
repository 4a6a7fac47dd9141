"""Marking a function as an entry: `@tp.model(image=tp.f32[1, 3, 224, 224])` keeps it callable as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from topos_core.errors import ConfigurationError
from topos_core.recording.spec import NO_NUMBER, InputSpec, as_spec, known_framework

T = TypeVar("T")
ATTRIBUTE: Final = "__topos_entry__"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """What `tp.model` says about a function or class.

    Args:
        target: The marked object; a class is built without arguments before it is traced.
        positional, specs: Input specs by position and by argument name. A value that is no spec is passed through.
        example: `example(seed)` gives real inputs: a mapping by name, or a sequence in the function's order.
        metric: `metric(outputs)` gives a figure of merit of one run.
        framework: Who records it, numpy, jax or torch; None where its own code tells.
    """

    target: Any
    positional: tuple[Any, ...]
    specs: Mapping[str, Any]
    example: Callable[..., Any] | None = None
    metric: Callable[..., Any] | None = None
    framework: str | None = None

    @property
    def name(self) -> str:
        """Gives the marked object's name."""
        return str(getattr(self.target, "__name__", type(self.target).__name__))


def model(
    *positional: Any,
    example: Callable[..., Any] | None = None,
    metric: Callable[..., Any] | None = None,
    framework: str | None = None,
    **specs: Any,
) -> Callable[[T], T]:
    """Marks a function, class or instance as an entry with these inputs, and gives it back unchanged.

    Args:
        positional, specs: Its input specs, by position and by argument name.
        example, metric: As in `ModelEntry`.
        framework: `numpy`, `jax` or `torch`, for a function that more than one of them could record.

    Raises:
        ConfigurationError: TP502: a spec that cannot be read; TP503: an unknown dtype; TP504: an unknown framework.
    """
    if len(positional) == 1 and not specs and callable(positional[0]) and not isinstance(positional[0], InputSpec):
        raise ConfigurationError(
            f"@tp.model marks {getattr(positional[0], '__name__', 'an object')} without input specs; write @tp.model(x=tp.f32[1, 3])",
            code="TP502",
        )
    read = tuple(_read(spec) for spec in positional)
    named = {name: _read(spec) for name, spec in specs.items()}
    chosen = None if framework is None else known_framework(framework)

    def mark(target: T) -> T:
        setattr(target, ATTRIBUTE, ModelEntry(target, read, named, example, metric, chosen))
        return target

    return mark


def _read(spec: Any) -> Any:
    """Reads a spec now, so that a slip is told where it is written; `f32[N,3]` waits for the trace, which knows N."""
    try:
        return as_spec(spec) or spec
    except ConfigurationError as error:
        if error.code == NO_NUMBER:
            return spec
        raise


def entry_of(target: Any) -> ModelEntry | None:
    """Gives what `tp.model` said about an object; an instance answers for its class."""
    entry = getattr(target, ATTRIBUTE, None)
    return entry if isinstance(entry, ModelEntry) else None
