"""Argument blocks: which word of a block of `int64` means what, for the code that fills and for the code that reads it.

Imported by both sides, so it knows neither numba nor arrays.
"""

from __future__ import annotations

from typing import Final

LINE: Final = 64
"""Bytes of a cache line."""
PAGE: Final = 4096
"""Bytes that are readable together on every machine."""


TILE: Final = (
    "left",  # address of the left operand's first row
    "left_stride",  # elements between its rows
    "rows",  # rows that exist, at most the tile's
    "right",  # address of the right operand's first lane
    "offsets",  # address of i64[steps]: elements from `right` to the lanes of each step
    "steps",  # contracted extent, at least 1
    "ahead",  # address of memory that is read soon: step k asks for the cache line `ahead_step` bytes times k behind it
    "ahead_step",  # 0 where nothing is to be asked for
    "sums",  # address of the tile's own rows of vectors * lanes
    "sums_stride",  # elements between them
    "resume",  # 1 adds to what stands in `sums`, 0 replaces it
    "ending",  # 1 finishes the tile in its registers and stores it through `runs`; no activation
    "vectors",  # registers per row, for `finish`
    "out",  # address of row 0, position 0
    "out_stride",  # elements between rows of `out`
    "scale",  # address of one factor per row
    "shift",  # address of one summand per row
    "residual",  # address of what is added, laid out as `out` but for the rows; 0 for nothing
    "residual_stride",  # elements between its rows; 0 repeats one row
    "residual_last",  # 1 adds it after clamping
    "limits",  # address of the smallest and the largest result
    "runs",  # address of i64[vectors, 4]: offset, mask, offset, mask; where the lanes of a register go in `out`
    "places",  # address of i64[vectors * lanes]: where a lane goes in `out`, below zero for nowhere
    "turn",  # address of the epilogue that turns a tile of this height, 0 for none
    "finished",  # 1 where `sums` are results already and are only to be stored
    "first", "last",  # positions of the tile that exist, for `spread`
    "source",  # what a producer reads for the chunk's first position
    "kept",  # where a tile that keeps what it reads stores it: [steps, its registers]
)  # fmt: skip
"""Words of a register tile's block."""


CONTRACTION: Final = (
    "counter",  # address of the next item to do
    "items",  # batch * groups * depth * chunks * splits
    "groups",
    "depth",  # slices of positions per group
    "chunks",  # chunks of positions per slice
    "splits",  # parts of the rows per chunk
    "rows",  # rows of `left` per group
    "split_rows",  # rows per part
    "part_by_part",  # 1: all chunks of one part of the rows, which stays cached, before the next part; 0: all parts of a chunk
    "steps",  # contracted extent
    "panel_bytes",  # bytes from a panel of the right operand to the next one, which is asked for meanwhile; 0 for none
    "next_lines",  # cache lines of each row of the right operand's next panel, or of what its producer reads next, that are asked for meanwhile
    "next_step",  # bytes between those rows
    "left_ahead",  # 1 where the next rows of `left` are to be asked for meanwhile
    "tiles",  # address of the tiles' addresses: 16 * kind + registers per row (kinds tall, short, flat); then `FINISH`
    "left",  # address of [groups * rows, steps]
    "right",  # address of what `offsets` counts from
    "right_batch", "right_group", "right_depth",  # elements between batches, groups and slices
    "right_chunk",  # elements between chunks of positions
    "right_size",  # elements that may be read from `right`; a tile that would read further is copied first
    "offsets",  # address of i64[steps]
    "copied_offsets",  # address of i64[steps] for a copied tile
    "copied_pitch",  # elements between steps of a copied tile
    "keeps",  # 1 where the first tall tile of a panel copies what it reads for those that follow, if there is such a tile
    "producer", "produced",  # address of a kernel (tile block, its own words) that makes a chunk's right operand; 0 for none
    "reach",  # the largest of `offsets`
    "positions",  # of a slice, in the pitch of `right`
    "chunk_positions",
    "pitch",  # positions from one image row to the next
    "width",  # positions of an image row that exist
    "out",
    "out_batch", "out_group", "out_row", "out_depth", "out_height", "out_width",  # elements
    "out_ahead",  # 1 where the lines that a tile writes are asked for before it runs; for the mode RUNS
    "scale",  # address of [groups * rows]
    "shift",  # address of [groups * rows]
    "residual",  # laid out as `out` but for the rows; 0 for nothing
    "residual_row",  # elements between its rows
    "residual_last",  # 1 adds it after limits and activation
    "limits",  # address of the smallest and the largest result
    "activation",  # address of a kernel (address, count) that runs in place; 0 for nothing
    "fused",  # 1 where the epilogues that finish by runs and across do all that is to do
    "scratch",  # address of one slot per worker
    "slot_bytes",
    "mode",  # which epilogue: LANES, RUNS or ACROSS
    "runs_at", "sums_at", "copied_at",  # bytes into a slot; the tile's block stands at its start
)  # fmt: skip
"""Words of a contraction: `out[b, g, r, p] = sum over k of left[g, r, k] * right[b, g, p + offsets[k]]`, finished."""

DEPTHWISE: Final = (
    "channels",  # steps of the contraction
    "multiplier",  # channels that read one channel of the image
    "channel_step",  # elements between channels of the image
    "pitch",  # elements between channels of what is made
    "taps",
    "offsets",  # address of i64[taps]: elements from a position to what the tap reads
    "weights",  # address of [channels, taps]
    "scale", "shift",  # addresses, one value per channel
    "limits",
    "masks",  # address of i64[registers, taps] or, for rows, i64[registers of a row, columns of the window and one]
    "row_pitch",  # positions from row to row, and elements of the image
    "registers",  # of a row
    "height",  # rows of the image
    "row_low", "column_low",  # what is added before the image
    "times", "steps",  # address of [channels, times, 3]: what is done to stored sums; `scale` and `shift` are not read then
)  # fmt: skip
"""Words of a depthwise convolution that makes the right operand of a pointwise one."""

LANES, RUNS, ACROSS = 0, 1, 2
"""Epilogues: lane by lane, by runs of lanes in masked stores, or turned so that a position's rows are stored together."""
FINISH: Final = 48
"""Where the epilogues' addresses stand in the table of tiles: by runs, lane by lane, and two for rows side by side."""
KEEPS: Final = 8
"""Where those of the tall tiles stand that keep what they read, by registers per row; 0 for none."""

OVERLAP: Final = 2
"""Rows and columns of one of Winograd's image tiles beside those of its result, for windows of 3."""

WINOGRAD: Final = (
    "counter",
    "items",  # blocks of tile rows * splits
    "tile_rows",  # batch * down
    "block_rows",  # per item
    "down", "across",  # tiles of one image
    "rows", "channels",
    "splits",  # parts of the rows per block of tile rows: an item each
    "together",  # rows whose tiles read each panel of a product one after the other: a multiple of the tall tiles'
    "split_rows",  # rows per part
    "image",  # address of the image, or of the planes that it lies in
    "image_batch", "image_channel",  # elements
    "pitch",  # elements between its rows; columns are dense
    "image_height",  # rows that exist; above the first one and below the last one stand zeros
    "row_low", "column_low",  # rows and columns of zeros before the image's
    "asked",  # bytes of a row of tiles that are asked for a channel ahead, 0 where the image is small
    "masks",  # address of i64[registers of tiles, side + 1]: which columns exist, a word for each register of columns that a tile reads
    "zeros",  # address of as many zeros as a row of tiles reads columns
    "left",  # address of [rows / tall, products, channels, tall]
    "tiles",  # as in `CONTRACTION`
    "offsets",  # address of i64[channels]: multiples of `right_pitch`
    "right_pitch",  # tiles of an item, rounded up to registers
    "out",
    "out_batch", "out_row", "out_height",  # elements; columns are dense
    "height", "width",  # of the result
    "scale", "shift",  # addresses of [rows]
    "residual",  # laid out as `out`; 0 for nothing
    "residual_last",  # 1 adds it after limits and activation
    "limits",  # address of the smallest and the largest result
    "activation",  # address of a kernel (address, count) that runs in place; 0 for nothing
    "checks",  # address of one cache line per worker: NaN where a sum is not finite, else 0
    "scratch", "slot_bytes",
    "right_at", "sums_at", "lines_at",  # bytes into a slot; the tile's block stands at its start
)  # fmt: skip
"""Words of a convolution by tiles of Winograd's transforms."""

PLANES: Final = (
    "counter",
    "items",  # batch * channels
    "channels",
    "x",
    "x_batch", "x_channel", "x_depth", "x_height", "x_width",  # elements
    "depth", "height", "width",  # extents of the image
    "depth_low", "height_low", "width_low",  # what is added before the image, may be negative
    "depth_stride", "height_stride", "width_stride",
    "depth_base", "height_base", "width_base",  # base dilation
    "depth_phases", "height_phases", "width_phases",  # how many residues of the stride any tap reads
    "residues",  # address of i64: the residues, axis after axis
    "planes",  # address of the result
    "plane_depth", "plane_height", "plane_width",  # extents of one plane; the width is the whole row that is written
    "pitch",  # elements from row to row, at most `plane_width`
    "slice",  # elements from depth to depth
    "phase",  # elements from plane to plane
    "tail",  # elements at the end of a plane that are set to zero
)  # fmt: skip
"""Words of the copy that pads an image and splits it by the residue of the stride, so that every tap reads runs."""

MARGINS: Final = (
    "counter",
    "items",  # planes
    "planes",  # address of the first one
    "plane",  # elements of one
    "pitch",  # elements from row to row
    "first",  # elements before the first row's first one
    "height", "width",  # extents of what lies in a plane
    "behind",  # elements behind the last plane
)  # fmt: skip
"""Words of the zeros around what lies in planes."""

WINDOW: Final = (
    "counter",
    "items",  # outer * chunks
    "chunks",  # chunks of result rows
    "chunk_rows",
    "rows", "columns", "inner",  # extents of the image
    "result_rows", "result_columns",
    "down_size", "down_stride", "down_dilation", "down_low",
    "across_size", "across_stride", "across_dilation", "across_low",
    "x", "x_outer", "x_row",  # columns and inner are dense
    "out", "out_outer", "out_row",
    "values",  # address of: what lies outside; a column of it, reduced down; the factor of the result
    "scratch", "slot_bytes",  # one line per worker: the columns that the windows of a result row read
)  # fmt: skip
"""Words of a window reduction over [outer, rows, columns, inner]."""


NORM: Final = (
    "counter",
    "items",
    "outer", "channels", "inner",  # x is [outer, channels, inner], dense
    "x",
    "out",
    "center", "factor", "summand",  # addresses, one value per channel: out = (x - center) * factor + summand
    "scale", "shift",  # addresses, one value per channel; 0 for ones and zeros
    "mean", "variance",  # addresses of f64 results, one per channel
    "epsilon",  # address of one f64
    "block_rows",  # rows per item, for kernels over rows
    "blocks", "strip",  # of a merger: blocks that were summed, and channels per item
    "streamed",  # as in `MAP`
    "first_totals", "totals",  # addresses of f64[blocks, channels] and f64[blocks, 2, channels]: see `row_statistics`
    "scratch", "slot_bytes",
)  # fmt: skip
"""Words of the normalisation kernels."""


MAP: Final = ("counter", "items", "count", "chunk", "x", "out", "streamed")
"""Words of a map over dense memory, `chunk` elements per item; where `streamed` is not 0, results go past the
caches and operands are asked for so many bytes early."""

ROWS: Final = (
    "counter",
    "items",
    "outer", "count", "inner",  # x is [outer, count, inner], dense; `count` is what is normalised over
    "chunk",  # outer rows per item, or inner columns per item
    "channels", "positions", "groups",  # of a group norm: count = channels * positions, scale and shift [groups, channels]
    "x",
    "residual", "sum",  # what is added to x, and where the rounded sum goes
    "out",
    "scale", "shift",  # addresses; 0 for none
    "epsilon",  # address of one f64
    "streamed",  # as in `MAP`
    "row_slot",  # bytes from one row in scratch to the next; 0 where rows are too long for it
    "scratch", "slot_bytes",
)  # fmt: skip
"""Words of softmax and of the norms of single examples."""

PAIR: Final = (
    "counter",
    "items",
    "count",  # elements, or rows
    "columns",  # of a row
    "chunk",  # elements or rows per item
    "x", "other",
    "totals",  # address of f64: one per item, or one per row
    "scratch", "slot_bytes",
)  # fmt: skip
"""Words of losses over two dense values."""

KEYS: Final = (
    "counter",
    "items",  # batches of keys * panels
    "keys", "width", "value_width",  # extents
    "panel_keys", "panels",
    "k", "k_at", "k_row",  # k_at: address of i64[batches], elements; a key's width is dense
    "v", "v_at", "v_row",
    "packed",  # address of [batches, panels, width, panel_keys]
    "beside", "value_pitch",  # address of [batches, keys, value_pitch]: values in rows of whole registers; 0 where they stay in place
    "checks",  # address of f64[items]: 0 where everything is finite, else NaN
)  # fmt: skip
"""Words of the layout of keys and values."""

ATTENTION: Final = (
    "counter",
    "items",  # batch * blocks
    "blocks", "block_rows",  # of query rows
    "queries", "keys", "width", "values",  # extents
    "panel_keys",
    "q", "q_at", "q_row",  # `_at`: address of i64[batch], elements; widths are dense
    "packed", "packed_at",
    "v", "v_at",  # rows of whole registers
    "mask", "mask_at", "mask_row",  # added; 0 for none
    "keep", "keep_at", "keep_row",  # bytes; 0 for none
    "keep_value",  # 1 where a flag keeps a score, 0 where it hides it
    "also", "also_at", "also_row",  # further bytes that keep scores; 0 for none
    "bias", "bias_at", "bias_row",  # added after those; 0 for none
    "drop", "drop_at", "drop_row",  # factors of the weights; 0 for none
    "out", "out_at", "out_row",
    "causal",  # 1 leaves keys behind the query out
    "fill_scaled",  # 1 fills before the scale
    "numbers",  # address of scale, fill and the factor of every weight
    "key_offsets", "value_offsets",  # addresses of i64[width] and i64[keys]
    "tiles",  # address of the middle tiles' addresses, by registers per row
    "pitch",  # elements between rows of scores
    "scratch", "slot_bytes",
    "totals_at", "sums_at", "scores_at",  # bytes into a slot; the tile's block stands at its start
)  # fmt: skip
"""Words of an attention."""

GATED: Final = (
    "counter",
    "items",
    "rows", "count",  # rows, and elements of one
    "chunk",  # rows per item
    "gate", "gate_at",  # `_at`: address of i64[rows], elements
    "up", "up_at",
    "out",  # [rows, count], dense; may be where the gate lies
)  # fmt: skip
"""Words of a product whose one side is activated."""

TURN: Final = (
    "counter",
    "items",
    "rows", "count",  # of x: positions, and pairs of one
    "chunk",  # rows per item
    *(f"{name}{word}" for name in ("x", "cos", "sin", "out") for word in ("", "_at", "_other", "_step")),
    "scratch", "slot_bytes",  # two rows of pairs per worker, for pairs that lie beside each other
)  # fmt: skip
"""Words of a turn of pairs: `_at` is the address of i64[rows], `_other` leads from a pair's first element to its second,
`_step` from pair to pair, all in elements."""

EXPRESSION: Final = (
    "counter",
    "items",  # groups of rows * parts of the inner loop
    "rows", "chunk_rows",
    "inner", "chunk_inner", "parts",  # extent of the inner loop, per item, and how many parts it has
    "outer_ranks", "outer_extents", "outer_strides",  # addresses of i64[ranks] and i64[operands + results, ranks], in bytes
    "blocks",  # reduced positions beside the inner ones
    "block_ranks", "block_extents", "block_strides",
    "addresses",  # address of i64[operands + results]
    "constants",  # address of 8 bytes per constant, its own dtype at the start of each
    "totals",  # address of 8 bytes per item: accumulators
    "streamed",  # as in `MAP`, for a map
)  # fmt: skip
"""Words of an expression over [rows, blocks, inner]."""

CREW: Final = (
    "ticket", *(f"apart{k}" for k in range(7)),  # job number << 32 | a bit for each free slot; a cache line of its own
    "done", *(f"off{k}" for k in range(7)),  # slots that have been run; a cache line of its own
    "kernel", "block",  # the job
    "workers",  # address of the `WORKER` blocks
    "helpers",  # how many of them a job may wake
    "counters",  # address of the job's counters, as `sharing.py` tells
    "lock", "unlock",  # addresses of the interpreter's functions that take and give back a lock of its own
    "spins",  # pauses that an idle worker stays awake for
)  # fmt: skip
"""Words that a crew of threads shares."""


WORKER: Final = (
    "crew",  # address of its crew's words
    "asleep",  # 1 from when it stops looking for work until somebody has undertaken to wake it
    "gate",  # the lock that it sleeps on
    "slot",  # the slot that it takes where it is free: its part of the items is the same in every job
    *(f"apart{k}" for k in range(4)),  # a cache line of its own
)  # fmt: skip
"""Words of one worker of a crew."""


def index(block: tuple[str, ...], name: str) -> int:
    """Gives the place of one word."""
    return block.index(name)
