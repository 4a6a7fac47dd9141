"""The benchmarks' page: the best variant of each peer counts, ratios are of medians, and misses are marked."""

import pytest

from benchmarks.workloads.report import rows, slug, write_report


def figure(median, relative=1e-6):
    times = {"minimum": median * 0.9, "lower": median, "median": median, "upper": median}
    return {"seconds": times, "error": {"absolute": 16 * relative, "relative": relative}}


def failed():
    return {"seconds": None, "error": None, "failure": "no such op"}


RESULTS = {
    "machine": {"processor": "test", "processors": 2, "python": "3", "packages": {"numpy": "2"}},
    "loads": {"odd_softmax": {"1": 7.5}},
    "figures": {
        "conv3_56": {
            "1": {
                "topos": figure(1.0),
                "torch": figure(4.0),
                "torch last": figure(2.0),
                "jax": figure(3.0),
                "openvino": failed(),
            }
        },
        "softmax": {"1": {"topos": figure(1.0, 4e-6), "numpy": figure(2.0, 3e-7)}},
        "odd_softmax": {"1": {"topos": figure(1.5), "numpy": figure(1.0)}},
    },
}


def test_the_faster_variant_of_a_peer_counts_and_a_failure_does_not():
    row = next(row for row in rows(RESULTS, "1") if row.workload.name == "conv3_56")
    assert (row.best, row.ratio, row.missed) == ("torch", 0.5, True)
    assert set(row.peers) == {"torch", "jax"}


def test_a_bar_is_missed_above_it_and_odd_shapes_are_judged_together():
    found = {row.workload.name: row.missed for row in rows(RESULTS, "1")}
    assert found == {"conv3_56": True, "softmax": False, "odd_softmax": False}


def test_the_page_marks_misses_and_rows_of_a_busy_machine(tmp_path):
    pytest.importorskip("matplotlib")
    write_report([RESULTS], tmp_path)
    page = (tmp_path / "BENCHMARKS.md").read_text()
    lines = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    assert "**0.50 missed**" in lines["conv 3x3 + bn + relu, 64x56x56"]
    assert lines["conv 3x3 + bn + relu, 64x56x56"].endswith("| alone |")
    assert lines["softmax 777x333"].endswith("| 7.5 |")
    assert "1 of 2 bars are reached." in page
    assert "the worst 1.50 (bars 1 and 1.25: **missed**)" in page
    assert (tmp_path / "images" / "benchmarks-test.png").stat().st_size > 0


def test_errors_are_told_as_plans_tell_them(tmp_path):
    pytest.importorskip("matplotlib")
    write_report([RESULTS], tmp_path)
    page = [line.strip("| ").split(" | ") for line in (tmp_path / "BENCHMARKS.md").read_text().splitlines()]
    head, row = (next(line for line in page if line[0] == name) for name in ("workload", "softmax 4096x1024"))
    told = dict(zip(head, row, strict=True))
    assert (told["relative error"], told["that of the best peer"]) == ("4.0e-06", "3.0e-07")


def test_each_processor_has_a_part_and_a_picture_of_its_own(tmp_path):
    pytest.importorskip("matplotlib")
    other = {**RESULTS, "machine": {**RESULTS["machine"], "processor": "Intel(R) Xeon(R) Processor @ 2.6GHz"}}
    assert slug(other["machine"]) == "intel-xeon-2-6ghz"
    write_report([RESULTS, other], tmp_path)
    page = (tmp_path / "BENCHMARKS.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("## ")][:2] == [
        "## test",
        "## Intel(R) Xeon(R) Processor @ 2.6GHz",
    ]
    assert page.count("### One thread, CPU time") == 2
    assert (tmp_path / "images" / "benchmarks-intel-xeon-2-6ghz.png").stat().st_size > 0
