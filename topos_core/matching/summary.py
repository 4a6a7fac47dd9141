"""Facts of a scalar core out of what was found, and its formula run on the arrays that it binds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from topos_core.matching.arrangement import arranged, restored
from topos_core.matching.binding import Found
from topos_core.matching.facts import CoreFacts
from topos_core.matching.ideal import recorded
from topos_core.matching.template import Term


def core_facts(found: Found, **options: str) -> CoreFacts:
    """Gives layouts, extents and constants of a match; its roles are the term's labels."""
    labels = found.attempt.labels
    roles = {label: label for label in labels}
    order: dict[int, int] = {}
    for rows in (found.root_rows, *found.rows.values()):
        for row in rows:
            for part in row:
                order.setdefault(part.digit, len(order))
    dtype = found.keys.tape.ops[found.root].type.dtype
    constants = [name for name in found.template.term.constants if name in found.attempt.known]
    return CoreFacts(
        {hole: found.layout(rows, roles, order) for hole, rows in found.rows.items()},
        found.layout(found.root_rows, roles, order),
        {label: found.count(label) for label in labels},
        {name: recorded(found.constant(name), dtype) for name in constants},
        options,
    )


def evaluated(
    term: Term,
    facts: CoreFacts,
    arrays: Mapping[str, np.ndarray],
    result: str,
    formula: Callable[..., Any] | None = None,
) -> dict[str, np.ndarray]:
    """Runs a term's formula on bound arrays; gives `root` in the root's layout. `result` labels the formula's axes."""
    given: dict[str, Any] = dict.fromkeys(term.holes)
    for hole, array in arrays.items():
        given[hole] = arranged(np.asarray(array), facts.layouts[hole], term.holes[hole].split())
    answer = (formula or term.formula)(**given, **{name: facts.constants[name] for name in term.constants})
    shape = [facts.extents[label] for label in result.split()]
    return {"root": restored(np.broadcast_to(answer, shape), facts.result, result.split())}
