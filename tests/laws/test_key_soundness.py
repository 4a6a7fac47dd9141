import pytest

from tests.laws.key_soundness import Count, check_keys


def counted(seeds: range) -> Count:
    count = Count()
    for seed in seeds:
        check_keys(seed, count)
    return count


def test_values_with_one_key_are_one_function():
    count = counted(range(400))
    assert count.different == []
    assert count.predicted > 10_000
    assert sum(count.different_special.values()) < count.special / 500


@pytest.mark.conformance
def test_values_of_ten_thousand_tapes_with_one_key_are_one_function():
    count = counted(range(1_000, 11_000))
    print(
        f"\n{count.tapes} tapes, {count.ops} ops, {count.funcs} functions, {count.predicted} predictions, "
        f"{len(count.different)} different; special values: {sum(count.different_special.values())} of {count.special}"
    )
    assert count.different == []
