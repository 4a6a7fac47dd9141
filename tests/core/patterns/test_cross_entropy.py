from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import agrees, check, match_at_result, searched
from topos_core import nn
from topos_core.recording.elementary import logsumexp
from topos_core.run.proof import prove

CLASS = {"z": "f64[5,7]", "t": "i64[5]<7"}
ROWS = {"z": "f64[5,7]", "t": "f64[5,7]"}


def logs(z):
    s = z - z.max(-1, keepdims=True)
    return s - np.log(np.exp(s).sum(-1, keepdims=True))


def picked(z, t):
    return np.where(t[:, None] == np.arange(7), logs(z), 0).sum(-1)


def by_class(z, t):
    return -picked(z, t).mean()


def by_class_turned(z, t):
    return (-picked(z, t)).sum() / 5


def by_class_commuted(z, t):
    return -np.mean(np.where(np.arange(7)[None] == t.reshape(5, 1), z - logsumexp(z, 1, keepdims=True), 0).sum(1))


def by_nn(z, t):
    return nn.cross_entropy(z, t)


@pytest.mark.parametrize("spelling", [by_class, by_class_turned, by_class_commuted, by_nn])
def test_every_spelling_by_class_numbers_is_one_loss(spelling):
    match = check("cross_entropy", spelling, CLASS)
    shifted = "finite" if spelling is by_class_commuted else "yes"
    assert match.facts.options == {"target": "class", "reduction": "mean", "shifted": shifted}
    assert set(match.bindings) == {"logits", "target"}


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_may_be_kept_summed_or_averaged(reduction):
    for specs in (CLASS, ROWS):
        match = check("cross_entropy", lambda z, t: nn.cross_entropy(z, t, reduction), specs)
        assert match.facts.options["reduction"] == reduction


def by_rows(z, t):
    return -(t * logs(z)).sum(-1)


def by_rows_commuted(z, t):
    return (logs(z) * -t).sum(1)


def by_einsum(z, t):
    return -np.einsum("ij,ij->i", logs(z), t)


@pytest.mark.parametrize("spelling", [by_rows, by_rows_commuted, by_einsum])
def test_every_spelling_by_probabilities_is_one_loss(spelling):
    match = check("cross_entropy", spelling, ROWS)
    assert match.facts.options == {"target": "probability", "reduction": "none", "shifted": "yes"}


def test_classes_may_lie_on_another_axis():
    check("cross_entropy", lambda z, t: nn.cross_entropy(z, t, axis=1), {"z": "f64[2,7,3]", "t": "i64[2,3]<7"})


def other_count(z, t):
    return -np.where(t[:, None] == np.arange(1, 8), logs(z), 0).sum(-1).mean()


def of_probabilities(z, t):
    return -np.where(t[:, None] == np.arange(7), np.log(z), 0).sum(-1).mean()


def filled(z, t):
    return -np.where(t[:, None] == np.arange(7), logs(z), 1.0).sum(-1).mean()


def guarded_probability(z, t):
    return -np.log(np.exp(logs(z))[np.arange(5), t] + 1e-9).mean()


def logarithm_of_a_mean(z, t):
    return -np.log(np.exp(logs(z))[np.arange(5), t].mean())


def logarithm_of_half(z, t):
    return -np.log(np.exp(logs(z))[np.arange(5), t] / 2).mean()


def logarithm_twice(z, t):
    return -np.log(logs(z)[np.arange(5), t]).mean()


@pytest.mark.parametrize(
    "program",
    [
        other_count, of_probabilities, filled, guarded_probability, logarithm_of_a_mean, logarithm_of_half, logarithm_twice,
    ],
)  # fmt: skip
def test_look_alikes_are_refused(program):
    _, pool = searched(program, CLASS)
    assert [m for m in pool.matches if m.pattern == "cross_entropy"] == []


def looked_up(z, t):
    return -logs(z)[np.arange(5), t]


def along_axis(z, t):
    return -np.take_along_axis(logs(z), t[:, None], axis=1).mean()


def divided(z, t):
    return np.sum(logs(z)[np.arange(5), t]) / -5


def probability_looked_up(z, t):
    return np.sum(-np.log(np.exp(logs(z))[np.arange(5), t])) / 5


@pytest.mark.parametrize(
    ("spelling", "reduction"),
    [(looked_up, "none"), (along_axis, "mean"), (divided, "mean"), (probability_looked_up, "mean")],
)
def test_a_class_that_is_looked_up_in_its_row_is_one_loss(spelling, reduction):
    match = check("cross_entropy", spelling, CLASS)
    assert match.facts.options == {"target": "class", "reduction": reduction, "shifted": "yes"}


@pytest.mark.parametrize("spelling", [looked_up, probability_looked_up])
@pytest.mark.parametrize("numbers", ["i64[5]", "i64[5]<8", "i32[5]"])
def test_class_numbers_without_a_range_are_held_to_their_row_before_they_are_looked_up(spelling, numbers):
    specs = {"z": "f64[5,7]", "t": numbers}
    tape, pool = searched(spelling, specs)
    match = match_at_result(tape, pool, "cross_entropy")
    assert match is not None
    assert "within" in {tape.ops[value].name for value in range(match.bindings["target"] + 1)}
    agrees(tape, match)
    assert [proof.verdict for proof in prove(tape, [match])] == ["proved"]


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (lambda z, t: -logs(z)[np.arange(5)[::-1], t], CLASS),
        (lambda z, t: -logs(z).T[t, np.arange(5)], CLASS),
        (lambda z, t: -logs(z)[np.arange(5), t].sum() * 0.3, CLASS),
        (lambda z, t: np.exp(logs(z)[np.arange(5), t]), CLASS),
    ],
    ids=["rows reversed", "another layout", "weighted", "not negated"],
)
def test_what_is_looked_up_otherwise_is_no_loss(program, specs):
    tape, pool = searched(program, specs)
    assert match_at_result(tape, pool, "cross_entropy") is None


def total(z):
    most = z.max(-1, keepdims=True)
    return np.log(np.exp(z - most).sum(-1, keepdims=True)) + most


def less_kept(z, t):
    return (total(z) - np.take_along_axis(z, t[..., None], -1)).mean()


def less_shifted(z, t):
    z = z - z.max(-1, keepdims=True)
    return np.log(np.exp(z).sum(-1)) - np.take_along_axis(z, t[..., None], -1)[..., 0]


def less_if_finite(z, t):
    return np.sum(logsumexp(z, -1) - np.take_along_axis(z, t[..., None], -1)[..., 0])


def less_unshifted(z, t):
    own = np.take_along_axis(z, t[..., None], -1)[..., 0]
    return -(own - np.log(np.exp(z).sum(-1)))


def less_compared(z, t):
    return total(z)[..., 0] - np.where(t[..., None] == np.arange(z.shape[-1]), z, 0).sum(-1)


def less_rows(z, t):
    hot = (np.arange(z.shape[-1]) == t[..., None]).astype(z.dtype)
    return (logsumexp(z, -1) - (z * hot).sum(-1)).mean()


def less_rows_shifted(z, t):
    z = z - z.max(-1, keepdims=True)
    hot = (t[..., None] == np.arange(z.shape[-1])).astype(z.dtype)
    return np.log(np.exp(z).sum(-1)) - (hot * z).sum(-1)


def less_scaled(z, t):
    return (total(z * 0.5) - np.take_along_axis(z, t[..., None], -1) * 0.5).mean()


LESS = {
    less_kept: ("mean", "yes"), less_shifted: ("none", "yes"), less_if_finite: ("sum", "finite"), less_unshifted: ("none", "no"),
    less_compared: ("none", "yes"), less_rows: ("mean", "finite"), less_rows_shifted: ("none", "yes"), less_scaled: ("mean", "yes"),
}  # fmt: skip


OTHERS = [{"z": "f32[3,5,7]", "t": "i64[3,5]<7"}, {"z": "f64[5,5]", "t": "i64[5]<5"}]


@pytest.mark.parametrize(
    ("spelling", "specs"),
    [
        *((spelling, CLASS) for spelling in LESS),
        *((spelling, specs) for spelling in (less_rows, less_kept) for specs in OTHERS),
    ],
)
def test_the_logarithm_of_the_powers_less_the_own_logit_is_a_loss(spelling, specs):
    reduction, shifted = LESS[spelling]
    tape, pool = searched(spelling, specs)
    match = match_at_result(tape, pool, "cross_entropy")
    assert match is not None
    agrees(tape, match)
    assert set(match.bindings.values()) <= {0, 1, *(value for value, op in enumerate(tape.ops) if op.name == "mul")}
    assert match.facts.options == {"target": "class", "reduction": reduction, "shifted": shifted}
    assert [proof.verdict for proof in prove(tape, [match])] == ["proved"]


def test_logits_may_be_chosen_along_another_axis_by_comparison():
    def program(z, t):
        hot = t[:, None] == np.arange(7)[None, :, None]
        return (np.log(np.exp(z).sum(1)) - np.where(hot, z, 0).sum(1)).mean()

    match = check("cross_entropy", program, {"z": "f64[2,7,3]", "t": "i64[2,3]<7"})
    assert match.facts.options["shifted"] == "no"


def less_another_row(z, t):
    return total(z)[:, 0] - z[np.arange(5)[::-1], t]


def less_what_was_not_shifted(z, t):
    return np.log(np.exp(z - z.max(-1, keepdims=True)).sum(-1)) - z[np.arange(5), t]


def less_twice(z, t):
    return total(z)[:, 0] - 2 * z[np.arange(5), t]


def less_the_next_class(z, t):
    return total(z)[:, 0] - (z * (t[:, None] == np.arange(1, 8)).astype(z.dtype)).sum(-1)


def less_all_smaller(z, t):
    return total(z)[:, 0] - (z * (t[:, None] > np.arange(7)).astype(z.dtype)).sum(-1)


def less_an_exponential(z, t):
    return total(z)[:, 0] - np.exp(z[np.arange(5), t])


def doubled(z, t):
    return (total(z)[:, 0] - z[np.arange(5), t]).mean() * 2


@pytest.mark.parametrize(
    "program",
    [
        less_another_row, less_what_was_not_shifted, less_twice, less_the_next_class, less_all_smaller, less_an_exponential,
        doubled,
    ],
)  # fmt: skip
def test_what_is_less_another_number_is_no_loss(program):
    tape, pool = searched(program, CLASS)
    assert match_at_result(tape, pool, "cross_entropy") is None


SQUARE = {"z": "f64[5,5]", "t": "i64[5]<5"}


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (lambda z, t: total(z.T)[:, 0] - z[np.arange(5), t], SQUARE),
        (lambda z, t: total(z)[:, 0] - (z * (t == np.arange(5)[:, None]).astype(z.dtype)).sum(-1), SQUARE),
        (lambda z, t: total(z)[:, 0] - np.where(t == np.arange(5)[:, None], z, 0).sum(-1), SQUARE),
        (lambda z, t, y: total(z)[:, 0] - y[np.arange(5), t], {**SQUARE, "y": "f64[5,5]"}),
        (less_compared, {**SQUARE, "t": "i64[5]"}),  # a number of no class leaves the logarithm itself
        (less_rows, {**SQUARE, "t": "i64[5]<6"}),
    ],
    ids=[
        "columns",
        "rows of columns",
        "compared along rows",
        "other logits",
        "no range",
        "a wider range",
    ],
)
def test_what_is_less_another_logit_is_no_loss(program, specs):
    tape, pool = searched(program, specs)
    assert match_at_result(tape, pool, "cross_entropy") is None
