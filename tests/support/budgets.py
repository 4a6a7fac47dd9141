"""What the parts of the suite may take on two cores: the wall seconds that each is meant to stay under, and its tests."""

from __future__ import annotations

from typing import Final, NamedTuple


class Part(NamedTuple):
    """Some folders and files of the suite, relative to `tests/`, and the seconds that they may take together."""

    name: str
    seconds: int
    places: tuple[str, ...]


PARTS: Final = (
    Part(
        "recognition",
        240,
        (
            "core/matching/",
            "core/patterns/",
            "core/plan/",
            "conformance/fusion/",
            "conformance/test_coverage",
            "conformance/test_quiet",
            "conformance/test_recall",
            "conformance/test_torch_attention",
            "laws/test_attention_",
            "laws/test_certificates",
            "laws/test_flips",
            "laws/test_guards",
            "laws/test_key_soundness",
            "laws/test_metamorphic",
            "laws/test_moved_decisions",
            "laws/test_mutations",
            "laws/test_observing",
            "laws/test_outbid",
            "laws/test_pattern_",
            "laws/test_remembered",
            "laws/test_repeats",
            "laws/test_respelling",
            "laws/test_reversed",
            "laws/test_search_is_linear",
            "laws/test_swapped",
            "laws/test_what_if",
            "laws/test_work_is_bounded",
        ),
    ),
    Part(
        "kernels",
        240,
        (
            "core/kernels/",
            "core/run/",
            "conformance/test_resident_memory",
            "conformance/test_soak",
            "laws/test_arena",
            "laws/test_every_kernel",
            "laws/test_kernels_agree",
            "laws/test_margins",
            "laws/test_numbers_at_run_time",
            "laws/test_special_values",
            "laws/test_told_",
        ),
    ),
    Part("viewer", 180, ("web/", "browser/")),
)


def spent(part: Part, durations: dict[str, float]) -> float:
    """Adds up the seconds of a part's tests; `durations` holds seconds by test id (`tests/web/test_api.py::test_x`)."""
    starts = tuple(f"tests/{place}" for place in part.places)
    return sum(seconds for test, seconds in durations.items() if test.startswith(starts))
