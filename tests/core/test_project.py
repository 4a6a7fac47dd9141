"""Facts about the project that its users and CI rely on."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.budgets import PARTS

ROOT = Path(__file__).parents[2]
HEAVY = (
    "numba",
    "llvmlite",
    "torch",
    "jax",
    "jaxlib",
    "onnx",
    "pygls",
    "lsprotocol",
    "fastapi",
    "uvicorn",
    "networkx",
    "scipy",
)


def commands() -> list[str]:
    return re.findall(r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(), re.M)


def test_the_readme_gives_two_commands_and_ci_runs_the_second_word_for_word():
    first, second = commands()
    assert "topos view examples/" in first
    assert "pytest" in second
    assert second in (ROOT / ".ci/run").read_text()


def test_the_readmes_first_command_opens_an_example_that_exists():
    target = commands()[0].split()[-1]
    assert (ROOT / target.partition(":")[0]).is_file()


def test_importing_topos_core_loads_no_heavy_package():
    code = f"import sys, topos_core; print([m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.strip() == "[]"


def test_the_import_contracts_hold():
    pytest.importorskip("importlinter", reason="needs import-linter (the dev extra)")
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("part", "place"), [(part.name, place) for part in PARTS for place in part.places])
def test_every_place_of_a_part_that_has_a_budget_holds_tests(part: str, place: str):
    folder = ROOT / "tests" / place
    assert list(folder.glob("**/test_*.py") if place.endswith("/") else folder.parent.glob(f"{folder.name}*.py")), part


def test_no_test_counts_for_two_parts():
    tests = [path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").glob("**/test_*.py")]
    assert not [name for name in tests if sum(name.startswith(part.places) for part in PARTS) > 1]
