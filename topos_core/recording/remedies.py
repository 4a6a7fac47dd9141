"""What to write instead of what does not record: functions of NumPy and of other packages, ufuncs, attributes of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NO_NUMBER: Final = "its number does not exist while recording"

_OTHERWISE: Final = "write it with functions that record, or compute it outside and pass it as an input"
_ORDER: Final = "there is no op for sorting; compute the order outside and pass it as an input"
_SORTED: Final = "there is no op for sorting; compute it outside and pass it as an input"
_ANGLE: Final = "there is no op for inverse trigonometry; compute it outside and pass it as an input"
_COUNT: Final = "the number of results depends on data; compute it outside"
_INDICES: Final = "the number of indices depends on data; mask with np.where(mask, x, 0)"
_IN_PLACE: Final = "it changes an array in place; use np.where(mask, new, old)"
_BOOL: Final = "it answers a Python bool, which does not exist while recording; compare outside"
_PRODUCT: Final = "write np.exp(np.cumsum(np.log(x), axis)) where every element is positive"
_NO_NANS: Final = "write np.where(np.isnan(x), other, x) and the function without nan"

_FUNCTIONS: Final[Mapping[str, str]] = {
    "sort": _ORDER, "argsort": _ORDER, "partition": _ORDER, "argpartition": _ORDER, "lexsort": _ORDER,
    "median": _SORTED, "quantile": _SORTED, "percentile": _SORTED, "nanmedian": _SORTED, "nanquantile": _SORTED,
    "nanpercentile": _SORTED, "histogram": _SORTED,
    "bincount": "write (x[:, None] == np.arange(n)).sum(0)",
    "searchsorted": "there is no op for searching; compute it outside",
    "digitize": "there is no op for searching; compute it outside",
    "interp": "there is no op for searching; compute it outside",
    "nonzero": _INDICES, "argwhere": _INDICES, "flatnonzero": _INDICES,
    "unique": _COUNT, "extract": _COUNT, "compress": _COUNT, "trim_zeros": _COUNT,
    "allclose": _BOOL, "array_equal": _BOOL, "array_equiv": _BOOL,
    "isclose": "write np.abs(a - b) <= atol + rtol * np.abs(b)",
    "nanmax": _NO_NANS, "nanmin": _NO_NANS, "nanstd": _NO_NANS, "nanvar": _NO_NANS, "nanprod": _NO_NANS,
    "nancumsum": _NO_NANS, "nanargmax": _NO_NANS, "nanargmin": _NO_NANS,
    "linspace": "its ends must be numbers here; write start + (stop - start) * np.linspace(0, 1, n)",
    "logspace": "write base ** exponents",
    "empty_like": "its elements are not defined; use np.zeros_like",
    "copyto": _IN_PLACE, "put": _IN_PLACE, "put_along_axis": _IN_PLACE, "place": _IN_PLACE, "putmask": _IN_PLACE,
    "fill_diagonal": "it changes an array in place; use np.where(np.eye(n, dtype=bool), new, old)",
    "cumprod": _PRODUCT, "cumulative_prod": _PRODUCT, "nancumprod": _PRODUCT,
    "convolve": "write nn.conv1d", "correlate": "write nn.conv1d",
    "convolve1d": "write nn.conv1d", "correlate1d": "write nn.conv1d",
    "convolve2d": "write nn.conv2d", "correlate2d": "write nn.conv2d",
    "apply_along_axis": "write the function over the whole array with axis=",
    "apply_over_axes": "write the function with the axes in axis=",
    "delete": "write np.concatenate of the slices that stay",
    "insert": "write np.concatenate of the parts",
    "choose": "write np.select or np.where",
    "piecewise": "write np.where(condition, a, b)",
    "cov": "write (x - mean) @ (x - mean).T / (n - 1)",
    "cross": "write its three differences of products, and np.stack",
    "gradient": "write differences of slices",
    "ediff1d": "write np.diff",
    "sinc": "write np.sin(t) / t of t = math.pi * x",
    "vander": "write np.stack of the powers", "polyval": "write the polynomial as Horner's rule has it",
    "softmax": "write nn.softmax(x, axis=...)",
    "log_softmax": "write nn.log_softmax(x, axis=...)",
    "logsumexp": "write tp.logsumexp(x, axis=...)",
    "softplus": "write nn.softplus",
}  # fmt: skip

_MODULES: Final[Mapping[str, str]] = {
    "linalg": "there is no op for linear algebra beyond products; compute it outside and pass it as an input",
    "fft": "there is no op for Fourier transforms; compute it outside and pass it as an input",
}

_UFUNCS: Final[Mapping[str, str]] = {
    "fmod": "write np.remainder(x, y), whose sign is the divisor's",
    "divmod": "write x // y and x % y",
    "modf": "write x - np.trunc(x) and np.trunc(x)",
    "tan": "write np.sin(x) / np.cos(x)",
    "sinh": "write (np.exp(x) - np.exp(-x)) / 2",
    "cosh": "write (np.exp(x) + np.exp(-x)) / 2",
    "arctan": _ANGLE, "arctan2": _ANGLE, "arcsin": _ANGLE, "arccos": _ANGLE,
    "arcsinh": "write np.sign(x) * np.log(np.abs(x) + np.sqrt(x * x + 1))",
    "arccosh": "write np.log(x + np.sqrt(x * x - 1))",
    "arctanh": "write (np.log1p(x) - np.log1p(-x)) / 2",
    "cbrt": "write np.sign(x) * np.abs(x) ** (1 / 3)",
    "hypot": "write np.sqrt(x * x + y * y)",
    "heaviside": "write np.where(x < 0, 0, np.where(x > 0, 1, value))",
    "logaddexp2": "write np.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)",
    "signbit": "write x < 0, which is False of -0.0",
    "erfc": "write 1 - tp.erf(x), whose tail is less exact",
    "ndtr": "write 0.5 * (1 + tp.erf(x / math.sqrt(2))), whose tail is less exact",
    "log_expit": "write -nn.softplus(-x)",
    "logit": "write np.log(x) - np.log1p(-x)",
    "entr": "write np.where(x > 0, -x * np.log(x), 0)",
    "xlog1py": "write x * np.log1p(y)",
    "exprel": "write np.expm1(x) / x",
    "exp10": "write 10.0 ** x",
    "copysign": "write np.where(y < 0, -np.abs(x), np.abs(x))",
    "ldexp": "write x * 2.0 ** n",
}  # fmt: skip

_ATTRIBUTES: Final[Mapping[str, str]] = {
    "strides": "a recorded value has no memory layout; tp.as_strided takes strides in elements",
    "flags": "a recorded value has no memory layout",
    "data": "a recorded value has no memory",
    "base": "a recorded value has no memory",
    "ctypes": "a recorded value has no memory",
    "flat": "write x.reshape(-1)",
    "imag": "topos has no complex numbers",
    "tolist": f"{NO_NUMBER}; iterate over it, or read it with tp.observe",
    "tobytes": f"{NO_NUMBER}; read it with tp.observe",
    "tofile": f"{NO_NUMBER}; read it with tp.observe",
    "dump": f"{NO_NUMBER}; read it with tp.observe",
    "view": "the bits of a value cannot be read under another dtype; use astype",
    "fill": "item assignment changes an array in place; use np.full_like",
    "put": "item assignment changes an array in place; use np.where(mask, new, old)",
    "sort": _ORDER, "argsort": _ORDER, "partition": _ORDER,
    "nonzero": _INDICES,
    "cumprod": _PRODUCT,
    "resize": "a recorded value has one shape; use reshape or np.pad",
}  # fmt: skip


def of_function(module: str, name: str) -> str:
    """Says what to write instead of a function, by its name wherever it comes from, else by its module's."""
    part = module.rpartition(".")[2]
    return _FUNCTIONS.get(name) or _MODULES.get(part, _OTHERWISE)


def of_ufunc(name: str, namesake: bool = False) -> str:
    """Says what to write instead of a ufunc; `namesake`: NumPy has one of that name, which records."""
    return f"write np.{name}" if namesake else _UFUNCS.get(name, _OTHERWISE)


def of_attribute(name: str) -> str:
    """Says what to write instead of an attribute or a method of arrays."""
    return _ATTRIBUTES.get(name, _OTHERWISE)
