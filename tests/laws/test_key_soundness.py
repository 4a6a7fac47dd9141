"""Values with one key are one function."""

from __future__ import annotations

import pytest

from tests.laws.key_soundness import counted, told


def test_values_with_one_key_are_one_function():
    count = counted(range(400))
    assert count.different == []
    assert count.predicted > 10_000
    assert sum(count.different_special.values()) < count.special / 500


@pytest.mark.conformance
def test_values_of_ten_thousand_tapes_with_one_key_are_one_function():
    count = counted(range(1_000, 11_000))
    print(f"\n{told(count)}")
    assert count.different == []
