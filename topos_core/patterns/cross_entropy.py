"""Cross entropy of logits.

Recognises
    Minus the log probability of the target, where `log_softmax` of the logits is recognised in any of its spellings: the
    target as class numbers compared with a count along the classes or looked up in its row (`logs[np.arange(rows), target]`,
    `take_along_axis`), or as probabilities or one-hot rows; the logarithm of what is looked up in a `softmax`; per example,
    summed or averaged over all examples (`reduction`: none, sum or mean). Also the logarithm of the sum of powers less the
    class's own logit, `logsumexp(x) - x[class]`, in any spelling of `logsumexp`: the own logit looked up in its row, chosen by
    a comparison, or multiplied with rows that compare class numbers with a count; from the logits or from what is left of
    them above the maximum.

Why it pays
    One kernel reads the logits once and writes one number per example; the recorded ops write and read them about six times.

Declines when
    The log probabilities are read elsewhere (that is a shared interior).

Differs from the recorded ops
    Recorded as the logarithm of a softmax, where that underflows to 0: the kernel gives the loss for a recorded infinity or NaN.
    Logits that are multiplied with rows of one and zeros, where one is infinite: the kernel gives the loss for a recorded NaN.
    An infinite probability at the largest logit: the kernel gives NaN for a recorded infinity.

Not recognised
    Class weights, label smoothing that is added afterwards, ignored classes; what is looked up along another axis than the
    last, or behind a permutation of the rows. The logarithm of the sum of powers less a logit that is chosen by comparing
    class numbers that may lie outside of their row (an input without a range, `i64[8]` for `i64[8]<10`: of a number of no
    class the loss is the logarithm itself), less a sum of logits that probabilities weigh, or with the two averaged apart.

Source
    Good, Rational Decisions (1952).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, answers, found_at, places
from topos_core.matching.binding import Found
from topos_core.matching.class_lookup import Lookup, is_below, is_count, lookups
from topos_core.matching.declared import Form, Term
from topos_core.matching.facts import CoreFacts, Layout
from topos_core.matching.joining import chain, joined, match_at
from topos_core.matching.match import Match
from topos_core.matching.own_logit import CLOSE, SPELLINGS, by_class_number, forms, own_lookup
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.solving import close
from topos_core.matching.summary import core_facts, evaluated, shift_of
from topos_core.patterns.log_softmax import FORMS
from topos_core.recording.elementary import logsumexp
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "cross_entropy"


def by_class(logs: Any, target: Any, classes: Any, **_: None) -> Any:
    """Minus `logs: [k, n]` at `target: [k]`; classes count along n."""
    return -np.where(target[:, None] == classes, logs, 0.0).sum(1)


def by_class_summed(logs: Any, target: Any, classes: Any, **_: None) -> Any:
    """Added up over the examples."""
    return by_class(logs, target, classes).sum()


def by_class_averaged(logs: Any, target: Any, classes: Any, **_: None) -> Any:
    """Averaged over the examples."""
    return by_class(logs, target, classes).mean()


def by_probability(logs: Any, target: Any, weight: float, **_: None) -> Any:
    """Minus the sum of `target: [k, n]` times `logs: [k, n]`, over n or over everything, with any weight."""
    return -(target * logs).sum(1) * weight


_REDUCTIONS = {by_class: "none", by_class_summed: "sum", by_class_averaged: "mean"}


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match before the logits are known; `target` is class or probability."""
    if found.template.form in SPELLINGS:
        return _of_own_logit(found)
    if found.template.form is by_probability:
        return core_facts(found, target="probability")
    return core_facts(found, target="class", reduction=_REDUCTIONS[found.template.form]) if _counts(found) else None


def settled(found: Found) -> Found | None:
    """Gives what was found with class numbers bound, where rows of ones are made of them."""
    return by_class_number(found) if "rows" in found.bindings else found


def find(context: Context, root: int, /) -> Match | None:
    """Gives the loss at `root` where its log probabilities are those of logits."""
    lookup = context.once(lookups).get(root)
    if lookup is not None:
        return _looked_up(context, root, lookup)
    inner = context.once(answers).get((IDENTIFIER, root))
    found = found_at(context, IDENTIFIER, root)
    if not isinstance(inner, Match) or found is None:
        return None
    if found.template.form in SPELLINGS:
        return _less_own_logit(context, found, inner)
    by_number = inner.facts.options["target"] == "class"
    for hole, other in (("logs", "target"),) if by_number else (("logs", "target"), ("target", "logs")):
        logs = match_at(context, "log_softmax", inner.bindings[hole])
        if logs is None:
            continue
        known = inner.facts if by_number else _of_rows(found, hole, found_at(context, "log_softmax", logs.root))
        if known is None or logs.facts.result != known.layouts[hole]:
            continue
        bindings = {"logits": logs.bindings["x"], "target": inner.bindings[other]}
        layouts = {"logits": logs.facts.layouts["x"], "target": known.layouts[other]}
        between = [inner.bindings["classes"]] if by_number else []
        of = replace(known, layouts=layouts, constants={}, options={**known.options, **logs.facts.options})
        return joined(context, IDENTIFIER, root, [inner, logs], bindings, of, between)
    return None


def _looked_up(context: Context, root: int, lookup: Lookup) -> Match | None:
    """Gives the loss whose log probabilities are looked up in rows, the classes last."""
    logs = match_at(context, "softmax" if lookup.logged else "log_softmax", lookup.base)
    if logs is None:
        return None
    rows, columns = logs.facts.extents["k"], logs.facts.extents["n"]
    order = [(role, rank) for role, rank in zip(logs.facts.result.roles, logs.facts.result.rank, strict=True)]
    if order != sorted(order) or context.op(lookup.target).type.size != rows:
        return None
    reduction = _reduction(lookup, rows)
    if reduction is None:
        return None
    vector = Layout((rows,), ("k",), (0,))
    facts = CoreFacts(
        {"logits": logs.facts.layouts["x"], "target": vector},
        vector if reduction == "none" else Layout((), (), ()),
        {"k": rows, "n": columns},
        options={"target": "class", "reduction": reduction, **logs.facts.options},
    )
    bindings = {"logits": logs.bindings["x"], "target": lookup.target}
    return joined(context, IDENTIFIER, root, [logs], bindings, facts, lookup.between)


def _of_own_logit(found: Found) -> CoreFacts | None:
    """Gives the facts of the logarithm of the sum of powers less the class's own logit."""
    spelling, reduction = SPELLINGS[found.template.form], "none"
    if spelling.summed:
        weight = found.attempt.known["weight"]
        if close(weight, 1.0, CLOSE):
            reduction = "sum"
        elif close(weight * found.count("k"), 1.0, CLOSE):
            reduction = "mean"
        else:
            return None
    if spelling.pick == "compared" and not _counts(found):
        return None
    shifted = shift_of(found) if spelling.shift == "yes" else spelling.shift
    return core_facts(found, target="class", reduction=reduction, shifted=shifted)


def _less_own_logit(context: Context, found: Found, inner: Match) -> Match | None:
    """Gives the loss without log probabilities, where the own logit is known to be one of these logits, whatever the target."""
    facts, between = inner.facts, set[int]()
    layouts = {hole: layout for hole, layout in facts.layouts.items() if hole in ("logits", "target")}
    if SPELLINGS[found.template.form].pick == "looked up":
        lookup = own_lookup(context, found)
        if lookup is None:
            return None
        target, layouts["target"] = lookup.target, facts.layouts["own"]
        between |= {inner.bindings["own"], *lookup.between}
    else:
        target = inner.bindings["target"]
        if not is_below(context, target, found.count("n")):
            return None  # of a number of no class the recorded loss is the logarithm itself
        for hole in ("classes", "rows"):
            if hole in inner.bindings:
                between |= {inner.bindings[hole], *chain(context, inner.bindings[hole], [target])}
    bindings = {"logits": inner.bindings["logits"], "target": target}
    own = replace(facts, layouts=layouts, constants={})
    return joined(context, IDENTIFIER, found.root, [inner], bindings, own, between)


def _reduction(lookup: Lookup, rows: int) -> str | None:
    """Tells by the factor whether chosen log probabilities are negated, added up or averaged."""
    if close(lookup.factor, -1.0, CLOSE):
        return "sum" if lookup.summed else "none"
    return "mean" if lookup.summed and close(lookup.factor * rows, -1.0, CLOSE) else None


def _places(context: Context) -> Collection[int]:
    """Lists where a comparison with class numbers ends, and where a lookup does."""
    return {*places(IDENTIFIER)(context), *context.once(lookups)}


def _of_rows(found: Found, hole: str, logs: Found | None) -> CoreFacts | None:
    """Tells examples from classes as the log softmax does, and by what is left and the weight which reduction it is."""
    if logs is None:
        return None
    labels: dict[str, list[int]] = {"k": [], "n": []}
    for mine, theirs in zip(found.rows[hole], logs.root_rows, strict=True):
        if [part.extent for part in mine] != [part.extent for part in theirs]:
            return None
        for part, other in zip(mine, theirs, strict=True):
            label = logs.label_of(other.digit)
            if part.digit not in labels[label]:
                labels[label].append(part.digit)
    kept = set(found.attempt.labels["k"])
    weight = found.attempt.known["weight"]
    examples = logs.count("k")
    if kept == set(labels["k"]) and close(weight, 1.0, CLOSE):
        reduction = "none"
    elif not kept and close(weight, 1.0, CLOSE):
        reduction = "sum"
    elif not kept and close(weight * examples, 1.0, CLOSE):
        reduction = "mean"
    else:
        return None
    return core_facts(found.labelled(labels), target="probability", reduction=reduction)


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    by_number, reduction = facts.options["target"] == "class", facts.options["reduction"]
    log_softmax = FORMS[facts.options["shifted"]]

    def loss(logits: Any, target: Any) -> Any:
        logs = log_softmax(logits)
        each = by_class(logs, target, np.arange(logits.shape[1])) if by_number else -(target * logs).sum(1)
        return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()

    holes = {"logits": "k n", "target": "k" if by_number else "k n"}
    return evaluated(holes, facts, arrays, "k" if reduction == "none" else "", loss)


def work(tape: Tape, match: Match) -> Work:
    """A maximum, a difference, a sum and one exp per logit, and one logarithm per example."""
    e = match.facts.extents
    size = e["k"] * e["n"]
    read = sum(tape.type_of(value).bytes for value in match.bindings.values())
    return Work(4 * size, size + e["k"], read, tape.type_of(match.root).bytes)


def _counts(found: Found) -> bool:
    """Says whether the classes count 0, 1, ... along the class axis."""
    return is_count(found.keys.tape.ops[found.bindings["classes"]], found.count("n"))


_INDEX = {"target": "i64", "classes": "i64"}
_CLASS = frozenset(("logs", "target", "classes"))
_COUNTED = frozenset(("classes",))
_OWN = frozenset(("logits", "own", "rows"))

TERM = Term(
    formula=Form(by_class, _CLASS, _OWN, dtypes=_INDEX, silent=True),
    facts=facts,
    holes={"logs": "k n", "target": "k", "classes": "n", "logits": "k n", "own": "k", "rows": "k n"},
    optional=("logs", "target", "classes", "logits", "own", "rows"),
    settled=settled,
    near=("log",),
    raw=frozenset(("logs", "target")),
    forms=(
        Form(by_class_summed, _CLASS, _OWN, dtypes=_INDEX, silent=True),
        Form(by_class_averaged, _CLASS, _OWN, dtypes=_INDEX, silent=True),
        Form(by_probability, _CLASS - _COUNTED, _OWN | _COUNTED, ("weight",), labels={"target": "k n"}, silent=True),
        *forms(_INDEX),
    ),
)


def _logs(logits: Any) -> Any:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _by_number(logits: Any, target: Any) -> Any:
    return -np.where(target[:, None] == np.arange(7), _logs(logits), 0).sum(-1).mean()


def _looked_up_by_number(logits: Any, target: Any) -> Any:
    return -_logs(logits)[np.arange(5), target].mean()


def _along_axis(logits: Any, target: Any) -> Any:
    return -np.take_along_axis(_logs(logits), target[:, None], axis=-1)[:, 0]


def _by_rows(logits: Any, target: Any) -> Any:
    return -(target * _logs(logits)).sum(-1)


def _less_own(logits: Any, target: Any) -> Any:
    return (logsumexp(logits, 1) - logits[np.arange(5), target]).mean()


def _less_own_of_rows(logits: Any, target: Any) -> Any:
    shifted = logits - logits.max(1, keepdims=True)
    own = ((target[:, None] == np.arange(7)).astype(np.float32) * shifted).sum(1)
    return np.log(np.exp(shifted).sum(1)) - own


def _less_weighed(logits: Any, target: Any) -> Any:
    return logsumexp(logits, 1) - (target * logits).sum(1)


def _of_probabilities(logits: Any, target: Any) -> Any:
    return -(target * np.log(logits)).sum(-1)


PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS,
    find=find,
    where=_places,
    work=work,
    evaluate=evaluate,
    examples=(
        Example("class numbers, averaged", _by_number, {"logits": "f32[5,7]", "target": "i64[5]<7"}),
        Example("looked up, averaged", _looked_up_by_number, {"logits": "f32[5,7]", "target": "i64[5]<7"}),
        Example("taken along an axis", _along_axis, {"logits": "f32[5,7]", "target": "i64[5]<7"}),
        Example("probabilities, per example", _by_rows, {"logits": "f32[5,7]", "target": "f32[5,7]"}),
        Example("less the own logit", _less_own, {"logits": "f32[5,7]", "target": "i64[5]<7"}),
        Example("less the own logit by rows", _less_own_of_rows, {"logits": "f32[5,7]", "target": "i64[5]<7"}),
    ),
    counterexamples=(
        Example("of probabilities", _of_probabilities, {"logits": "f32[5,7]", "target": "f32[5,7]"}),
        Example("less what weights need not sum to one", _less_weighed, {"logits": "f32[5,7]", "target": "f32[5,7]"}),
    ),
    term=TERM,
)
