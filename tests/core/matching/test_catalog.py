"""Patterns of other packages: a distribution is laid out as pip installs it, and a fresh interpreter finds it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import topos_core

PATTERN = '''"""Softsign.

Recognises
    `x / (1 + |x|)`.

Why it pays
    One pass.

Declines when
    Nothing beside the common rules.

Not recognised
    Another slope.

Source
    Bergstra, Desjardins, Lamblin, Bengio (2009).
"""

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.declared import Term, anchor
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated


def formula(x):
    return x / (1.0 + anchor(abs(x)))


def evaluate(facts, arrays):
    return evaluated(TERM.holes, facts, arrays, "n", formula)


def work(tape, match):
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    return Work(3 * root.size, 0, x.bytes, root.bytes)


TERM = Term(formula=formula, facts=core_facts, holes={"x": "n"})
PATTERN = Pattern(
    identifier="softsign", documentation=__doc__, roots=ROOTS, find=finder("softsign"), where=places("softsign"), work=work,
    evaluate=evaluate, examples=(Example("textbook", lambda x: x / (1 + abs(x)), {"x": "f32[4,6]"}),), term=TERM,
)
'''
PROGRAM = """
import json
import topos_core as tp

plan = tp.plan(tp.trace(lambda x: (x / (abs(x) + 1.0)).T, x="f32[4,6]"), machine="reference", cost="always")
print(json.dumps({
    "decisions": [[each.match.pattern, each.verdict, each.code] for each in plan.data.decisions],
    "proofs": [proof.verdict for proof in plan.prove()],
}))
"""


def installed(folder: Path, entry: str) -> None:
    (folder / "softsign_pattern.py").write_text(PATTERN)
    info = folder / "softsign_pattern-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: softsign-pattern\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[topos.patterns]\nsoftsign = {entry}\n")


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    here = str(Path(topos_core.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((here, str(folder)))}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)


def test_a_pattern_of_another_package_is_found_proved_and_declined_for_want_of_a_kernel(tmp_path):
    installed(tmp_path, "softsign_pattern:PATTERN")
    answer = run(tmp_path, PROGRAM)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {
        "decisions": [["elementwise_chain", "taken", None], ["softsign", "declined", "TP206"]],
        "proofs": ["proved", "proved"],
    }


def test_an_entry_point_that_is_no_pattern_is_told_by_name(tmp_path):
    installed(tmp_path, "softsign_pattern:TERM")
    answer = run(tmp_path, PROGRAM)
    assert answer.returncode != 0
    assert "entry point softsign of group topos.patterns is a Term; it must name a Pattern" in answer.stderr
