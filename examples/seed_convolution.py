"""A convolution, bias, relu and 2x2 max-pool, written as the ordinary ops that they are."""

import numpy as np

import topos_core as tp
from topos_core import nn


@tp.model(weight=tp.f32[2, 1, 3, 3], bias=tp.f32[2], image=tp.f32[1, 1, 6, 6])
def main(weight, bias, image):
    hidden = nn.conv2d(image, weight, bias)
    return nn.max_pool(np.maximum(hidden, 0), 2)
