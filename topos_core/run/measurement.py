"""What a run was measured to be: figures with their units, for people and for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Judgement = Literal["equal", "inside", "outside"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one output of home's run is from the interpreter's.

    Args:
        output: Which of the results.
        type: `f32[1,10]`.
        absolute: Largest absolute difference; NaN equals NaN. The number of differing elements for integers and bools.
        ulps: The same in units of the last place of the interpreter's value.
        at: Index of the element with the largest absolute difference; empty where nothing differs.
        allowed: The absolute difference that the envelopes of the taken regions before this output allow.
        home_error: Largest absolute error of home against the program in float64; None where it was not needed.
        interpreter_error: The same of the interpreter.
        judgement: `equal` bit for bit up to NaN, `inside` the envelope, or `outside`.
    """

    output: int
    type: str
    absolute: float
    ulps: float
    at: tuple[int, ...]
    allowed: float
    home_error: float | None
    interpreter_error: float | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every output's difference; `inside` says whether all of them keep the plan's fidelity."""

    fidelity: str
    outputs: tuple[Difference, ...]

    @property
    def inside(self) -> bool:
        """Tells whether no output is outside."""
        return all(difference.judgement != "outside" for difference in self.outputs)

    @property
    def absolute(self) -> float:
        """The largest absolute difference of all outputs."""
        return max((difference.absolute for difference in self.outputs), default=0.0)

    @property
    def ulps(self) -> float:
        """The largest difference of all outputs in units of the last place."""
        return max((difference.ulps for difference in self.outputs), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Gives plain data; infinities become the string `inf`."""
        plain = asdict(self)
        for row in plain["outputs"]:
            for name in ("absolute", "ulps", "allowed", "home_error", "interpreter_error"):
                if row[name] == float("inf"):
                    row[name] = "inf"
            row["at"] = list(row["at"])
        return {**plain, "outputs": list(plain["outputs"]), "inside": self.inside}

    def sentences(self) -> list[str]:
        """Says each output's difference in one line."""
        return [_sentence(difference) for difference in self.outputs]


def _sentence(difference: Difference) -> str:
    start = f"output {difference.output} {difference.type}:"
    if difference.judgement == "equal":
        return f"{start} equal to the interpreter bit for bit"
    where = f" at {list(difference.at)}" if difference.at else ""
    text = f"{start} differs by at most {difference.absolute:.3g} ({difference.ulps:.3g} ulp){where}"
    text += f", {difference.allowed:.3g} allowed: {difference.judgement} the envelope"
    if difference.home_error is not None and difference.interpreter_error is not None:
        text += (
            f"; against float64 home is off by {difference.home_error:.3g},"
            f" the interpreter by {difference.interpreter_error:.3g}"
        )
    return text
