import pytest

pytest.importorskip("jaxlib")

from tests.conformance import stablehlo_suite


@pytest.mark.conformance
@pytest.mark.parametrize("kind", stablehlo_suite.KINDS)
def test_stablehlos_own_cases_are_never_wrong(kind):
    if not (stablehlo_suite.corpus() / kind).is_dir():
        pytest.skip(f"there is no corpus; set TOPOS_CORPUS to a folder that holds stablehlo/{kind}")
    outcomes = [stablehlo_suite.run(*case) for case in stablehlo_suite.cases(kind)]
    print(stablehlo_suite.table(outcomes))
    assert [outcome for outcome in outcomes if outcome.verdict in ("wrong", "refused")] == []
    assert sum(outcome.verdict == "passes" for outcome in outcomes) >= len(outcomes) // 2
