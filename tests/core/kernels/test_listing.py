import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.kernels import listing as listings
from topos_core.kernels.listing import listing
from topos_core.kernels.watching import watching


def normed(x, scale):
    return nn.layer_norm(x, scale)


def convolved(image, weight, bias):
    return nn.relu(nn.conv2d(image, weight, bias))


PROGRAMS = {
    "norm": (normed, {"x": "f32[64,96]", "scale": "f32[96]"}),
    "convolution": (convolved, {"image": "f32[2,3,12,12]", "weight": "f32[8,3,3,3]", "bias": "f32[8]"}),
    "softmax": (nn.softmax, {"x": "f32[32,64]"}),
    "pool": (lambda x: nn.max_pool(x, 2), {"x": "f32[2,3,8,8]"}),
}


def planned(name):
    function, specs = PROGRAMS[name]
    return tp.plan(tp.trace(function, **specs), cost="always")


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_listed_is_what_a_run_starts(name):
    plan = planned(name)
    arrays = [np.ones(plan.tape.type_of(value).shape, np.float32) for value in plan.tape.inputs]
    with watching() as seen:
        plan.run(*arrays, threads=2)
    listed = [listing(plan.tape, decision.match, 2) for decision in plan.taken]
    starts = [(k.name, k.variant) for one in listed for k in one.kernels for _ in k.starts]
    assert sorted(starts) == sorted((start.name, start.variant) for start in seen.started)
    assert all(one.ran for one in listed)


def test_a_start_is_told_in_the_words_of_its_block():
    (decision,) = planned("norm").taken
    found = listing(planned("norm").tape, decision.match, 1)
    (kernel,) = [kernel for kernel in found.kernels if kernel.starts]
    words = kernel.starts[0].words
    assert (words["outer"], words["count"], words["inner"]) == (64, 96, 1)
    assert words["shift"] == 0  # there is none
    assert "scale" not in words  # it has one: a place in memory tells nobody anything
    assert "counter" not in words


def test_the_text_is_the_one_that_is_compiled():
    (decision,) = planned("convolution").taken
    kernels = listing(planned("convolution").tape, decision.match, 1).kernels
    by_name = {kernel.name: kernel for kernel in kernels}
    assert "def contract(args, worker)" in by_name["contraction"].text
    assert by_name["contraction"].generated is None
    assert by_name["contraction"].compiler == "numba"
    (tile,) = [kernel for kernel in kernels if kernel.variant == ("f32", "1x1")]
    assert "fmul contract" in tile.generated
    assert tile.starts == ()  # the contraction calls it by address
    assert "crew" not in by_name


def test_too_large_a_match_is_listed_and_not_run(monkeypatch):
    monkeypatch.setattr(listings, "LARGEST_SAMPLE", 1000)
    (decision,) = planned("norm").taken
    found = listing(planned("norm").tape, decision.match, 1)
    assert not found.ran
    assert found.sample_bytes == 4 * (2 * 64 * 96 + 96)
    assert [kernel.name for kernel in found.kernels] == ["norm_rows"]


def test_nobody_watches_a_usual_run():
    plan = planned("norm")
    with watching() as seen:
        pass
    plan.run(np.ones((64, 96), np.float32), np.ones(96, np.float32))
    assert seen.started == []
