from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, match_at_result, searched
from topos_core import nn
from topos_core.recording.elementary import logsumexp

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


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (looked_up, {"z": "f64[5,7]", "t": "i64[5]"}),  # a number of no class reads another row
        (looked_up, {"z": "f64[5,7]", "t": "i64[5]<8"}),
        (lambda z, t: -logs(z)[np.arange(5)[::-1], t], CLASS),
        (lambda z, t: -logs(z).T[t, np.arange(5)], CLASS),
        (lambda z, t: -logs(z)[np.arange(5), t].sum() * 0.3, CLASS),
        (lambda z, t: np.exp(logs(z)[np.arange(5), t]), CLASS),
    ],
    ids=["no range", "a wider range", "rows reversed", "another layout", "weighted", "not negated"],
)
def test_what_is_looked_up_otherwise_is_no_loss(program, specs):
    tape, pool = searched(program, specs)
    assert match_at_result(tape, pool, "cross_entropy") is None
