"""Convolutions of 3x3 windows by Winograd's F(4x4, 3x3) or F(2x2, 3x3): a quarter of the products, or four ninths.

Worth it where there are many channels and at least a register of tiles (`form_of`); small images have that many of the small
tiles alone. The large ones have up to twenty times the rounding error of the direct kernel. What is not finite spreads over a whole
tile here, so every sum is looked at: where one is not finite, the caller runs the direct kernel (`strips.py`), which gives what
was recorded.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.convolution.engine import FAR_BYTES, UNBOUNDED
from topos_core.kernels.convolution.geometry import Problem, columns_follow, planes
from topos_core.kernels.convolution.plane_copy import copy_block, residues_of
from topos_core.kernels.convolution.tables import width_table
from topos_core.kernels.folding import is_usual
from topos_core.kernels.host import host
from topos_core.kernels.known import Known
from topos_core.kernels.launch import Scratch, address_of, aligned, launch, spaced, template
from topos_core.kernels.library import kernel
from topos_core.kernels.margins import Margins
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import OVERLAP, PLANES, TILE, WINOGRAD
from topos_core.tape.type import numpy_dtype

LARGEST_CHAIN: Final = 512
"""Channels: their products are added in one chain."""
LEAST_CHANNELS: Final = 16
"""Below so many channels or rows the transforms cost more than the products that they save."""
LANES: Final = 16
"""Of a register, in estimates: a plan is the same on every machine."""
SHORT: Final = 8
"""What a tile costs beside its products, in steps."""
IMAGE: Final = 11.0
"""Flops at the peak that a transform takes as long as, per product and input channel of a tile."""
RESULT: Final = 8.3
"""The same per output channel."""
BALANCE: Final = 6.0
"""Flops of one processor per byte that it streams from memory; the transformed kernel is four times the kernel, or 16 ninths."""
RIGHT_BYTES: Final = 1280 << 10
"""Of the transformed image per item: it is read once for every few rows of the kernel, from the second-level cache and the next."""
NEAR_BYTES: Final = 760 << 10
"""The same where it is read by two tiles at a time and has many channels."""
SHARING_CHANNELS: Final = 64
"""From here on two tiles read a panel; with 32 the sums of twice as many rows cost more (1.05 of the time)."""

_W: Final = {name: place for place, name in enumerate(WINOGRAD)}
_P: Final = {name: place for place, name in enumerate(PLANES)}


class Form(NamedTuple):
    """A size of tiles.

    Args:
        name: Its row of the table of envelopes.
        side: Rows and columns of a result tile.
        spread: f64[side + 2, 3]: a kernel's taps along one axis to factors.
        image_flops, result_flops: Of the transforms of a tile, per input and per output channel.
    """

    name: str
    side: int
    spread: np.ndarray
    image_flops: int
    result_flops: int

    @property
    def enlargement(self) -> float:
        """Gives the power of two that a transformed kernel is multiplied by, so that it has no smaller numbers than the kernel.

        Numbers that are too small for the usual form would lose digits: the smallest factor is a 576th. Of a result nothing
        changes, since the factor that follows is divided by it.
        """
        smallest = float(np.abs(self.spread[self.spread != 0]).min()) ** 2
        return 2.0 ** math.ceil(-math.log2(smallest))

    def reduced(self, scale: np.ndarray) -> np.ndarray | None:
        """Divides factors by the enlargement; None where they would lose digits: then the direct kernel runs."""
        made: np.ndarray = scale / scale.dtype.type(self.enlargement)
        return made if is_usual(made) or not scale.any() else None

    @property
    def products(self) -> int:
        """Counts a tile's products."""
        return (self.side + OVERLAP) ** 2

    def tiles(self, convolution: Problem) -> tuple[int, int]:
        """Counts the rows of tiles of a result and the tiles of such a row."""
        height, width = convolution.result[1:]
        return -(-height // self.side), -(-width // self.side)


LARGE: Final = Form(
    "winograd",
    4,
    np.array(
        [
            [1 / 4, 0, 0], [-1 / 6] * 3, [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ]
    ),
    160, 110,
)  # fmt: skip
SMALL: Final = Form("winograd_small", 2, np.array([[1, 0, 0], [1 / 2] * 3, [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]), 32, 24)
FORMS: Final = (LARGE, SMALL)


def form_of(convolution: Problem) -> Form | None:
    """Chooses the tiles whose transforms are estimated to cost less than the products that they save; None where none do."""
    depth, *sliding = convolution.windows
    plain = all(w.size == 3 and w.stride == w.dilation == w.base_dilation == 1 for w in sliding)
    if not plain or depth.size != 1 or convolution.image[0] != 1 or convolution.groups != 1:
        return None
    if min(convolution.rows, convolution.channels) < LEAST_CHANNELS or convolution.channels > LARGEST_CHAIN:
        return None
    least, form = min(((_estimate(convolution, form), form) for form in FORMS), key=lambda one: one[0])
    height, width = convolution.result[1:]
    positions = (height - 1) * (width + 1) + width  # the direct kernel's have a column between rows
    registers = convolution.batch * math.ceil(positions / LANES)
    direct = 18.0 * convolution.rows * convolution.channels * registers * LANES
    return form if least < 0.8 * direct else None


def _estimate(convolution: Problem, form: Form) -> float:
    """Estimates what tiles cost in flops at the peak; infinite where they do not fill a register."""
    down, across = form.tiles(convolution)
    rows, channels, count = convolution.rows, convolution.channels, convolution.batch * down * across
    if count < LANES:
        return math.inf
    registers = math.ceil(count / LANES) * LANES
    filled = LANES // 2 if 2 * across <= LANES else math.ceil(across / LANES) * LANES  # two short rows share a register
    products = 2.0 * form.products * rows * (channels + SHORT) * registers
    transforms = count * filled / across * form.products * (IMAGE * channels + RESULT * rows)
    streamed = 4.0 * BALANCE * (form.products - 9) * rows * channels
    return products + transforms + streamed


def products_of(convolution: Problem, form: Form) -> int:
    """Counts the flops of the products and of the transforms."""
    count = convolution.batch * math.prod(form.tiles(convolution))
    rows, channels = convolution.rows, convolution.channels
    return count * (2 * form.products * rows * channels + form.image_flops * channels + form.result_flops * rows)


def transformed(left: np.ndarray, convolution: Problem, form: Form) -> np.ndarray:
    """Transforms a kernel [rows, channels * 9] in f64, enlarged and rounded once, to [rows / tall, products, channels, tall].

    That is the order in which the tiles read it, so that a kernel too large for the caches comes from memory in one stream.
    """
    taps = left.astype(np.float64).reshape(-1, 9)
    spread = np.kron(form.spread, form.spread) * form.enlargement @ taps.T
    tall = tiles(host()).tall
    whole = np.zeros((form.products, -(-convolution.rows // tall) * tall, convolution.channels), left.dtype)
    with np.errstate(over="ignore"):  # sums with such a factor are not finite, and then the direct kernel runs
        whole[:, : convolution.rows] = spread.reshape(form.products, convolution.rows, convolution.channels)
    blocks = whole.reshape(form.products, -1, tall, convolution.channels)
    return np.ascontiguousarray(blocks.transpose(1, 0, 3, 2))


class Cut(NamedTuple):
    """One way to do the work: workers, argument blocks without addresses (None where nothing is copied), bytes of a slot and of all."""

    threads: int
    block: array[int]
    copy: array[int] | None
    slot_bytes: int
    scratch_bytes: int


class Winograd:
    """A convolution of one shape, ready to run on a transformed kernel; safe to run from several threads."""

    def __init__(
        self,
        convolution: Problem,
        dtype: str,
        limits: tuple[float, float],
        activation: str,
        residual_last: bool,
        form: Form,
    ) -> None:
        self.form = form
        self.problem, self.dtype = convolution, numpy_dtype(dtype)
        self.lanes, self.tall = host().lanes(dtype), tiles(host()).tall
        shares, channels = host().shares_panels, convolution.channels
        self.together = self.tall * (2 if shares and channels >= SHARING_CHANNELS else 1)
        self.right_bytes = NEAR_BYTES if shares and channels >= 2 * SHARING_CHANNELS else RIGHT_BYTES
        self.down, self.across = form.tiles(convolution)
        self.padded = whole_tiles(convolution, form)
        self.planes = planes(self.padded)
        self.residues = residues_of(self.planes)
        self.kernel, self.copier = kernel("winograd", dtype, str(form.side)), kernel("planes", dtype)
        self.table = width_table(dtype, "packed")
        self.activation = kernel("activation", dtype, activation) if activation != "none" else None
        self.limits = np.array(limits, self.dtype)
        self.residual_last = residual_last
        self.cuts: Known[tuple[int, tuple[int, ...], tuple[int, ...], bool], Cut] = Known()
        self.every, self.present = (self._masks(width) for width in (None, convolution.image[2]))
        self.zeros = np.zeros((form.side + 1) * self.lanes, self.dtype)
        self.pitches: dict[int, np.ndarray] = {}

    def run(
        self,
        image: tuple[int, ...],
        out: tuple[int, ...],
        addresses: tuple[int, int, int, int, int, int],
        threads: int,
        planes: int = 0,
    ) -> bool:
        """Runs it; gives whether every sum was finite. Else the result holds nothing that counts.

        Args:
            image: Strides in elements of batch, channel, depth, height, width.
            out: Strides in elements of batch, group, row, depth, height, width; columns are dense.
            addresses: Of the image, the transformed kernel, scale over `enlargement`, shift, residual (0 for none) and the result.
            threads: How many workers may take part.
            planes: Address of the image's planes where it lies in such (`reads_planes`); 0 where it does not.
        """
        key = (threads, image, out, planes != 0)
        cut = self.cuts.get(key) or self.cuts.keep(key, self._cut(*key))
        scratch = Scratch(cut.scratch_bytes)
        checks = np.zeros((cut.threads, 64 // self.dtype.itemsize), self.dtype)
        read, block = planes or addresses[0], array("q", cut.block)
        if cut.copy is not None:
            read, copy = scratch.address + cut.slot_bytes * cut.threads, array("q", cut.copy)
            copy[_P["x"]], copy[_P["planes"]] = addresses[0], read
            launch(self.copier, copy, cut.threads)
        block[_W["image"]], block[_W["scratch"]], block[_W["checks"]] = read, scratch.address, address_of(checks)
        for name, address in zip(("left", "scale", "shift", "residual", "out"), addresses[1:], strict=True):
            block[_W[name]] = address
        launch(self.kernel, block, cut.threads)
        return bool(checks.sum() == 0.0)

    @property
    def alone_rows(self) -> int:
        """Counts the rows of tiles that a worker holds who is alone."""
        return self._block_rows(1)

    def reads_planes(self, margins: Margins) -> bool:
        """Tells whether planes that another kernel wrote into are those that an image is copied to."""
        laid = self.planes
        return (laid.pitch, laid.channel) == (margins.pitch, margins.plane) and self._slack() <= margins.behind

    def _cut(self, threads: int, image: tuple[int, ...], out: tuple[int, ...], laid: bool) -> Cut:
        """Cuts the work; `laid` says that the image lies in planes."""
        rows = self._block_rows(threads)
        tile_rows = self.problem.batch * self.down
        items = -(-tile_rows // rows)
        # where tiles are few, every worker takes all of them for a part of the rows, so that lanes stay full
        splits = -(-2 * threads // items) if threads > 1 and items < 2 * threads else 1
        part = -(-self.problem.rows // (splits * self.tall)) * self.tall
        splits = -(-self.problem.rows // part)
        items *= splits
        pitch = self._right_pitch(rows)
        offsets = self.pitches.setdefault(pitch, np.arange(self.problem.channels, dtype=np.int64) * pitch)
        workers = max(1, min(threads, items))
        slot = spaced(self._slot_bytes(rows), workers)
        right_at = aligned(8 * len(TILE))
        sums_at = right_at + self._right_bytes(rows)
        words = {
            "items": items, "splits": splits, "split_rows": part, "together": self.together, "tile_rows": tile_rows, "block_rows": rows, "down": self.down, "across": self.across,
            "rows": self.problem.rows, "channels": self.problem.channels, "tiles": address_of(self.table), "offsets": address_of(offsets),
            "right_pitch": pitch, "out_batch": out[0], "out_row": out[2], "out_height": out[4],
            "height": self.problem.result[1], "width": self.problem.result[2],
            "residual_last": int(self.residual_last), "limits": address_of(self.limits),
            "activation": self.activation.address if self.activation else 0, "slot_bytes": slot,
            "right_at": right_at, "sums_at": sums_at, "lines_at": sums_at + self._sums_bytes(rows),
        }  # fmt: skip
        in_place = host().masked and columns_follow(self.problem, image)
        words |= self._image_words(image) if in_place and not laid else self._plane_words()
        if in_place or laid:
            return Cut(workers, template(WINOGRAD, words), None, slot, slot * workers)
        copy = copy_block(self.padded, self.planes, self.residues, image)
        return Cut(workers, template(WINOGRAD, words), copy, slot, slot * workers + self._plane_bytes())

    def _image_words(self, image: tuple[int, ...]) -> dict[str, int]:
        """Tells how an image is read where it is: rows and columns outside of it are zeros."""
        batch, channel, _, height, _ = image
        _, down, across = self.problem.windows
        size = self.problem.batch * self.problem.channels * self.problem.image[1] * self.problem.image[2]
        far = size * self.dtype.itemsize >= FAR_BYTES
        return {
            "image_batch": batch, "image_channel": channel, "pitch": height, "image_height": self.problem.image[1],
            "row_low": down.low, "column_low": across.low, "masks": address_of(self.present),
            "zeros": address_of(self.zeros),
            "asked": max(0, self.form.side * height * self.dtype.itemsize) if far else 0,
        }  # fmt: skip

    def _plane_words(self) -> dict[str, int]:
        plane = self.planes.channel
        return {
            "image_batch": self.problem.channels * plane, "image_channel": plane, "pitch": self.planes.pitch,
            "image_height": UNBOUNDED, "masks": address_of(self.every), "zeros": address_of(self.zeros),
        }  # fmt: skip

    def _masks(self, width: int | None) -> np.ndarray:
        """Gives i64[registers of tiles, side + 1]: the columns that exist of those that a tile's registers read; all for None."""
        side, lanes = self.form.side, self.lanes
        registers = -(-self.across // lanes)
        first = np.arange(registers)[:, None] * side * lanes + np.arange(side + 1) * lanes
        columns = first[:, :, None] + np.arange(lanes) - self.problem.windows[2].low
        flags = (columns >= 0) & (columns < width) if width is not None else np.ones_like(columns, bool)
        return np.ascontiguousarray((flags.astype(np.int64) << np.arange(lanes)).sum(2))

    def _block_rows(self, threads: int) -> int:
        """Chooses how many tile rows an item holds: cached, enough items for everybody, lanes as full as can be."""
        tile_rows = self.problem.batch * self.down
        row_bytes = self.form.products * self.problem.channels * self.across * self.dtype.itemsize
        unit = tiles(host()).tall_vectors * self.lanes
        most = max(self.right_bytes // row_bytes, -(-unit // self.across), 1)
        if threads > 1:
            full = -(-self.lanes // self.across)
            most = min(most, max(full, -(-tile_rows // (2 * threads))))
        most = min(most, tile_rows)

        def cost(rows: int) -> float:
            """Counts registers of all items, and what each item's left operand costs to read again."""
            whole, rest = divmod(tile_rows, rows)
            registers = whole * -(-rows * self.across // self.lanes) + -(-rest * self.across // self.lanes)
            return registers + 0.5 * (whole + bool(rest))

        return min(range(max(1, most // 2), most + 1), key=lambda rows: (cost(rows), rows))

    def _right_pitch(self, rows: int) -> int:
        return -(-rows * self.across // self.lanes) * self.lanes

    def _right_bytes(self, rows: int) -> int:
        return aligned(
            self.form.products * (self.problem.channels * self._right_pitch(rows) + self.lanes) * self.dtype.itemsize
        )

    def _sums_bytes(self, rows: int) -> int:
        return aligned(
            (self.form.products * self.together * self._right_pitch(rows) + self.lanes) * self.dtype.itemsize
        )

    def _slot_bytes(self, rows: int) -> int:
        lines = aligned(
            self.form.side * self.form.side * -(-self.across // self.lanes) * self.lanes * self.dtype.itemsize
        )
        return aligned(8 * len(TILE)) + self._right_bytes(rows) + self._sums_bytes(rows) + lines + 64

    def _plane_bytes(self) -> int:
        """Counts the planes and what is read behind them."""
        elements = self.problem.batch * self.problem.channels * self.planes.channel + self._slack()
        return aligned(elements * self.dtype.itemsize)

    def _slack(self) -> int:
        """Counts the elements that the last tiles of a register read behind the planes."""
        return self.form.side * self.lanes * (-(-self.across // self.lanes) + 1)


def whole_tiles(convolution: Problem, form: Form) -> Problem:
    """Pads the image with zeros so that results are whole tiles."""
    height, width = (count * form.side for count in form.tiles(convolution))
    depth, *sliding = convolution.windows
    wide = [
        replace(window, high=window.high + extent - present)
        for window, extent, present in zip(sliding, (height, width), convolution.result[1:], strict=True)
    ]
    return replace(convolution, result=(1, height, width), windows=(depth, wide[0], wide[1]))
