"""`python -m tests.conformance.coverage`: pattern by spelling, and what becomes of programs that only look alike.

What the plan for `home` decides stands beside (`--cost always`), then every pattern's own counterexamples. The situations of
the corpus follow, each with its test, what became of the test and the outcome that the corpus asks for; `--situations` prints
these alone. Below stand, where asked for: with `--mutations` the rate at which changed programs are caught, with `--fuzz` the
counts of random chains and keys (some minutes each), with `--speed` what an op costs on growing tapes.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import topos_core as tp
from benchmarks import matching
from tests.conformance import spelled_layers, spelled_parts, spellings
from tests.conformance.fusion.test_corpus import corpus
from tests.conformance.spellings import Group
from tests.core.matching import test_view
from tests.laws import key_soundness, mutations
from topos_core.matching.catalog import patterns
from topos_core.matching.match import Match
from topos_core.matching.order import ORDER
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.run.proof import prove
from topos_core.tape.tape import Tape

MOVES = ("reshape", "permute", "broadcast", "slice", "reverse")


@dataclass(frozen=True)
class Row:
    """What became of one program: whether the pattern stands at its result, how that was proved, what was said instead.

    `home` is what the plan for `home` decides of it: a verdict, or the code of a decline.
    """

    pattern: str
    spelling: str
    meant: bool
    found: str | None
    proof: str
    told: str
    home: str = ""

    @property
    def right(self) -> bool:
        """Tells that what is meant was found and proved, and that what is not meant was not found."""
        return self.meant == (self.found is not None) and self.proof != "refuted"


def groups() -> dict[str, Group]:
    """Gives the spellings of every pattern that has some, in the order of the catalogue."""
    found: dict[str, Group] = {}
    for module in (spellings, spelled_layers, spelled_parts):
        for name, group in module.groups().items():
            known = found.get(name)
            if known is not None:
                assert known.specs == group.specs
                taken, other = {**known.taken, **group.taken}, {**known.other, **group.other}
                group = Group(group.specs, taken, other, tuple({*known.also, *group.also}))
            found[name] = group
    return {name: found[name] for name in ORDER if name in found}


def rows(pattern: str, group: Group) -> list[Row]:
    """Looks every program of a group up."""
    made = [_row(pattern, group, name, True) for name in group.taken]
    return made + [_row(pattern, group, name, False) for name in group.other]


def _row(pattern: str, group: Group, name: str, meant: bool) -> Row:
    function = (group.taken if meant else group.other)[name]
    tape = trace(function, **group.specs)
    pool = search(tape, patterns().values())
    root = tape.results[-1 if pattern.startswith("sibling") else 0]  # siblings root at the last of them
    ends = {root}
    while tape.ops[root].name in MOVES or (tape.ops[root].name == "neg" and meant):
        root = tape.ops[root].operands[0]
        ends.add(root)
    allowed = {pattern, *group.also}
    inside = {value for one in pool.matches for value in one.interior}
    found = [one for one in pool.matches if one.pattern in allowed and one.root in ends]
    if (
        not found and meant and pattern in ("linear", "convolution")
    ):  # a bias after it is another pattern's, or nobody's
        found = [one for one in pool.matches if one.pattern in allowed and one.root not in inside]
    if not meant:  # what is left over in a program that only looks alike may be something smaller
        found = [one for one in found if one.root in tape.results]
    best = max(found, key=lambda one: (one.root, len(one.bindings)), default=None)
    told = next((miss.code for miss in pool.near_misses if miss.pattern == pattern), "")
    if best is None:
        return Row(pattern, name, meant, None, "", told)
    (proof,) = prove(tape, [best])
    return Row(pattern, name, meant, best.pattern, proof.verdict, told, _decided(tape, best))


def _decided(tape: Tape, best: Match) -> str:
    """Says what becomes of a match at home when every legal one is elected; alone, where others took its parts."""
    plan, found = tp.plan(tape, machine="reference", cost="always"), None
    for alone in (False, True):
        if alone:
            plan = plan.what_if(off=sorted({each.match.pattern for each in plan.taken} - {best.pattern}))
        found = next((each for each in plan.data.decisions if each.match.id == best.id), None)
        if found is not None:
            return (found.verdict if found.code is None else found.code) + (", alone" if alone else "")
    return "-"


def counterexamples() -> list[tuple[str, str, str | None, bool, list[str]]]:
    """Lists every pattern's counterexamples: its name, the code that must be told, whether it matched, what was told."""
    found = []
    for name, pattern in patterns().items():
        for one in pattern.counterexamples:
            pool = search(trace(one.function, **one.specs), patterns().values())
            own = [match for match in pool.matches if match.pattern == name]
            told = [miss.code for miss in pool.near_misses if miss.pattern == name]
            told += [miss.code for match in pool.matches if match.pattern == name for miss in match.stopped]
            found.append((name, one.name, one.code, bool(own), told))
    return found


def situations() -> list[tuple[int, str]]:
    """Lists the situations of the corpus with the test that stands for each."""
    found = []
    for path in sorted((Path(__file__).parent / "fusion").glob("test_*.py")):
        text = path.read_text()
        for numbers, name in re.findall(r"^@case\(([\d, ]+)\)\n(?:@.*\n)*def (\w+)", text, re.MULTILINE):
            found += [(int(number), f"{path.name}::{name}") for number in numbers.split(",")]
    return sorted(found)


class _Outcomes:
    """Keeps what became of every test of a run, and why where it failed."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.reasons: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the worst of a test's phases and parameters."""
        name = report.nodeid.partition("[")[0].rpartition("/")[2]
        if report.when == "call" or report.outcome != "passed":
            before = self.of.get(name, "passed")
            self.of[name] = report.outcome if before == "passed" else before
        if report.failed:
            self.reasons.append(f"{report.nodeid}\n{report.longreprtext}")


def wanted() -> dict[int, str]:
    """Gives the outcome that the corpus asks for in every situation; nothing without the corpus."""
    if not corpus().is_file():
        return {}
    rows = [
        line.split(" | ") for line in corpus().read_text(encoding="utf-8").splitlines() if re.match(r"\| \d+ \|", line)
    ]
    return {int(row[0].strip("| ")): row[-1].strip("| ") for row in rows}


def print_situations() -> bool:
    """Runs the tests of the corpus and prints situation, test, what became of it and what is asked for."""
    outcomes, folder = _Outcomes(), Path(__file__).parent / "fusion"
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(
            ["-q", "-p", "no:cacheprovider", "-m", "conformance or not conformance", str(folder)], plugins=[outcomes]
        )
    asked, found = wanted(), situations()
    for number, test in found:
        print(f"{number:4} {test:100} {outcomes.of.get(test, 'not run'):8} {asked.get(number, '')}".rstrip())
    failed = {number for number, test in found if outcomes.of.get(test) != "passed"}
    count = len({number for number, _ in found})
    for reason in outcomes.reasons:
        print(f"\n{reason}")
    print(f"{count - len(failed)} of {count} situations hold")
    return not failed


def main() -> None:
    """Prints the tables."""
    if "--situations" in sys.argv:
        sys.exit(not print_situations())
    print(f"{'pattern':20} {'spelling':20} {'found as':24} {'proof':9} {'home':12} told")
    for pattern, group in groups().items():
        table = rows(pattern, group)
        for row in table:
            mark = "" if row.meant else "(looks alike)"
            state = row.found or "-"
            print(
                f"{row.pattern:20} {row.spelling:20} {state:24} {row.proof or '-':9} {row.home or '-':12} {row.told} {mark}".rstrip()
            )
        meant = [row for row in table if row.meant]
        other = [row for row in table if not row.meant]
        print(
            f"{pattern:20} {sum(row.right for row in meant)} of {len(meant)} spellings,"
            f" {sum(row.right for row in other)} of {len(other)} look-alikes refused\n"
        )
    print(f"{'pattern':20} {'counterexample':50} asked for            told")
    for name, example, code, matched, codes in counterexamples():
        told = ", ".join(codes) or ("a smaller match" if matched else "nothing")
        print(f"{name:20} {example:50} {code or 'no match':20} {told}")
    print("\nsituations of the corpus, their tests, what became of them, and what is asked for")
    print_situations()
    if "--mutations" in sys.argv:
        print()
        mutations.main()
    if "--fuzz" in sys.argv:
        print(f"\n{test_view.run(100_000, 1_000_000)}")
        print(key_soundness.told(key_soundness.counted(range(1_000, 11_000))))
    if "--speed" in sys.argv:
        print()
        matching.main([500, 3000, 10000, 50000])


if __name__ == "__main__":
    main()
