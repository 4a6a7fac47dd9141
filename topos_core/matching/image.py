"""Roles of an image's axes: batch, features, and space."""

from __future__ import annotations

from collections.abc import Sequence

from topos_core.matching.layout import usual
from topos_core.matching.window import Axis


def image_roles(axes: Sequence[Axis], kernel: Sequence[int]) -> list[str] | None:
    """Names the role of every image axis: a usual order where one fits, else by kind; None where no layout can say it."""
    rank = len(axes)
    options = [(order, rank - 2) for order in usual(rank - 2, "bfS", "bSf")] if rank >= 2 else []
    depthwise = len(kernel) == rank and any(axis.kept for axis in axes if axis.kind == "channel")
    if len(kernel) == rank + 1 or depthwise:  # without a batch only where the kernel's rank says so
        options += [(order, rank - 1) for order in usual(rank - 1, "fS", "Sf")]
    options.sort(key=lambda option: option[1] != len(kernel) - 2)  # stable: the kernel's own rank decides first
    for order, _ in options:
        pairs = list(zip(axes, order, strict=True))
        if not all(_may_play(axis, role) for axis, role in pairs):
            continue
        if "b" not in order and any(axis.kind == "unit" and role != "f" for axis, role in pairs):
            continue  # that unit is the batch
        whole = any(axis.kind == "channel" and role != "f" for axis, role in pairs)
        lone_groups = any(axis.kind == "channel" and role == "f" and not axis.reduced for axis, role in pairs)
        if whole and lone_groups and (1 not in kernel or len(order) == len(kernel)):
            continue  # the reduced axis beside lone groups is their channel, not a spatial axis
        return list(order)
    return _roles_by_kind(axes)


def _roles_by_kind(axes: Sequence[Axis]) -> list[str] | None:
    """Names roles where no usual order fits: one run of channels, the first run of plain axes, all else spatial."""
    roles: list[str] = []
    plain_ended = False
    spatial = 0
    channels = _channel_run(axes)
    if channels is None:
        return None
    for k, axis in enumerate(axes):
        if k in channels:
            roles.append("f")
        elif axis.kind == "unit":
            roles.append("")
        elif axis.kind == "plain" and not plain_ended:
            roles.append("b")
            nxt = next((a for a in axes[k + 1 :] if a.kind != "unit"), None)
            plain_ended = nxt is None or nxt.kind != "plain"
        elif axis.kind in ("plain", "channel") or axis.genuine or (channels and not axis.kept):
            roles.append(str(spatial))
            spatial += 1
        else:
            return None
    return roles


def _channel_run(axes: Sequence[Axis]) -> set[int] | None:
    """Picks the neighbouring channel axes that are the features: those with groups, else the outermost run.

    A whole axis under a tap as long as itself looks like a channel too. None where groups stand in several runs.
    """
    runs: list[list[int]] = []
    before = ""
    for k, axis in enumerate(axes):
        if axis.kind == "channel":
            if before != "channel":
                runs.append([])
            runs[-1].append(k)
        before = axis.kind if axis.kind != "unit" else before
    grouped = [run for run in runs if any(axes[k].kept for k in run)]
    if len(grouped) > 1:
        return None
    if grouped:
        first = next(k for k in grouped[0] if axes[k].kept)
        return {k for k in grouped[0] if k >= first}  # groups are the major part of the features
    if not runs:
        return set()
    return set(runs[-1] if runs[-1][-1] == len(axes) - 1 else runs[0])


def _may_play(axis: Axis, role: str) -> bool:
    if axis.kind == "unit":
        return True
    if role == "b":
        return axis.kind == "plain"
    if role == "f":
        return axis.kind == "channel"
    return axis.kind in ("window", "plain") or (not axis.kept and axis.kind == "channel")
