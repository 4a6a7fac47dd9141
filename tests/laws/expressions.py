"""Expressions for the law of recording, one per `;`, over

x, y f32[3,4]   v f32[4]   t f32[2,3,4,5]   h f16[3,4]   n i32[3,4]   k i8[3,4]   u u8[3,4]   m bool[3,4]   i i64[3]   j u16[2,2]

and captured arrays in capitals. `EXACT` gives NumPy's bits. `CLOSE` is recorded as other ops than NumPy runs (an einsum as a
matrix product, `initial=` after the sum), so sums may round in another order. `REFUSED` has no recorded meaning.
"""

from __future__ import annotations

EXACT = {
    "arithmetic": """
        x + 1; 1 + x; x - 2.5; 2.5 - x; x * 2.5; 2.5 / x; x / 3; x + y; x * n; h + x; h * 2.5; h + n; x - True; -x; +x; abs(n)
        n + 1; n * 2.5; n / 2; n / n; n - 1; -k; abs(k); k * 2; k + k; k ** 2; u + 3; u * u; u - 1; u / 2; u + n; u ** 2
        m + 1; m + m; m * m; m * 2; m + 1.5; m / 2; m ** 2; np.add(m, m); np.multiply(m, m); np.maximum(m, m); np.minimum(m, m)
        np.add(x, 1); np.add(x, y, dtype="f8"); np.multiply(n, n, dtype="f4"); np.subtract(y, x); np.true_divide(n, 3)
        sum([x, y]); sum(list(x)); (x > 0) * x; x.shape[0] * x; len(x) * x; x.size * x; x.nbytes * x; x.itemsize + x""",
    "NumPy scalars and arrays": """
        x * np.float32(2); np.float32(2) * x; x * np.float64(2); np.float64(2) * x; x / np.sqrt(64); x * np.int64(3); n * np.int64(3)
        np.uint8(3) + x; np.float16(2) * x; np.float16(2) * h; np.int8(2) * k; np.bool_(True) + x; x + np.array(1.0)
        x + np.array(1.0, "f4"); x + np.array(2, "i8"); n + np.array(2.0, "f4"); x * np.array([2.0]); n ** np.int64(2)
        A + x; x + A; D * x; x + [1, 2, 3, 4]; x + (1, 2, 3, 4); x + np.ones((2, 1, 4)); x * np.arange(4); x * np.arange(4.0)
        x + WIDE[3, :4]; WIDE[:3, :4] + x; x + TABLE[:3, :4]; x + WIDE[::-1][:3, :4]; x * FLAT[7:11]""",
    "broadcasting": """
        x + v; v + x; x * v[None]; x - x[:, :1]; x + x[:1]; v[:, None] * v; np.subtract.outer(v, v); np.multiply.outer(v, v)
        np.broadcast_to(v, (3, 4)); np.broadcast_to(v, (2, 3, 4)); np.broadcast_to(x[:, :1], (3, 4)); np.broadcast_arrays(x, v)
        np.broadcast_arrays(v, x[:, :1]); np.meshgrid(v, v); np.meshgrid(v, x[:, 0], indexing="ij"); np.meshgrid(v, [1, 2, 3], sparse=True)""",
    "powers": """
        x ** 2; x ** 2.0; x ** 3; x ** 0.5; x ** -1; x ** -0.5; x ** 1; x ** 0; n ** 2; n ** 3; n ** 2.0; n ** 0.5; 2 ** x; x ** y; h ** 2
        np.power(x, 2); np.square(n); np.square(x); np.power(n, 2.0); np.float_power(x, 2); x ** np.float32(2); np.float64(2) ** x
        np.reciprocal(x); np.reciprocal(n.clip(1)); np.sqrt(abs(x)); np.sqrt(n.clip(0)); np.sqrt(abs(h))""",
    "whole numbers": """
        x // 2; x % 2; x // y; x % y; n // 3; n % 3; n // -2; 7 // n.clip(1); x // 0.1; divmod(x, 2); divmod(n, 3); divmod(7.0, y)
        np.floor_divide(n, 2.0); h // 2; h % 2; u // 2; u % 3; u << 1; u >> 1; n >> 1; n << 2; ~n; ~u; n & 3; n | 1; n ^ n; u & u; m ^ m
        m | True; m & m; ~m; np.bitwise_and(n, 7); np.invert(m); np.left_shift(n, 2); np.remainder(n, 3); np.mod(x, 3)""",
    "rounding": """
        np.floor(x * 3); np.ceil(x * 3); np.rint(x * 3); np.round(x * 3); np.round(x, 2); np.round(x * 1000, -2); x.round(1)
        np.around(n); np.trunc(x * 3); np.fix(x * 3); np.floor(n); np.ceil(u); np.trunc(n); round(x[0, 0], 1); np.sign(x); np.sign(n)""",
    "comparison": """
        x < 0; x == y; 0 < x; x > n; n != 1; x <= y; x >= 0.5; np.less(x, y); A < x; x < np.float64(0); u < 300; u > -1; n == 2**40
        u != 1000; 300 > u; -5 <= u; np.equal(u, -1); m == True; n > 0.5; h < x""",
    "logic": """
        (x > 0) & (y > 0); (x > 0) | m; np.logical_not(x > 0); np.logical_and(x, y); np.logical_or(x, 0); np.logical_xor(m, x > 0)
        np.logical_and(n, m); np.logical_not(n); np.isnan(x / 0 * 0); np.isinf(x / 0); np.isfinite(x / 0); np.isnan(n); np.isfinite(n)""",
    "choice": """
        np.where(m, x, 0); np.where(m, x, -np.inf); np.where(m, 1, 0); np.where(x > 0, x, y); np.where(m, n, 0.5); np.where(m, h, 1e9)
        np.where(m, x, np.float64(0)); np.where(x, x, 1); np.where(m, u, 3); np.where(x > 0, 1.0, n); np.where(True, x, y)
        np.where(m, 1, 2.5); np.where([True, False, True, False], x, 0); np.where(m, v, x); np.select([m, x > 0], [x, y])
        np.select([x > 1, x > 0], [1, 2], 3.5); np.select([m], [x], 0); np.clip(x, 0, 1); np.clip(x, None, 1); np.clip(x, -0.5, y)
        x.clip(0, 6); x.clip(min=0); x.clip(max=0); np.clip(n, 0, 1.5); np.clip(x, min=0); np.clip(u, 1, 5); np.clip(x, None, None)
        np.clip(x, np.float64(0), 1); np.maximum(x, 0); np.minimum(x, np.inf); np.maximum(n, 0.5); np.fmax(x, 0); np.fmax(x, np.nan)
        np.fmin(x, y); np.fmax(x / 0 * 0, y); np.nan_to_num(x / 0 * 0); np.nan_to_num(x / 0, posinf=5.0); np.nan_to_num(n)""",
    "transcendental": """
        np.exp(x); np.exp(n); np.exp(h); np.exp(m); np.exp(x, dtype="f8"); np.expm1(x); np.log(abs(x)); np.log1p(abs(x)); np.tanh(x)
        np.sin(x); np.cos(n); np.exp2(x); np.fabs(x); np.abs(x); np.negative(n); np.positive(x); np.radians(x); np.conj(x); x.real""",
    "casts": """
        x.astype("f8"); x.astype(np.float16); n.astype(float); x.astype("i4"); (x > 0).astype("f4"); x.astype(bool); x.astype(int)
        n.astype("f2"); u.astype("i1"); n.astype("u1"); x.astype("f4"); x.astype(x.dtype); np.astype(x, np.float64); m.astype(int)""",
    "sums": """
        np.sum(x); x.sum(); x.sum(-1); x.sum(axis=(0, 1)); np.sum(x, axis=1, keepdims=True); np.sum(n); np.sum(m); np.sum(h); np.sum(u, axis=0)
        np.sum(k); np.sum(h, axis=1); np.sum(n, dtype="i4"); np.sum(x, dtype="f8"); np.sum(x, where=m); np.sum(x, axis=()); np.sum(x, axis=(-1,))
        np.sum(x, initial=0); np.sum(m, axis=0); np.add.reduce(x); np.add.reduce(x, axis=1, keepdims=True); np.nansum(x); np.trace(x)
        np.trace(t, 1, 2, 3); np.prod(x, axis=1); np.prod(n); np.prod(h, axis=0); np.prod(u); np.prod(m, axis=0); np.prod(x, where=m)
        np.multiply.reduce(x); x.prod(0, keepdims=True); np.cumsum(x); np.cumsum(n, 1); np.cumsum(h, 0); x.cumsum(1); np.add.accumulate(x)
        np.cumsum(u); np.cumsum(m, axis=1); np.cumsum(x, dtype="f8"); np.cumulative_sum(v); np.cumulative_sum(x, axis=1, include_initial=True)
        np.count_nonzero(x > 0); np.count_nonzero(n, axis=1); np.sum(x[:0], axis=0); np.sum(np.add(x, y), axis=-2)
        np.sum(x[0, 0], axis=0); np.max(x[0, 0], axis=-1); np.any(x[0, 0], axis=0); np.cumsum(x[0, 0], axis=0); np.argmax(x[0, 0], axis=0)
        np.repeat(x[0, 0], 2, axis=0); np.take(x[0, 0], [0, 0], axis=0)""",
    "extremes": """
        np.max(x); x.max(1); np.amax(x, 0); np.min(x, axis=0); np.max(n); np.max(x, where=m, initial=-9); np.maximum.reduce(x, axis=-1)
        np.max(x, axis=(0, 1), keepdims=True); np.max(x, initial=0); np.min(x, axis=1, initial=0.25); np.max(m, axis=0); np.min(m)
        np.max(x[:0], axis=0, initial=3); np.ptp(x); np.ptp(x, axis=0); np.argmax(x); np.argmax(x, axis=0); np.argmax(x, 1, keepdims=True)
        np.argmin(x, 1); np.argmin(n); np.argmin(u, axis=0); np.argmin(m, 1); np.argmax(m, axis=1); x.argmax(-1); x.argmin()
        np.argmax(x, keepdims=True); np.argmin(k, 0); np.any(x > 0); np.all(x > 0, axis=1); np.any(n, axis=0, keepdims=True); (x > 0).any()
        (x > 0).all(0); np.any(x, where=m); np.all(x > -9, where=m); np.logical_or.reduce(x > 0); np.logical_and.reduce(m, axis=1); np.any(x[:0])""",
    "averages": """
        x.mean(); np.mean(x, 0); np.mean(h); np.mean(n); np.mean(h, 1, keepdims=True); np.mean(x, where=m); np.mean(x, dtype="f8"); np.mean(m)
        np.mean(u); np.mean(m, axis=1); np.var(x); np.var(x, ddof=1); x.var(-1, keepdims=True); np.var(h, 1); np.var(n); np.var(n, axis=1)
        np.var(x, axis=(0, 1)); np.var(x, axis=0, ddof=1, keepdims=True); np.var(x, where=m); np.var(x, dtype="f8"); np.var(x, correction=1)
        np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)); np.std(x, axis=0); np.std(x, ddof=1, axis=1); np.std(h); np.std(x, where=m, axis=0)
        np.average(x); np.average(x, axis=1); np.average(x, axis=1, weights=v); np.average(x, weights=abs(y)); np.average(n, axis=0, weights=[1, 2, 3])
        np.average(x, axis=0, weights=abs(y)); np.nanmean(x, axis=1)""",
    "norms": """
        np.linalg.norm(x); np.linalg.norm(v); np.linalg.norm(x, axis=1); np.linalg.norm(x, 1, axis=0); np.linalg.norm(v, np.inf)
        np.linalg.norm(v, 1); np.linalg.norm(v, 3); np.linalg.norm(v, 0); np.linalg.norm(x, "fro"); np.linalg.norm(x, np.inf)
        np.linalg.norm(x, -1); np.linalg.norm(x, axis=(0, 1), keepdims=True); np.linalg.norm(n, axis=0); np.linalg.vector_norm(x)
        np.linalg.vector_norm(t, axis=(1, 2)); np.linalg.matrix_norm(t); np.linalg.vector_norm(x, axis=0, keepdims=True, ord=1)""",
    "slices": """
        x[0]; x[-1]; x[:, 1]; x[1:]; x[::-1]; x[::-2, 1:3]; x[..., None]; x[None]; x[:, None, ::2]; x[5:1]; x[-1:0:-1]; t[..., 0]; t[:, 0, ...]
        t[0, ::-1, 1:, -1]; x[()]; x[0, 0]; x[1:2, 3]; x[np.int64(1)]; x[np.array(2)]; x[(0, 1)]; x[-1:]; x[::3]; x[2:0:-1]; x[None, ..., None]
        x[-3:-1, -2]; t[1][0]; x[1:1]; x[...]; x[0:100:7]; [a for a in x][2]; np.stack(list(x)); np.stack([r * 2 for r in x])""",
    "index arrays": """
        x[[2, 0]]; x[range(2)]; x[:, [0, -1, 0]]; x[np.array([1, 1])]; x[[]]; x[[2, -1], ::-2]; x[[True, False, True]]; t[np.array([True, False])]
        x[:, np.array([True, False, True, True])]; x[i]; x[:, i]; x[i, i]; x[i, 1]; x[1, i]; x[i, [0, 1, 2]]; x[j]; t[i]; t[:, i]; t[..., i]
        t[i, :, i]; t[0, i]; t[:, [0, 2], 1]; t[[0, 1], :, [1, 2]]; t[:, [0, 1], :, [1, 2]]; t[[[0], [1]], [0, 2]]; t[None, [0, 1]]
        t[0, :, [1, 2]]; t[..., ::-1, [0, 3]]; t[::-1, [2, 0], ::2]; t[[0, 1], None, [1, 2]]; x[i.clip(-3, 2)]; x[np.arange(3), i]
        x[np.arange(3)[:, None], i]; np.where(m, x, y)[i]; tp.take(A, i, axis=0); tp.take(x, i, axis=1); tp.take(WIDE, i, axis=0); np.take(x, [0, 2], axis=1); np.take(x, np.array([0, 2]), axis=0)
        np.take(x, 1, axis=0); np.take(x, [[0, 1], [2, 0]], axis=0); np.take(x, -1, axis=1); np.take(x, [0, 11, 5]); np.take(x, [5, -7], axis=1, mode="clip")
        np.take(x, [5, -7], axis=1, mode="wrap"); x.take([0, 1], 1); np.take(x, i, axis=0); np.take(x, i, axis=1); np.take(v, i)
        np.take(v, i * 9, mode="clip"); np.take(v, i * 9, mode="wrap"); np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1)
        np.take_along_axis(x, np.array([[0], [1], [2]]), 1); np.take_along_axis(x, n % 3, 0); np.take_along_axis(t, np.argmax(t, 2, keepdims=True), 2)
        np.take_along_axis(v, i, 0); np.take_along_axis(x, i[:, None], 1)""",
    "shapes": """
        x.T; t.transpose(0, 2, 3, 1); np.transpose(x); np.swapaxes(t, 1, -1); np.moveaxis(t, 1, -1); np.moveaxis(t, (0, 1), (-1, 0)); np.expand_dims(x, (0, -1))
        np.squeeze(x[None], 0); np.squeeze(x[None, :, None]); x[None].squeeze(0); np.expand_dims(v, 0); np.reshape(t, (6, -1)); t.reshape(-1); t.reshape(2, -1, 5)
        np.ravel(t); x.flatten(); x.reshape(4, 3); x.reshape((4, -1)); x.reshape([12]); np.reshape(x, 12); t.swapaxes(0, -1); t.transpose()
        t.transpose((3, 1, 0, 2)); np.moveaxis(t, [0, 1], [2, 3]); np.rollaxis(t, 2); np.rollaxis(t, 1, 4); np.matrix_transpose(t); t.mT; np.permute_dims(x, (1, 0))
        np.flip(t, (0, 2)); np.flip(x); np.flip(x, 0); np.fliplr(x); np.flipud(x); np.rot90(x); np.rot90(x, 2); np.rot90(t, 3, (1, 2)); np.atleast_1d(x)
        np.atleast_2d(v); np.atleast_3d(x); np.atleast_3d(v); np.atleast_2d(x, v); x.T.T; np.copy(x); x.copy(); np.real(x); np.shape(x)[0] * x; np.size(x, 0) * x""",
    "diagonals and triangles": """
        np.tril(x); np.triu(x, 1); np.tril(t, -1); np.triu(n); np.tril(m); np.triu(v); np.triu(np.ones((4, 4)), 1) * v; np.diag(v); np.diag(v, 1)
        np.diag(v, -2); np.diag(x); np.diag(x, -1); np.diagonal(t, 0, 1, 2); np.diagonal(x, 2); x.diagonal(1); np.diagonal(x, 9); np.linalg.diagonal(t)""",
    "joining": """
        np.concatenate([x, y]); np.concatenate([x, A], 1); np.concatenate([x, n], axis=None); np.concatenate([x[:, :2], x[:, 2:]], axis=-1)
        np.concatenate((x, y), axis=-1, dtype="f8"); np.concatenate([x]); np.concatenate([h, x]); np.concatenate([m, n]); np.concatenate([x, [[1, 2, 3, 4]]])
        np.stack([x, y], -1); np.stack([x, D]); np.stack([x]); np.stack((x, y), axis=1); np.stack([x.sum(), y.sum()]); np.stack([n, u]); np.vstack([x, v])
        np.vstack([v, x]); np.hstack([x, y]); np.hstack([v, v]); np.dstack([x, y]); np.column_stack([v, v]); np.column_stack([x, v[:3]]); np.append(x, y)
        np.append(x, y, axis=0); np.append(x, 1); np.block([x, y]); np.block([[x], [y]]); np.block([[x, y], [y, x]]); np.split(t, 2, axis=2)[1]
        np.split(x, [1, 2]); np.split(x, 2, axis=1); np.array_split(x, 2); np.array_split(v, 3); np.hsplit(x, 2); np.vsplit(x, 3); np.dsplit(t, 2)
        np.unstack(x); np.unstack(x, axis=1); np.diff(x); np.diff(x, 2); np.diff(x, axis=0); np.diff(x, prepend=0); np.diff(x, append=y); np.diff(m); np.diff(v, n=0)""",
    "repetition": """
        np.tile(x, 2); np.tile(x, (2, 1)); np.tile(v, (2, 3)); np.tile(t, (1, 2)); np.repeat(x, 2); np.repeat(x, 2, axis=1); np.repeat(x, [1, 0, 2], axis=0)
        x.repeat(3, 1); np.repeat(v, 2, axis=-1); np.roll(x, 1, 1); np.roll(x, -2, axis=0); np.roll(x, 1); np.roll(x, (1, 2), (0, 1)); np.roll(x, (1, 1), 0)
        np.roll(x, 0, 0); np.roll(v, -1); np.kron(x, y); np.kron(v, x)""",
    "padding and windows": """
        np.pad(x, 1); np.pad(x, ((0, 0), (1, 2))); np.pad(x, (1, 2), constant_values=-np.inf); np.pad(t, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="constant")
        np.pad(n, 1, constant_values=2.7); np.pad(v, (1, 2), mode="edge"); np.pad(x, 2, mode="reflect"); np.pad(x, ((1, 1), (2, 0)), mode="symmetric")
        np.pad(x, 1, mode="wrap"); np.pad(x, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4))); np.pad(x, {0: 1}); np.pad(x, {-1: (1, 0)}); np.pad(x, 0)
        np.pad(m, 1); sliding_window_view(v, 2); sliding_window_view(t, (2, 3), (2, 3)); sliding_window_view(x, (2, 2)); sliding_window_view(x, 2, axis=0)[::2]
        sliding_window_view(x, (2, 2), axis=(1, 1))""",
    "filling": """
        np.zeros_like(x) + x; np.ones_like(n) + x; np.full_like(x, 2) * x; np.ones_like(x, dtype=int); np.full_like(n, 2.7); np.full_like(x, v)
        np.zeros_like(x, shape=(2, 2)) + x[:2, :2]; np.zeros_like(x)""",
    "einsum without products": """
        np.einsum("ij->j", x); np.einsum("ij->ji", x); np.einsum("ii->i", x[:, :3]); np.einsum("ii", x[:, :3]); np.einsum("i,j->ij", v, v); np.einsum("ij", x)
        np.einsum("ba", x); np.einsum("i,j,k->ijk", v, v, v); np.einsum("ij,ij->ij", x, y); np.einsum("ij,j->ij", x, v); np.einsum("ij,kl->ijkl", x, y)
        np.einsum("bijk->bk", t); np.einsum("biik->bik", t[:, :, :3]); np.einsum("ij,ik->ij", x, y[:, :1]); np.einsum("ij,kj->ik", n, n)
        np.einsum("ij,ij->j", k, k); np.einsum("ij,kj->ik", m, m)""",
    "models": """
        (x - x.max(-1, keepdims=True)); x * (1 / (1 + np.exp(-x))); 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
        np.exp(x - np.max(x, axis=-1, keepdims=True)) / np.sum(np.exp(x), -1, keepdims=True); (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
        x / np.sqrt(np.mean(x ** 2, axis=-1, keepdims=True) + 1e-6)""",
}  # fmt: skip

CLOSE = {
    "products": """
        x @ y.T; t @ t.swapaxes(-1, -2); x @ v; v @ v; v @ x.T; np.dot(x, v); np.dot(x, y.T); np.dot(v, 2); np.dot(2, x); h @ h.T; n @ n.T; x @ n.T; u @ u.T
        k @ k.T; m @ m.T; h @ v; x @ A.T; A.T @ x; x @ np.ones(4, "f4"); t @ np.ones((5, 2), "f4"); x.T @ x; np.tensordot(x, y, 2); np.tensordot(x, v, 1)
        np.tensordot(t, x, axes=([1, 2], [0, 1])); np.tensordot(v, v, 0); np.tensordot(x, y, ([0, 1], [0, 1])); np.outer(v, v); np.inner(x, y); np.inner(v, v)
        np.inner(t, t[0, 0]); np.vdot(x, y); np.dot(t, np.ones((5, 2), "f4")); np.linalg.multi_dot([x, y.T, x]); np.linalg.matrix_power(x[:, :3], 3)
        np.vecdot(x, y); np.matvec(x, v); np.vecmat(v, y.T); np.vecdot(x, y, axis=0); np.linalg.outer(v, v); np.linalg.vecdot(x, y); np.matmul(x[None], y.T)
        WIDE @ x.T; x @ WIDE.T; np.matmul(WIDE[1:30, :4], x.T); x @ LAYERS[1][:4]; x @ LAYERS[0, :4]; x @ WIDE[::2, :4].T; x @ COLUMNS[:4]
        x @ FLAT[:80].reshape(4, 20); x @ np.broadcast_to(FLAT[:100], (4, 100)); x @ REGROUPED; x @ REGROUPED + (REGROUPED.T @ x.T).T; (x.T @ y).T
        t[:, :, :3] @ t[:, :, :3].swapaxes(-1, -2); t[:, 0] @ t[:, 1:2].swapaxes(-1, -2)[:, 0]""",
    "einsum": """
        np.einsum("ij,kj->ik", x, y); np.einsum("ij,ij->", x, y); np.einsum("ij,j", x, v); np.einsum("...ij,kj->...ik", t[..., :4], x); np.einsum("ij->", x)
        np.einsum("bcij,cj,ik->bk", t, x[:, :4] @ np.ones((4, 5), "f4"), x.T); np.einsum("ij,ij->i", x, y); np.einsum("...i->...", t); np.einsum("...i,...i->...", x, y)
        np.einsum("ij,jk,kl->il", x, y.T, x); np.einsum("ij,kj->ik", h, h); np.einsum("i,i", v, v); np.einsum("ij,ij", x, y); np.einsum("ij,ik->jk", x, y)
        np.einsum(" i j , j k -> i k ", x, y.T); np.einsum("ij,jk->ik", x, np.ones((1, 5), "f4")); np.einsum("ij,jk->ik", x, y.T, optimize=True)""",
    "sums with a start": "np.sum(x, 0, initial=2); np.sum(x, initial=0.5, where=m); np.linalg.norm(t)",
    "formulas": """
        np.log2(abs(x)); np.log10(abs(x)); np.logaddexp(x, y); np.degrees(x); np.degrees(n); np.rad2deg(x); scipy.special.erf(x); scipy.special.erf(n)
        scipy.special.expit(x); scipy.special.expit(h); scipy.special.xlogy(abs(x), abs(y)); np.logaddexp.reduce(x, axis=1)""",
}  # fmt: skip

REFUSED = """
    n ** -1; A[i]; np.take(A, i); np.sort(x); np.cbrt(x); np.linspace(0, x, 3); np.arange(x); np.full((2,), x.sum()); np.array(x); np.array([x, y]); np.asarray(x)
    np.ascontiguousarray(x); np.asmatrix(x); np.vectorize(abs)(x); np.fromiter(v, float); np.lib.stride_tricks.as_strided(x, (2, 2), (4, 4))
    np.apply_along_axis(sum, 0, x); np.nonzero(x); np.where(x > 0); x[x > 0]; x[m]; np.unique(n); np.histogram(x); np.random.permutation(x)
    np.cross(x[:, :3], y[:, :3]); np.convolve(v, v); np.allclose(x, y); np.array_equal(x, y); np.copyto(x, y); np.put(x, 0, 1); np.median(x)
    np.insert(x, 0, 1, 0); np.interp(v, v, v); np.ma.array(x); np.testing.assert_allclose(x, x); np.asanyarray(x); np.require(x); np.emath.sqrt(x)
    np.unwrap(v); np.delete(x, 0, 0); np.choose(n % 2, [x, y]); np.piecewise(x, [m], [1, 2]); np.heaviside(x, 0.5); np.hypot(x, y); np.arctan2(x, y)
    np.ldexp(x, n); np.empty_like(x); np.quantile(x, 0.5); np.linalg.inv(x[:, :3]); np.linalg.svd(x); np.fft.fft(v); np.cumprod(x); np.digitize(v, v)
    np.searchsorted(v, v); np.isclose(x, y); np.iscomplex(x); m - x > m - m; np.angle(x); np.linalg.norm(x, 2); np.tan(x); np.spacing(x)
"""


def split(text: str) -> list[str]:
    """Takes a block of expressions apart."""
    return [each.strip() for line in text.splitlines() for each in line.split(";") if each.strip()]
