"""Input specs: `tp.f32[1, 3, 224, 224]`, `tp.i64[2, 48] < 100`, and their text `name=f32[1,3,224,224], ids=i64[2,48]<100`."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core.errors import ConfigurationError
from topos_core.tape.type import DTYPE_NAMES, FLOATS, TensorType, numpy_dtype


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The type of one input; `below` bounds integers to `[0, below)`."""

    type: TensorType
    below: int | None = None

    def __lt__(self, below: int) -> InputSpec:
        """Bounds an integer input: every element is at least 0 and below `below`.

        Raises:
            ConfigurationError: TP502: The dtype is not an integer, or the bound leaves nothing.
        """
        if self.type.dtype in FLOATS or self.type.dtype == "bool":
            raise ConfigurationError(
                f"{self.type}<{below} bounds a {self.type.dtype}; only integers are bounded, drop <{below}",
                code="TP502",
            )
        bound = operator.index(below)
        highest = int(np.iinfo(numpy_dtype(self.type.dtype)).max) + 1
        if not 0 < bound <= highest:
            raise ConfigurationError(
                f"{self.type}<{below}: the bound lies outside of 1 to {highest} for {self.type.dtype}", code="TP502"
            )
        return InputSpec(self.type, bound)

    def __str__(self) -> str:
        return str(self.type) if self.below is None else f"{self.type}<{self.below}"


@dataclass(frozen=True, slots=True)
class ElementType:
    """A dtype that makes specs by indexing: `f32[2, 3]`, `f32[()]` for a scalar. `dtype` is NumPy's."""

    name: str

    @property
    def dtype(self) -> np.dtype:
        """Gives NumPy's dtype (bfloat16 comes from ml_dtypes)."""
        return numpy_dtype(self.name)

    def __getitem__(self, shape: Any) -> InputSpec:
        extents = shape if isinstance(shape, tuple) else (shape,)
        try:
            checked = tuple(operator.index(extent) for extent in extents)
        except TypeError:
            raise ConfigurationError(
                f"{self.name}[{', '.join(map(repr, extents))}]: every extent is an integer", code="TP502"
            ) from None
        if min(checked, default=0) < 0:
            raise ConfigurationError(
                f"{self.name}{list(checked)}: an extent is negative; every extent is 0 or more", code="TP502"
            )
        return InputSpec(TensorType(self.name, checked))

    def __str__(self) -> str:
        return self.name


f16, bf16, f32, f64 = (ElementType(name) for name in FLOATS)
i8, i16, i32, i64 = (ElementType(f"i{bits}") for bits in (8, 16, 32, 64))
u8, u16, u32, u64 = (ElementType(f"u{bits}") for bits in (8, 16, 32, 64))
boolean = ElementType("bool")

FRAMEWORKS: Final = ("numpy", "jax", "torch")
"""Who may record a function, where a mark says so: topos's own recorder, JAX or torch."""

_NUMPY_NAMES: Final = {
    each.dtype.name: "boolean" if each is boolean else each.name
    for each in (f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean)
}

NO_NUMBER: Final = "TP504"
"""The code of an extent that is a name without a number."""

_SPEC: Final = re.compile(
    r"(?:(?P<name>[^\W\d]\w*)\s*=\s*)?(?P<dtype>\w+)\s*\[(?P<shape>[^][]*)\]\s*(?:<\s*(?P<below>\w+))?"
)
_FRAMEWORK: Final = re.compile(r"\s*framework\s*=\s*(?P<name>\w+)(?P<rest>\s*\[)?\s*,?\s*(?:inputs\s*=\s*)?")
_FORM: Final = "write f32[1,3,224,224], i64[2,48]<100 or name=f32[...]"


def parse_spec(text: str, dims: Mapping[str, int] | None = None) -> InputSpec:
    """Reads one spec without a name, such as `f32[1,3,224,224]`; `dims` gives extents written as names (`f32[N,3]`).

    Raises:
        ConfigurationError: TP502: not a spec; TP503: unknown dtype; TP504: a named extent without a value.
    """
    name, spec = _parse_one(text, dims or {})
    if name is not None:
        raise ConfigurationError(
            f"input spec {text.strip()!r} has a name, which is given already; drop {name}=", code="TP502"
        )
    return spec


def parse_specs(text: str, dims: Mapping[str, int] | None = None) -> tuple[tuple[InputSpec, ...], dict[str, InputSpec]]:
    """Reads a list of specs separated by commas outside brackets; gives the positional and the named ones.

    Raises:
        ConfigurationError: TP502: not a spec, a name twice, or a positional one after a named one; TP503; TP504.
    """
    positional: list[InputSpec] = []
    named: dict[str, InputSpec] = {}
    for part in _split(text):
        name, spec = _parse_one(part, dims or {})
        if name is None:
            if named:
                raise ConfigurationError(
                    f"input spec {part.strip()!r} has no name but follows {next(reversed(named))}=; name it too",
                    code="TP502",
                )
            positional.append(spec)
        elif name in named:
            raise ConfigurationError(f"input spec names {name} twice; drop one", code="TP502")
        else:
            named[name] = spec
    return tuple(positional), named


def framework_and_specs(text: str) -> tuple[str | None, str]:
    """Takes `framework=jax` off the front of a mark's text (`framework=jax inputs=f32[3]`); gives None where there is none.

    Raises:
        ConfigurationError: TP504: no such framework.
    """
    found = _FRAMEWORK.match(text)
    if found is None or found["rest"]:  # an input that is called so
        return None, text
    return known_framework(found["name"]), text[found.end() :]


def known_framework(name: str) -> str:
    """Gives a framework's name back.

    Raises:
        ConfigurationError: TP504: it is none.
    """
    if name not in FRAMEWORKS:
        raise ConfigurationError(f"no framework is called {name!r}; write one of {', '.join(FRAMEWORKS)}", code="TP504")
    return name


def as_spec(given: Any, dims: Mapping[str, int] | None = None) -> InputSpec | None:
    """Gives the spec that an argument stands for, or None where it is no spec and is passed through as it is."""
    if isinstance(given, InputSpec):
        return given
    if isinstance(given, TensorType):
        return InputSpec(given)
    if isinstance(given, str):
        return parse_spec(given, dims)
    if isinstance(given, ElementType):
        raise ConfigurationError(
            f"{given} has no shape; write {given}[2, 3], or {given}[()] for a scalar", code="TP502"
        )
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        name = np.dtype(given).name
        known = name in _NUMPY_NAMES
        raise ConfigurationError(
            f"{name} is a dtype without a shape; write tp.{_NUMPY_NAMES[name]}[2, 3]"
            if known
            else f"{name} is no dtype that topos has; use one of {' '.join(DTYPE_NAMES)} with a shape, as tp.f32[2, 3]",
            code="TP502" if known else "TP503",
        )
    return None


def known_extent(name: str, extent: int) -> int:
    """Gives the number that a caller chose for a named extent.

    Raises:
        ConfigurationError: TP504: it is no extent.
    """
    if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 0:
        raise ConfigurationError(
            f"extent {name} is {extent!r}, and an extent is a whole number from 0 on; give it one, as --dim {name}=4",
            code=NO_NUMBER,
        )
    return int(extent)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if text[start:].strip() or parts:
        parts.append(text[start:])
    return parts


def _parse_one(text: str, dims: Mapping[str, int]) -> tuple[str | None, InputSpec]:
    found = _SPEC.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(f"input spec {text.strip()!r} cannot be read; {_FORM}", code="TP502")
    if found["dtype"] not in DTYPE_NAMES:
        raise ConfigurationError(
            f"input spec {text.strip()!r}: unknown dtype {found['dtype']}; use one of {' '.join(DTYPE_NAMES)}",
            code="TP503",
        )
    body = found["shape"].strip().removesuffix(",")
    extents = [_extent(part, text, dims) for part in body.split(",")] if body else []
    spec = ElementType(found["dtype"])[tuple(extents)]
    if found["below"] is not None:
        spec = spec < _extent(found["below"], text, dims)
    return found["name"], spec


def _extent(part: str, text: str, dims: Mapping[str, int]) -> int:
    part = part.strip()
    if part.isascii() and part.isdigit():
        return int(part)
    if part.isidentifier():
        if part in dims:
            return known_extent(part, dims[part])
        raise ConfigurationError(
            f"input spec {text.strip()!r}: extent {part} has no value; give it with --dim {part}=4", code=NO_NUMBER
        )
    raise ConfigurationError(f"input spec {text.strip()!r}: extent {part!r} is not a number; {_FORM}", code="TP502")
