"""The vocoder of XTTS v2: HiFi-GAN (Kong et al. 2020) from what its GPT makes of codes, and a speaker's vector, to a waveform.

Tensors have the names of `hifigan_decoder.waveform_decoder` in coqui's checkpoints; a checkpoint's normalized weights are multiplied out.
"""

import math
from fractions import Fraction

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import foreign

RATE = 24000
# The frames of the GPT are of 1024 samples at 22,050 Hz, those of the generator of 256 at 24,000 Hz.
_FRAMES, _RATES = (4, 1), (160, 147)
_STRIDES, _DILATIONS, _KERNELS = (8, 8, 2, 2), (1, 3, 5), (3, 7, 11)
_SLOPE, _LAST_SLOPE = 0.1, 0.01
WIDTH, CHANNELS, SPEAKER = 1024, 512, 512


class Block(nn.Module):
    def __init__(self, width: int, kernel: int):
        super().__init__()
        layer = lambda dilation: nn.Conv1d(width, width, kernel, dilation=dilation, padding=dilation * (kernel - 1) // 2)
        self.convs1, self.convs2 = nn.ModuleList(map(layer, _DILATIONS)), nn.ModuleList(layer(1) for _ in _DILATIONS)

    def forward(self, x: Tensor) -> Tensor:
        for wide, narrow in zip(self.convs1, self.convs2, strict=True):
            x = x + narrow(F.leaky_relu(wide(F.leaky_relu(x, _SLOPE)), _SLOPE))
        return x


class Vocoder(nn.Module):
    """Each layer of upsampling halves the channels. It is followed by the mean of a block of each kernel."""

    def __init__(self, width: int = WIDTH, channels: int = CHANNELS, speaker: int = SPEAKER):
        super().__init__()
        widths = [channels >> i for i in range(len(_STRIDES) + 1)]
        self.conv_pre, self.cond_layer = nn.Conv1d(width, channels, 7, padding=3), nn.Conv1d(speaker, channels, 1)
        self.ups = nn.ModuleList(nn.ConvTranspose1d(inner, outer, 2 * stride, stride, padding=stride // 2)
                                 for inner, outer, stride in zip(widths, widths[1:], _STRIDES, strict=False))
        self.conds = nn.ModuleList(nn.Conv1d(speaker, inner, 1) for inner in widths[1:])
        self.resblocks = nn.ModuleList(Block(inner, kernel) for inner in widths[1:] for kernel in _KERNELS)
        self.conv_post = nn.Conv1d(widths[-1], 1, 7, padding=3, bias=False)

    def forward(self, latents: Tensor, speaker: Tensor) -> Tensor:
        """f32[B, samples] of f32[B, T, width] and f32[B, speaker]."""
        x = stretched(stretched(latents, *_FRAMES), *_RATES)
        voice = speaker[:, :, None]
        x = self.conv_pre(x.transpose(1, 2)) + self.cond_layer(voice)
        for i, (up, condition) in enumerate(zip(self.ups, self.conds, strict=True)):
            x = up(F.leaky_relu(x, _SLOPE)) + condition(voice)
            blocks = self.resblocks[i * len(_KERNELS):(i + 1) * len(_KERNELS)]
            x = sum((block(x) for block in blocks[1:]), blocks[0](x)) / len(_KERNELS)
        return torch.tanh(self.conv_post(F.leaky_relu(x, _LAST_SLOPE)))[:, 0]


def stretched(x: Tensor, up: int, down: int) -> Tensor:
    """F.interpolate's mode "linear" of x[B, T, C], to T * up // down frames."""
    at = ((torch.arange(x.shape[1] * up // down) + 0.5) * (down / up) - 0.5).clamp(min=0)
    left = at.long()
    # The last frame's number is a tensor: of a size, a GPU would have to be told.
    right = torch.minimum(left + 1, torch.arange(x.shape[1]).amax(0))
    part = (at - left.float())[None, :, None]
    return (1 - part) * x.index_select(1, left) + part * x.index_select(1, right)


def windows() -> dict[str, int]:
    """`vocoder` of docs/synthesize.md: how far a sample reaches among the latents, and after how many of them a sample begins anew."""
    hop, frames = math.prod(_STRIDES), Fraction(*_FRAMES) * Fraction(*_RATES)
    reach, rate = Fraction(3), 1
    for stride in _STRIDES:
        # A layer of upsampling reaches the next frames, and the largest kernel has the longest reach of a block's.
        reach += Fraction(1, rate)
        rate *= stride
        reach += Fraction(sum((max(_KERNELS) - 1) // 2 * (dilation + 1) for dilation in _DILATIONS), rate)
    reach += Fraction(3, rate)
    # A frame is between two latents.
    return {"context": math.ceil(reach / frames) + 1, "latents": frames.denominator, "samples": frames.numerator * hop}


def load(weights: dict[str, Tensor]) -> Vocoder:
    """Of the tensors of waveform_decoder. Raises foreign.Unfit if they are others."""
    plain = multiplied(weights)
    channels, width, _ = foreign.shape(plain, "conv_pre.weight", 3)
    if channels % (1 << len(_STRIDES)):
        raise foreign.Unfit(f"conv_pre.weight has {channels} channels, which {len(_STRIDES)} layers cannot halve")
    made = Vocoder(width, channels, foreign.shape(plain, "cond_layer.weight", 3)[1])
    foreign.load(made, plain)
    return made.eval()


def multiplied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """With a weight in place of its norm and its direction (Salimans and Kingma 2016), under the names of both forms of PyTorch. Raises foreign.Unfit."""
    plain = {}
    for name, x in weights.items():
        path, _, kind = name.rpartition(".")
        if kind in ("original0", "weight_g"):
            continue
        if kind in ("original1", "weight_v"):
            norm, axes = f"{path}.original0" if kind == "original1" else f"{path}.weight_g", x.dim()
            if foreign.shape(weights, norm, axes) != (len(x), *[1] * (axes - 1)):
                raise foreign.Unfit(f"{norm} is {list(weights[norm].shape)}, for a direction of {list(x.shape)}")
            # The norm is that of each entry of the first axis.
            x, name = torch._weight_norm(x.float(), weights[norm].float(), 0), f"{path.removesuffix('.parametrizations.weight')}.weight"
        plain[name] = x.float()
    return plain
