"""What the editor's user set: initialisation options first, then the `topos` section whenever it is pulled or pushed.

A value that cannot be used falls back to what it was, and is told. Nothing here names an executable except `interpreter`, which
is read from the initialisation options alone: editors fill those from the user's own settings.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from topos_core.document.codes import CODES
from topos_core.session.configuration import CODE_FORM, CONSUMERS, COSTS, DIALECTS, FIDELITIES

VERDICTS: Final = ("taken", "declined", "blocked", "near_miss")
TRIGGERS: Final = ("change", "save", "manual")


@dataclass(frozen=True, slots=True)
class Settings:
    """The editor's settings.

    Args:
        trace: When a file is traced: after each change, on save, or only when asked.
        debounce: Seconds without a change before a trace starts.
        consumer: Whose verdicts are shown; this and the next four are the project's where None.
        fidelity: exact or fast.
        machine: The profile that times are predicted for.
        cost: model or always.
        dialect: The StableHLO dialect.
        diagnostics: Codes that are shown as diagnostics, `TP2xx` for a family.
        hints: Verdicts that get an inlay hint; what is taken needs none unless it is asked for.
        hidden: Patterns whose regions get neither hint nor diagnostic.
        least_microseconds: A predicted gain or loss below this gets neither; regions without such a number keep theirs.
        lenses: Whether entries get a code lens.
        pull: Whether diagnostics are pulled by the editor instead of pushed to it.
        hover_ops: Whether a hover tells of ops that are in no region.
    """

    trace: str = "change"
    debounce: float = 0.15
    consumer: str | None = None
    fidelity: str | None = None
    machine: str | None = None
    cost: str | None = None
    dialect: str | None = None
    diagnostics: tuple[str, ...] = tuple(code for code, entry in CODES.items() if entry.shown)
    hints: frozenset[str] = frozenset(VERDICTS) - {"taken"}
    hidden: frozenset[str] = frozenset()
    least_microseconds: float = 0.0
    lenses: bool = True
    pull: bool = False
    hover_ops: bool = True

    def shows(self, code: str) -> bool:
        """Says whether findings of a code become diagnostics."""
        return any(
            code == each or (each.endswith("x") and code.startswith(each.rstrip("x"))) for each in self.diagnostics
        )

    def marks(self, region: Mapping[str, Any]) -> bool:
        """Says whether a region is marked in the text at all."""
        figure = region["cost"].get("price") or region["cost"].get("benefit") or {"value": None}
        known = figure["value"]
        return region["pattern"] not in self.hidden and (known is None or abs(known) * 1e6 >= self.least_microseconds)

    def options(self) -> dict[str, str]:
        """Gives what the editor asks of a plan; what it leaves out is the project's to say."""
        asked = {name: getattr(self, name) for name in ("consumer", "fidelity", "machine", "cost", "dialect")}
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Initial:
    """What only the initialisation options can say.

    Args:
        untrusted: True where the editor says that the workspace is not trusted, False where it vouches for it, None where it
            knows no trust: the user's list of trusted folders then decides.
        trust_command: The editor's own command that opens its trust dialog.
        copy_command: The editor's own command that copies an entry's StableHLO; it is given the buffer's URI and the entry's name.
        interpreter: The Python that runs user code.
        framed: Whether the editor shows the plan's page in a panel of its own, which VS Code's extension does.
    """

    untrusted: bool | None = None
    trust_command: str | None = None
    copy_command: str | None = None
    interpreter: str | None = None
    framed: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Settings as far as they could be read, and what could not."""

    settings: Settings
    problems: tuple[str, ...] = field(default=())


def read_initial(options: Any) -> tuple[Initial, Read]:
    """Reads the initialisation options; `settings` in them, or they themselves, hold the `topos` section."""
    table = plain(options) if options is not None else {}
    problems: list[str] = []
    if not isinstance(table, dict):
        problems.append(f"initializationOptions are {table!r}, expected a table; the defaults stay")
        table = {}
    values: dict[str, Any] = {}
    for key, name, kind in (
        ("untrustedWorkspace", "untrusted", bool),
        ("trustCommand", "trust_command", str),
        ("copyCommand", "copy_command", str),
        ("interpreter", "interpreter", str),
        ("framedViewer", "framed", bool),
    ):
        value = table.get(key)
        if isinstance(value, kind):
            values[name] = value or None if kind is str else value
        elif value is not None:
            problems.append(f"{key} is {value!r}, expected {'true or false' if kind is bool else 'a text'}")
    section = table.get("settings", {key: value for key, value in table.items() if key not in _INITIAL})
    read = read_settings(section, Settings())
    return Initial(**values), Read(read.settings, (*problems, *read.problems))


def read_settings(section: Any, before: Settings) -> Read:
    """Reads the `topos` section over the settings so far."""
    if section is None:
        return Read(before)
    if not isinstance(section, Mapping):
        return Read(before, (f"the topos section is {section!r}, expected a table",))
    problems: list[str] = []
    values: dict[str, Any] = {}
    for key, value in section.items():
        if key in _INITIAL or value is None:
            continue
        if key not in _READERS:
            near = difflib.get_close_matches(key, _READERS, 1)
            problems.append(f"topos has no setting {key!r}" + (f"; did you mean {near[0]!r}" if near else ""))
            continue
        name, read = _READERS[key]
        try:
            values[name] = read(value)
        except ValueError as error:
            stays = _shown(getattr(before, name) * 1000 if name == "debounce" else getattr(before, name))
            problems.append(f"topos.{key} is {value!r}, expected {error}; {stays} stays")
    return Read(replace(before, **values), tuple(problems))


def plain(value: Any) -> Any:
    """Turns the objects that pygls makes of unknown JSON into plain tables."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def _shown(value: Any) -> str:
    """Writes a setting's value as the editor's configuration would."""
    match value:
        case None:
            return "the project's own"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case frozenset() | tuple():
            return ", ".join(sorted(value)) or "none"
    return str(value)


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(value)

    return read


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _milliseconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 60_000:
        raise ValueError("milliseconds from 0 to 60000")
    return value / 1000


def _microseconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise ValueError("microseconds from 0 to 1e9")
    return float(value)


def _patterns(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError("a list of patterns such as convolution")
    return frozenset(value)


def _codes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and CODE_FORM.match(each) for each in value):
        raise ValueError("a list of codes such as TP101 or TP2xx")
    return tuple(value)


def _verdicts(value: Any) -> frozenset[str]:
    if isinstance(value, bool):
        return frozenset(VERDICTS) if value else frozenset()
    if not isinstance(value, list) or not all(each in VERDICTS for each in value):
        raise ValueError(f"a list of {', '.join(VERDICTS)}, or true or false")
    return frozenset(value)


_INITIAL: Final = ("untrustedWorkspace", "trustCommand", "copyCommand", "interpreter", "framedViewer", "settings")
_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "trace": ("trace", _one_of(TRIGGERS)),
    "debounceMs": ("debounce", _milliseconds),
    "consumer": ("consumer", _one_of(CONSUMERS)),
    "fidelity": ("fidelity", _one_of(FIDELITIES)),
    "machine": ("machine", _text),
    "cost": ("cost", _one_of(COSTS)),
    "dialect": ("dialect", _one_of(DIALECTS)),
    "diagnostics": ("diagnostics", _codes),
    "inlayHints": ("hints", _verdicts),
    "hiddenPatterns": ("hidden", _patterns),
    "leastMicroseconds": ("least_microseconds", _microseconds),
    "codeLens": ("lenses", _flag),
    "pullDiagnostics": ("pull", _flag),
    "hoverOps": ("hover_ops", _flag),
}
