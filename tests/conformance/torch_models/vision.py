"""Vision models as people write them, built from code: names, widths and depths of the papers."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import nn


def conv_bn(
    inner: int, out: int, size: int, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU
) -> nn.Sequential:
    layers = [nn.Conv2d(inner, out, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, *([] if act is None else [act(inplace=True)]))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inner: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = conv_bn(inner, width, 1, stride, act=None) if stride != 1 or inner != width else None

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inner: int, width: int, stride: int = 1) -> None:
        super().__init__()
        out = width * self.expansion
        self.conv1 = nn.Conv2d(inner, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = conv_bn(inner, out, 1, stride, act=None) if stride != 1 or inner != out else None

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        identity = x if self.downsample is None else self.downsample(x)
        return self.relu(out + identity)


class ResNet(nn.Module):
    def __init__(self, block: type, depths: tuple[int, ...], classes: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inner, layers = width, []
        for at, depth in enumerate(depths):
            blocks = []
            for each in range(depth):
                blocks.append(block(inner, width * 2**at, 2 if at and not each else 1))
                inner = width * 2**at * block.expansion
            layers.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.fc = nn.Linear(inner, classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def resnet18() -> nn.Module:
    return ResNet(BasicBlock, (2, 2, 2, 2))


def resnet50() -> nn.Module:
    return ResNet(Bottleneck, (3, 4, 6, 3))


def resnet_small() -> nn.Module:
    return ResNet(BasicBlock, (1, 1, 1, 1), classes=10, width=8)


class InvertedResidual(nn.Module):
    def __init__(self, inner: int, out: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = inner * expand
        layers = [] if expand == 1 else [conv_bn(inner, hidden, 1, act=nn.ReLU6)]
        layers += [conv_bn(hidden, hidden, 3, stride, hidden, act=nn.ReLU6), conv_bn(hidden, out, 1, act=None)]
        self.conv = nn.Sequential(*layers)
        self.residual = stride == 1 and inner == out

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, width: float = 1.0, classes: int = 1000) -> None:
        super().__init__()
        rows = [
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ]
        inner = int(32 * width)
        layers = [conv_bn(3, inner, 3, 2, act=nn.ReLU6)]
        for expand, channels, count, stride in rows:
            for at in range(count):
                out = int(channels * width)
                layers.append(InvertedResidual(inner, out, stride if at == 0 else 1, expand))
                inner = out
        layers.append(conv_bn(inner, 1280, 1, act=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, squeezed: int, gate: type, act: type) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x):
        return x * self.gate(self.fc2(self.act(self.fc1(self.pool(x)))))


class MBConv(nn.Module):
    """EfficientNet's block with SiLU, MobileNetV3's with Hardswish."""

    def __init__(
        self, inner: int, out: int, size: int, stride: int, hidden: int, squeeze: int, act: type, gate: type
    ) -> None:
        super().__init__()
        layers = [] if hidden == inner else [conv_bn(inner, hidden, 1, act=act)]
        layers.append(conv_bn(hidden, hidden, size, stride, hidden, act=act))
        if squeeze:
            layers.append(SqueezeExcite(hidden, squeeze, gate, nn.SiLU if act is nn.SiLU else nn.ReLU))
        layers.append(conv_bn(hidden, out, 1, act=None))
        self.block = nn.Sequential(*layers)
        self.residual = stride == 1 and inner == out

    def forward(self, x):
        y = self.block(x)
        return x + y if self.residual else y


class EfficientNetB0(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        rows = [
            (1, 3, 1, 16, 1),
            (6, 3, 2, 24, 2),
            (6, 5, 2, 40, 2),
            (6, 3, 2, 80, 3),
            (6, 5, 1, 112, 3),
            (6, 5, 2, 192, 4),
            (6, 3, 1, 320, 1),
        ]
        inner = 32
        layers = [conv_bn(3, inner, 3, 2, act=nn.SiLU)]
        for expand, size, stride, out, count in rows:
            for at in range(count):
                layers.append(
                    MBConv(
                        inner,
                        out,
                        size,
                        stride if at == 0 else 1,
                        inner * expand,
                        max(1, inner // 4),
                        nn.SiLU,
                        nn.Sigmoid,
                    )
                )
                inner = out
        layers.append(conv_bn(inner, 1280, 1, act=nn.SiLU))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(1280, classes)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class MobileNetV3(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        rows = [(3, 16, 16, 1, 2, 0), (3, 72, 24, 0, 2, 0), (3, 88, 24, 0, 1, 0), (5, 96, 40, 1, 2, 1), (5, 240, 40, 1, 1, 1),
                (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 2, 1), (5, 576, 96, 1, 1, 1)]  # fmt: skip
        inner = 16
        layers = [conv_bn(3, inner, 3, 2, act=nn.Hardswish)]
        for size, hidden, out, squeeze, stride, swish in rows:
            act = nn.Hardswish if swish else nn.ReLU
            layers.append(MBConv(inner, out, size, stride, hidden, hidden // 4 if squeeze else 0, act, nn.Hardsigmoid))
            inner = out
        layers.append(conv_bn(inner, 576, 1, act=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, classes))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width: int, drop: float) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(1e-6 * torch.ones(width))
        self.drop = drop

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.gamma * self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(
        self, depths: tuple[int, ...] = (3, 3, 9, 3), widths: tuple[int, ...] = (96, 192, 384, 768), classes: int = 1000
    ) -> None:
        super().__init__()
        stem = nn.Sequential(nn.Conv2d(3, widths[0], 4, 4), LayerNorm2d(widths[0], eps=1e-6))
        self.downs = nn.ModuleList([stem])
        for inner, out in itertools.pairwise(widths):
            self.downs.append(nn.Sequential(LayerNorm2d(inner, eps=1e-6), nn.Conv2d(inner, out, 2, 2)))
        rates = [x.item() for x in torch.linspace(0, 0.1, sum(depths))]  # the constructor reads values
        self.stages = nn.ModuleList()
        for depth, width in zip(depths, widths, strict=True):
            self.stages.append(nn.Sequential(*(ConvNeXtBlock(width, rates.pop(0)) for _ in range(depth))))
        self.norm = nn.LayerNorm(widths[-1], eps=1e-6)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        for down, stage in zip(self.downs, self.stages, strict=True):
            x = stage(down(x))
        return self.head(self.norm(x.mean([-2, -1])))


class DenseLayer(nn.Module):
    def __init__(self, inner: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inner), nn.Conv2d(inner, 4 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(F.relu(self.norm2(y)))], 1)


class DenseNet(nn.Module):
    def __init__(self, depths: tuple[int, ...] = (6, 12, 24, 16), growth: int = 32, classes: int = 1000) -> None:
        super().__init__()
        inner = 2 * growth
        layers = [conv_bn(3, inner, 7, 2), nn.MaxPool2d(3, 2, 1)]
        for at, depth in enumerate(depths):
            for _ in range(depth):
                layers.append(DenseLayer(inner, growth))
                inner += growth
            if at + 1 < len(depths):
                layers += [
                    nn.BatchNorm2d(inner),
                    nn.ReLU(),
                    nn.Conv2d(inner, inner // 2, 1, bias=False),
                    nn.AvgPool2d(2),
                ]
                inner //= 2
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(inner))
        self.classifier = nn.Linear(inner, classes)

    def forward(self, x):
        return self.classifier(F.relu(self.features(x)).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self, width: int = 64, depth: int = 4, classes: int = 2) -> None:
        super().__init__()

        def double(inner: int, out: int) -> nn.Module:
            return nn.Sequential(conv_bn(inner, out, 3), conv_bn(out, out, 3))

        widths = [width * 2**at for at in range(depth + 1)]
        self.downs = nn.ModuleList(double(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in itertools.pairwise(widths))
        self.merges = nn.ModuleList(double(b, a) for a, b in itertools.pairwise(widths))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for at, down in enumerate(self.downs):
            x = down(x)
            if at + 1 < len(self.downs):
                kept.append(x)
                x = F.max_pool2d(x, 2)
        for up, merge in zip(reversed(self.ups), reversed(self.merges), strict=True):
            x = merge(torch.cat([kept.pop(), up(x)], dim=1))
        return self.last(x)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        x = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return self.proj(x)


class ViTBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(
        self, width: int = 768, depth: int = 12, heads: int = 12, size: int = 224, patch: int = 16, classes: int = 1000
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(ViTBlock(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class WindowAttention(nn.Module):
    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])

    def forward(self, x, mask=None):
        count, length, width = x.shape
        q, k, v = self.qkv(x).reshape(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * (width // self.heads) ** -0.5 @ k.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(length, length, -1).permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            scores = scores.view(-1, mask.shape[0], self.heads, length, length) + mask[None, :, None]
            scores = scores.view(-1, self.heads, length, length)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(count, length, width))


class SwinBlock(nn.Module):
    def __init__(self, width: int, heads: int, size: int, window: int, shift: int) -> None:
        super().__init__()
        self.size, self.window, self.shift = size, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = WindowAttention(width, heads, window)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        mask = None
        if shift:
            image = torch.zeros(1, size, size, 1)
            count = 0
            parts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
            for rows in parts:
                for columns in parts:
                    image[:, rows, columns] = count
                    count += 1
            flat = self.split(image).squeeze(-1)
            apart = flat.unsqueeze(1) - flat.unsqueeze(2)
            mask = apart.masked_fill(apart != 0, -100.0).masked_fill(apart == 0, 0.0)
        self.register_buffer("mask", mask)

    def split(self, x):
        batch, height, width, channels = x.shape
        x = x.view(batch, height // self.window, self.window, width // self.window, self.window, channels)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window * self.window, channels)

    def forward(self, x):
        batch, height, width, channels = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.attn(self.split(y), self.mask)
        y = y.view(batch, height // self.window, width // self.window, self.window, self.window, channels)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, channels)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduction(self.norm(x))


class Swin(nn.Module):
    def __init__(self, width: int = 96, depths: tuple[int, ...] = (2, 2, 6, 2), heads: tuple[int, ...] = (3, 6, 12, 24),
                 size: int = 224, window: int = 7, classes: int = 1000) -> None:  # fmt: skip
        super().__init__()
        self.patches, self.norm0 = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        size //= 4
        layers: list[nn.Module] = []
        for at, (depth, count) in enumerate(zip(depths, heads, strict=True)):
            for each in range(depth):
                shift = window // 2 if each % 2 and size > window else 0
                layers.append(SwinBlock(width, count, size, window, shift))
            if at + 1 < len(depths):
                layers.append(PatchMerging(width))
                width, size = 2 * width, size // 2
        self.layers, self.norm, self.head = nn.Sequential(*layers), nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.norm0(self.patches(x).permute(0, 2, 3, 1))
        return self.head(self.norm(self.layers(x)).mean((1, 2)))


class Generator(nn.Module):
    """DCGAN's generator: transposed convolutions."""

    def __init__(self, noise: int = 100, width: int = 64) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        widths = [noise, width * 8, width * 4, width * 2, width]
        for at, (inner, out) in enumerate(itertools.pairwise(widths)):
            stride, padding = (1, 0) if at == 0 else (2, 1)
            layers += [
                nn.ConvTranspose2d(inner, out, 4, stride, padding, bias=False),
                nn.BatchNorm2d(out),
                nn.ReLU(True),
            ]
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, x):
        return self.main(x)


class Video(nn.Module):
    """A small 3-D network."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv3d(3, width, 3, padding=1, bias=False), nn.BatchNorm3d(width)
        self.conv2, self.bn2 = nn.Conv3d(width, 2 * width, 3, 2, 1, bias=False), nn.BatchNorm3d(2 * width)
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = F.max_pool3d(F.relu(self.bn1(self.conv1(x))), (1, 2, 2))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3, 4)))
