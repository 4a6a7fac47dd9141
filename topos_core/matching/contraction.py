"""Contraction and fold form: values as sums (or maxima, minima) of one view or of a product of two.

matmul, `sum(a * b)`, einsum in whatever order it was recorded, and `a[0:] * w[0] + a[1:] * w[1] + ...` all become the
same thing: two operands, the digits that the result keeps, the digits that are reduced. A form is held as one *joint*
view whose base axes are those of both operands, one after the other, so that movement above a product is read by the
very rules that read movement above a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from topos_core.errors import InternalError
from topos_core.matching.affine import merged
from topos_core.matching.form import FOLDS, REDUCTIONS, Form, OffGrid, Operation, leaf, neutral
from topos_core.matching.joint import elementwise_product, matrix_product
from topos_core.matching.movement import moved, stacked
from topos_core.matching.view import View, identity
from topos_core.tape.tape import Tape


class ViewSource(Protocol):
    """Whoever gives views of values."""

    def of(self, value: int) -> View:
        """Gives a value's view."""
        ...


_STRUCTURED: Final = frozenset(("mul", "matmul", "concat", *REDUCTIONS))


class Forms:
    """The forms of a tape's values, made on demand and kept.

    Args:
        readers: Live readers of every value. A fold or a reduction is read through values with one reader only, so a
            value that others read stays one leaf and a residual stream stays linear.
        views: Views to read operands by.
    """

    def __init__(self, tape: Tape, readers: Sequence[Sequence[int]], views: ViewSource) -> None:
        self.tape = tape
        self._readers = readers
        self._views = views
        self._forms: dict[int, Form | OffGrid] = {}
        self._folds: dict[int, list[int]] = {}  # homogeneous folds by their outermost value
        self._clusters: dict[int, int] = {}  # every value inside a cluster of one commuting op, to its outermost value
        self._beside: dict[int, tuple[Form, tuple[int, ...]] | None] = {}
        self._mixed: dict[int, list[int]] = {}  # the terms of clusters that are no alike fold, by their outermost value

    def of(self, value: int) -> Form | OffGrid:
        """Gives a value's form; a value that is neither product nor reduction is a view of itself or of its base."""
        form = self._forms.get(value)
        if form is None:
            form = self._forms[value] = self._form(value)
        return form

    def fold_terms(self, value: int) -> list[int] | None:
        """Gives the terms of the largest fold of alike terms that ends at `value`; None where it ends elsewhere."""
        if value not in self._clusters:
            self._read_cluster(value)
        return self._folds.get(value)

    def outermost(self, value: int) -> int:
        """Gives the last value of a fold that goes on with alike terms or others."""
        if value not in self._clusters:
            self._read_cluster(value)
        return self._clusters[value]

    def mixed(self) -> list[int]:
        """Lists the sums read so far that end in three terms or more which are not all alike."""
        return list(self._mixed)

    def beside(self, value: int) -> tuple[Form, tuple[int, ...]] | None:
        """Gives the form of a sum's alike products, two or more, and the one or two terms that stand among them.

        None where the alike products have a sum of their own: that is a value, and its form is its own.
        """
        if value not in self._beside:
            self._beside[value] = self._read_beside(value)
        return self._beside[value]

    def _read_beside(self, value: int) -> tuple[Form, tuple[int, ...]] | None:
        if value not in self._clusters:
            self._read_cluster(value)
        kinds: dict[tuple[int, ...], list[int]] = {}
        for term in self._mixed.get(value, ()):
            kinds.setdefault(self.signature(term, "add") or (), []).append(term)
        terms = max(kinds.values(), key=len, default=[])
        others = tuple(term for kind in kinds.values() if kind is not terms for term in kind)
        if len(terms) < 2 or not 1 <= len(others) <= 2 or sorted(terms) in self._inner_folds(value):
            return None
        form = self.stacked(terms, "sum")
        return (form, others) if isinstance(form, Form) and form.is_product else None

    def _inner_folds(self, value: int) -> list[list[int]]:
        """Lists the terms of the alike folds right below the terms that a mixed sum adds to them, ascending."""
        found, stack = [], [value]
        while stack:
            node = stack.pop()
            if node in self._folds:
                found.append(sorted(self._folds[node]))
            elif self._clusters.get(node) == value:
                stack.extend(self.tape.ops[node].operands)
        return found

    def _form(self, value: int) -> Form | OffGrid:
        op = self.tape.ops[value]
        if op.name == "mul" and not any(self._is_splat(o) for o in op.operands):
            return self._product(value, elementwise_product)
        if op.name == "matmul":
            return self._product(value, matrix_product)
        if op.name in REDUCTIONS:
            return self._reduction(value)
        if op.name in FOLDS:
            return self._fold(value)
        return self._moved(value)

    def _product(self, value: int, join: Callable[[View, View], Form | None]) -> Form:
        """Joins the operands' views; where their digits have no common refinement, an operand becomes its own base."""
        left, right = self.tape.ops[value].operands
        for a in (self._views.of(left), identity(left, self.tape.ops[left].type.shape)):
            for b in (self._views.of(right), identity(right, self.tape.ops[right].type.shape)):
                form = join(a, b)
                if form is not None:
                    return form
        raise InternalError(f"the operands of value {value} share no digits although their shapes agree")

    def _reduction(self, value: int) -> Form:
        """Reads a product under a sum, and a reduction of a reduction where nobody else reads the inner one."""
        op = self.tape.ops[value]
        operation = REDUCTIONS[op.name]
        source = op.operands[0]
        form = self.of(source)
        usable = isinstance(form, Form) and (
            form.operation is None or (form.operation == operation and self._only_reader(source, value))
        )
        if not usable or not isinstance(form, Form) or (form.is_product and operation != "sum"):
            form = leaf(self._views.of(source))
        axes = op.attributes["axes"]
        reduced = merged(digit for axis in axes for digit in form.joint.axes[axis])
        kept = tuple(row for axis, row in enumerate(form.joint.axes) if axis not in axes)
        return form._replace(joint=form.joint._replace(axes=kept), reduced=form.reduced + reduced, operation=operation)

    def _fold(self, value: int) -> Form | OffGrid:
        """Stacks the terms of a commuted fold; fewer than two terms are no fold."""
        lone = leaf(identity(value, self.tape.ops[value].type.shape))
        terms = self.fold_terms(value)
        if terms is None or len(terms) < 2:
            return lone
        return self.stacked(terms, FOLDS[self.tape.ops[value].name]) or lone

    def stacked(self, terms: list[int], operation: Operation) -> Form | OffGrid | None:
        """Makes the alike forms of terms one form; None where they are not alike."""
        forms: list[Form] = []
        for term in terms:
            form = self.of(term)
            if not isinstance(form, Form) or form.operation not in (None, operation):
                return None
            if forms and not _same_kind(forms[0], form):
                return None
            forms.append(form)
        if operation in ("max", "min"):  # a term that stands twice counts once: a loop may begin with its first slice
            once = dict(zip(reversed(forms), reversed(terms), strict=True))
            forms, terms = list(reversed(once)), list(reversed(once.values()))
            if len(forms) < 2:
                return None
        first = forms[0]
        if first.is_product and operation != "sum":
            return None
        order = sorted(range(len(forms)), key=lambda k: _significance(forms[k]))
        stack = stacked([forms[k].joint for k in order])
        if stack is None:
            alike = all(f.joint._replace(offsets=first.joint.offsets) == first.joint for f in forms)
            ordered = tuple(terms[k] for k in order)
            return OffGrid(ordered, tuple(forms[k].joint for k in order), first.ranks) if alike else None
        joint, lead = stack
        return first._replace(joint=joint, reduced=lead + first.reduced, operation=operation)

    def _moved(self, value: int) -> Form:
        """Replays movement above a product or reduction on the joint view; movement above anything else is a view."""
        view = self._views.of(value)
        op = self.tape.ops[value]
        if op.name == "concat" and view.base == value:
            bases = {self._views.of(o).base for o in op.operands}  # pieces may be products of their own
        elif view.base != value:
            bases = {view.base}
        else:
            return leaf(view)
        if not all(self._is_structured(base) for base in bases):
            return leaf(view)
        below = op.operands[0]  # the deepest first: a chain of movement may be longer than Python's stack
        chain: list[int] = []
        while below not in bases and below not in self._forms and self.tape.ops[below].operands:
            chain.append(below)
            below = self.tape.ops[below].operands[0]
        for inner_value in reversed(chain):
            self.of(inner_value)
        forms = [self.of(o) for o in op.operands if self._views.of(o).base in bases]
        first = forms[0]
        if not isinstance(first, Form) or (first.operation is None and not first.is_product):
            return leaf(view)
        if any(not isinstance(f, Form) or not _same_kind(first, f) for f in forms):
            return leaf(view)
        joint = moved(self.tape, op, self._joint_of)
        if joint is None or joint.divisors != first.joint.divisors or len(joint.bounds) != len(first.joint.bounds):
            return leaf(view)  # padding a product, or dividing its digits, is no product
        return first._replace(joint=joint)

    def _is_structured(self, value: int) -> bool:
        """Says whether a value may be more than a view of itself: a fold is asked where it becomes a piece of a stack."""
        name = self.tape.ops[value].name
        return name in _STRUCTURED or (name in FOLDS and self._is_piece(value))

    def _is_piece(self, value: int) -> bool:
        while (reader := self._sole_reader(value)) is not None:
            name = self.tape.ops[reader].name
            if name == "concat":
                return True
            if name not in ("reshape", "permute"):
                return False
            value = reader
        return False

    def _joint_of(self, value: int) -> View:
        form = self.of(value)
        assert isinstance(form, Form)
        return form.joint

    def _read_cluster(self, value: int) -> None:
        """Finds the largest alike folds in the tree of one commuting op around `value`. Every op is visited once."""
        ops = self.tape.ops
        name = ops[value].name
        top = value
        while (reader := self._sole_reader(top)) is not None and ops[reader].name == name:
            top = reader
        order: list[int] = []
        stack = [top]
        while stack:
            node = stack.pop()
            order.append(node)
            self._clusters[node] = top
            stack.extend(o for o in ops[node].operands if self._inside(o, node, name))
        inner = set(order)
        terms: dict[int, list[int]] = {}  # of alike folds that may still grow
        kinds: dict[int, tuple[int, ...] | None] = {}
        for node in reversed(order):
            parts: list[list[int] | None] = []
            signs = set()
            for operand in ops[node].operands:
                if operand in inner:
                    parts.append(terms.pop(operand, None))
                    signs.add(kinds.get(operand))
                else:
                    parts.append([] if self._is_neutral(operand, name) else [operand])
                    signs.add(self.signature(operand, name))
            first, second = parts
            signs.discard(None)
            if first is not None and second is not None and len(signs) <= 1:
                longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
                longer.extend(shorter)
                terms[node] = longer
                kinds[node] = next(iter(signs), None)
                continue
            for operand, part in zip(ops[node].operands, parts, strict=True):
                if operand in inner and part is not None:
                    self._folds[operand] = part
        if top in terms:
            self._folds[top] = terms[top]
        elif name == "add" and len(order) > 1:
            leaves = [o for node in order for o in ops[node].operands if o not in inner]
            self._mixed[top] = [o for o in leaves if not self._is_neutral(o, name)]

    def _inside(self, operand: int, reader: int, name: str) -> bool:
        return self.tape.ops[operand].name == name and self._only_reader(operand, reader)

    def signature(self, value: int, name: str) -> tuple[int, ...] | None:
        """Names what a term is made of; None for the neutral element, which fits everywhere."""
        if self._is_neutral(value, name):
            return None
        base = self._views.of(value).base
        op = self.tape.ops[base]
        while op.name in REDUCTIONS:
            base = self._views.of(op.operands[0]).base
            op = self.tape.ops[base]
        if op.name in ("mul", "matmul"):
            return tuple(sorted(self._views.of(o).base for o in op.operands))
        return (base,)

    def _is_splat(self, value: int) -> bool:
        op = self.tape.ops[self._views.of(value).base]
        return op.name == "constant" and not isinstance(op.attributes["value"], np.ndarray)

    def _is_neutral(self, value: int, name: str) -> bool:
        """Says whether a value is one number that a fold may start from: 0 for a sum, -inf for a maximum."""
        view = self._views.of(value)
        op = self.tape.ops[view.base]
        if op.name != "constant" or view.bounds:
            return False
        same = op.attributes["value"] == neutral(FOLDS[name], op.type.dtype)
        return bool(same.all() if isinstance(same, np.ndarray) else same)

    def _sole_reader(self, value: int) -> int | None:
        readers = self._readers[value]
        return readers[0] if len(readers) == 1 else None

    def _only_reader(self, value: int, reader: int) -> bool:
        readers = self._readers[value]
        return len(readers) == 1 and readers[0] == reader


def _same_kind(a: Form, b: Form) -> bool:
    return (a.bases, a.ranks, a.guards, a.reduced, a.operation) == (b.bases, b.ranks, b.guards, b.reduced, b.operation)


def _significance(form: Form) -> tuple[int, ...]:
    """Sorts the taps of a fold: by where they read the second operand, then the first, then their bounds."""
    offsets = form.joint.offsets
    first, indices = form.ranks[0], sum(form.ranks)
    return (*offsets[first:indices], *offsets[:first], *offsets[indices:])
