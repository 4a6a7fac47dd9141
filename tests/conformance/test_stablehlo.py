import pytest

pytest.importorskip("jaxlib")

from tests.conformance import stablehlo_suite


@pytest.mark.conformance
def test_stablehlos_own_test_data_is_never_wrong():
    folder = stablehlo_suite.corpus()
    if not folder.is_dir():
        pytest.skip("there is no corpus; set TOPOS_CORPUS to a folder that holds stablehlo/testdata")
    outcomes = [stablehlo_suite.run(path) for path in sorted(folder.rglob("*.mlir"))]
    print(stablehlo_suite.table(outcomes))
    assert [outcome for outcome in outcomes if outcome.verdict in ("wrong", "refused")] == []
    assert sum(outcome.verdict == "passes" for outcome in outcomes) >= len(outcomes) // 2
