"""A residual block with batch norms in inference mode, as vision networks have them."""

import numpy as np

import topos_core as tp
from topos_core import nn

CHANNELS = 32


def example(seed):
    """Gives normal images and kernels, and norms whose variances are positive, as training leaves them."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((4, CHANNELS, 28, 28), np.float32)
    kernels = generator.standard_normal((2, CHANNELS, CHANNELS, 3, 3), np.float32) / np.float32(17)
    norms = generator.standard_normal((8, CHANNELS), np.float32)
    norms[1::4] = np.exp(norms[1::4])
    return x, *kernels, norms


@tp.model(
    x=tp.f32[4, CHANNELS, 28, 28],
    first=tp.f32[CHANNELS, CHANNELS, 3, 3],
    second=tp.f32[CHANNELS, CHANNELS, 3, 3],
    norms=tp.f32[8, CHANNELS],
    example=example,
)
def block(x, first, second, norms):
    hidden = nn.conv2d(x, first, padding=1)
    hidden = nn.relu(nn.batch_norm(hidden, norms[0], norms[1], norms[2], norms[3]))
    hidden = nn.conv2d(hidden, second, padding=1)
    hidden = nn.batch_norm(hidden, norms[4], norms[5], norms[6], norms[7])
    return np.maximum(hidden + x, 0)
