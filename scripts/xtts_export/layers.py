"""Layers whose gradients are matrix products, which is what plain ONNX, and a GPU, can do in a fixed order.

`Conv1d` takes the place of `nn.Conv1d` under the same parameters. The exporter does so by itself for whatever calls
`torch.nn.functional.conv1d` (see convolutions.py); use the layer to train in PyTorch with the very arithmetic of the graph.
"""

from torch import Tensor, nn

from . import pads
from .convolutions import conv1d


class Conv1d(nn.Conv1d):
    """nn.Conv1d as products of matrices with shifted copies of the input. Its state_dict is nn.Conv1d's."""

    def forward(self, x: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = pads.pad(x, self._reversed_padding_repeated_twice, self.padding_mode), 0
        return conv1d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
