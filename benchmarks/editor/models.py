"""The files that are edited: a 500-line model over NumPy, and a convolutional network of torch.

Each has one blocked region whose finding names the number of the edit, so that a diagnostic with that number can only come from a
new plan: results that were moved along still name the edit before.
"""

from collections.abc import Callable
from dataclasses import dataclass

LINES = 500
BLOCK = '''
def block{number}(x, weight, bias, scale, shift):
    """One block of the model."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    hidden = np.einsum("bchwij,ocij->bohw", windows, weight) + bias[:, None, None]
    mean = hidden.mean(axis=(0, 2, 3), keepdims=True)
    centred = hidden - mean
    variance = (centred * centred).mean(axis=(0, 2, 3), keepdims=True)
    normal = centred / np.sqrt(variance + 1e-5)
    normal = normal * scale.reshape(1, 8, 1, 1) + shift.reshape(1, 8, 1, 1)
    return np.maximum(normal, 0) + x
'''
NET = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, before, after, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(after)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


# topos: entry inputs=f32[1,3,64,64]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Block(3, 16)
        self.layers = nn.ModuleList(Block(16, 16) for _ in range(12))
        self.last = nn.Conv2d(16, {width}, 3, padding=1)
        self.head = nn.Linear({width}, 10)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        hidden = self.last(x)
        x = torch.relu(hidden)
        return self.head(x.mean(dim=(2, 3))), hidden
"""


@dataclass(frozen=True)
class Case:
    """A file under edit.

    Args:
        title: What it is called in the table.
        text: Gives the text of an edit, by its number.
        said: Gives what the blocked region's diagnostic says in that edit's plan and in no other's.
        here: A line, counted from 0, and a column, where a region has a hover.
        bar: Milliseconds that a new plan may take, the debounce not counted.
    """

    title: str
    text: Callable[[int], str]
    said: Callable[[int], str]
    here: Callable[[str], tuple[int, int]]
    bar: int


def numpy_case():
    """Gives the 500-line model; an edit renames what is observed."""
    return Case("topos file, 500 lines", _numpy_text, lambda number: f"`c{number}`", _line_of("    return c / "), 250)


def torch_case():
    """Gives the convolutional network; an edit widens its last convolution."""
    return Case(
        "torch CNN, 14 convolutions", lambda number: NET.format(width=17 + number), lambda number: f"-> {17 + number} ",
        _line_of("        x = torch.relu(hidden)"), 700,
    )  # fmt: skip


def _line_of(start):
    def find(text):
        lines = text.split("\n")
        number = next(k for k, line in enumerate(lines) if line.startswith(start))
        return number, len(lines[number]) - len(lines[number].lstrip()) + 7

    return find


def _numpy_text(edit):
    lines = ["import numpy as np", "", "import topos_core as tp", ""]
    blocks = 0
    while len(lines) < LINES - 30:
        lines += BLOCK.format(number=blocks).split("\n")
        blocks += 1
    lines += [
        "", "",
        "@tp.model(x=tp.f32[4, 8, 16, 16], w=tp.f32[8, 8, 3, 3], b=tp.f32[8], s=tp.f32[8], t=tp.f32[8])",
        "def main(x, w, b, s, t):",
        *(f"    x = block{each}(x, w, b, s, t)" for each in range(blocks)),
    ]  # fmt: skip
    tail = [
        "    c = x - x.mean(axis=(0, 2, 3), keepdims=True)",
        f'    tp.observe(c, "c{edit}")',
        "    v = (c * c).mean(axis=(0, 2, 3), keepdims=True)",
        "    return c / np.sqrt(v + 1e-5)",
    ]
    padding = LINES - len(lines) - len(tail)
    return "\n".join([*lines, *["    # so that the file has as many lines as it says"] * padding, *tail]) + "\n"
