"""Recurrent, dilated and encoder-decoder models."""

from __future__ import annotations

import torch
from torch import nn


class GatedBlock(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = dilation
        self.filter, self.gate = (nn.Conv1d(width, width, 2, dilation=dilation) for _ in range(2))
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        padded = nn.functional.pad(x, (self.pad, 0))
        y = self.out(torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded)))
        return x + y, y


class WaveNet(nn.Module):
    def __init__(self, width: int = 64, layers: int = 10) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.blocks = nn.ModuleList(GatedBlock(width, 2 ** (at % 10)) for at in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 256, 1))

    def forward(self, x):
        x = self.first(x)
        total = 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        return self.last(total)


class Tagger(nn.Module):
    def __init__(self, kind: str = "LSTM") -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.recurrent = getattr(nn, kind)(32, 64, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(128, 7)

    def forward(self, ids):
        states, _ = self.recurrent(self.embedding(ids))
        return self.out(states)


class CellLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(16, 32)

    def forward(self, x):
        h, c = x.new_zeros(x.shape[0], 32), x.new_zeros(x.shape[0], 32)
        for at in range(x.shape[1]):
            h, c = self.cell(x[:, at], (h, c))
        return h


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(256, 8, 1024, batch_first=True), 4)

    def forward(self, x, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.layers(x, memory, tgt_mask=mask, tgt_is_causal=True)
