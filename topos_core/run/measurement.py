"""What a run was measured to be: figures with their units, for people and for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Judgement = Literal["equal", "inside", "outside"]
Rule = Literal["bits", "envelope", "float64", "float32", "rounding"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one output of a run is from the interpreter's.

    Args:
        output: Which of the results.
        type: `f32[1,10]`.
        absolute: Largest absolute difference; NaN equals NaN. The number of differing elements for integers and bools.
        ulps: The same in units of the last place of the interpreter's value, where that is not near 0 beside the largest.
        at: Index of the element with the largest absolute difference; empty where nothing differs.
        allowed: The absolute difference that the envelopes of the taken regions before this output allow.
        home_error: Largest absolute error of the run against the program in float64; None where it was not needed.
        interpreter_error: The same of the interpreter.
        judgement: `equal` bit for bit up to NaN, `inside` what the rule allows, or `outside`.
        relative: `absolute` over the largest finite magnitude of the interpreter's output.
        rule: What judged: `bits`, nothing but the interpreter's bits will do; `envelope`, `allowed` did; `float64`, the
            errors against the program in float64 did; `float32`, so for an f64 output, whose interpreter error is
            estimated from the program in f32; `rounding`, so where the interpreter is nearer to float64 than the rounding
            of what goes in would let anybody be for sure.
        moved: How far the program in float64 moves where all that goes in moves by half a unit in the last place, f64 by one; None
            where it was not needed.
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
    relative: float = 0.0
    rule: Rule = "envelope"
    moved: float | None = None

    @property
    def sentence(self) -> str:
        """Says how far apart both are and by which rule that was judged."""
        if self.judgement == "equal":
            return "equal to the interpreter bit for bit"
        if self.type.startswith(("bool", "i", "u")):
            text = f"differs in {self.absolute:.0f} {'element' if self.absolute == 1 else 'elements'}"
        else:
            ulps = f"{self.ulps:.3g} ulp" if self.ulps else "at values near 0"
            text = f"differs by at most {self.absolute:.3g} ({ulps}, {self.relative:.3g} relative)"
        text += f" at {list(self.at)}" if self.at else ""
        if self.rule == "bits":
            return f"{text}: {self.judgement}, since it has to have the interpreter's bits"
        if self.rule == "envelope":
            return f"{text}, {self.allowed:.3g} allowed: {self.judgement} the envelope"
        start = f"{text}, above the envelope of {self.allowed:.3g}, so judged by"
        if self.rule == "float32":
            return (
                f"{start} how much the program amplifies rounding: the interpreter itself is off by about"
                f" {self.interpreter_error:.3g}, estimated from the program in float32: {self.judgement}"
            )
        if self.rule == "rounding":
            return (
                f"{start} float64: it is off by {self.home_error:.3g}, and what goes in moves it by {self.moved:.3g} where it is"
                f" rounded once: {self.judgement}"
            )
        return (
            f"{start} float64: it is off by {self.home_error:.3g}, the interpreter by {self.interpreter_error:.3g}:"
            f" {self.judgement}"
        )


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
            for name in ("absolute", "ulps", "relative", "allowed", "home_error", "interpreter_error", "moved"):
                if row[name] == float("inf"):
                    row[name] = "inf"
            row["at"] = list(row["at"])
        return {**plain, "outputs": list(plain["outputs"]), "inside": self.inside}

    def sentences(self) -> list[str]:
        """Says each output's difference in one line."""
        return [f"output {each.output} {each.type}: {each.sentence}" for each in self.outputs]
