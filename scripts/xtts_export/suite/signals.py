"""Convolutions, pools, windows and resampling"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case
from .values import LongestRow


class _Frames(Case):
    """A linear layer, then `of` over [B, WIDTH, T], as f32[B, channels, any]."""

    # Odd and even: a stride must not take one of both for granted.
    buckets = ({"T": 25}, {"T": 60})

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.layers()

    def layers(self):
        pass

    def forward(self, x):
        return self.of(torch.tanh(self.linear(x)).transpose(1, 2)).transpose(1, 2)


class Convolutions(_Frames):
    """`nn.Conv1d` with stride, padding, dilation and groups, depthwise, with a kernel of 41, and `padding="same"`"""

    def layers(self):
        self.strided, self.grouped = nn.Conv1d(WIDTH, 12, 5, stride=3, padding=4, dilation=2), nn.Conv1d(12, 6, 4, groups=3, padding=2)
        self.depthwise, self.long = nn.Conv1d(6, 6, 3, groups=6, stride=2, padding=2), nn.Conv1d(6, 8, 41, groups=2, padding=20)
        self.same = nn.Conv1d(8, 8, 4, padding="same", bias=False)

    def of(self, y):
        return self.same(self.long(torch.tanh(self.depthwise(torch.tanh(self.grouped(torch.tanh(self.strided(y))))))))


class Convolutions2d(_Frames):
    """`nn.Conv2d` over spectrograms, with stride, padding, dilation and groups, and depthwise"""

    def layers(self):
        self.strided, self.dilated = nn.Conv2d(1, 6, (3, 4), stride=(2, 1), padding=(1, 2)), nn.Conv2d(6, 4, 3, dilation=(1, 2), padding="same")
        self.grouped, self.depthwise = nn.Conv2d(4, 4, (5, 3), groups=2, stride=(3, 2), padding=2, bias=False), nn.Conv2d(4, 4, 3, groups=4, padding=1)

    def of(self, y):
        y = self.grouped(torch.tanh(self.dilated(F.leaky_relu(self.strided(y[:, None]), 0.1))))
        return self.depthwise(y).transpose(2, 3).flatten(2)


class Convolutions3d(_Frames):
    """`nn.Conv3d`"""

    def layers(self):
        self.conv = nn.Conv3d(2, 3, (3, 2, 2), stride=(2, 1, 2), padding=(1, 0, 1))

    def of(self, y):
        return self.conv(y.unflatten(1, (2, 2, 2)).permute(0, 1, 4, 2, 3)).flatten(3).flatten(1, 2).transpose(1, 2)


class Upward(_Frames):
    """`nn.ConvTranspose1d` with stride, padding, output_padding, dilation and groups, and depthwise"""

    def layers(self):
        self.strided, self.dilated = nn.ConvTranspose1d(WIDTH, 6, 4, stride=2, padding=1), nn.ConvTranspose1d(6, 6, 3, dilation=3, padding=2)
        self.grouped = nn.ConvTranspose1d(6, 4, 3, stride=3, groups=2, dilation=2, output_padding=2, padding=1)
        self.depthwise = nn.ConvTranspose1d(4, 4, 5, stride=2, groups=4, bias=False)

    def of(self, y):
        return self.depthwise(torch.tanh(self.grouped(torch.tanh(self.dilated(torch.tanh(self.strided(y)))))))


class Upward2d(_Frames):
    """`nn.ConvTranspose2d` with stride, padding, output_padding, dilation and groups"""

    def layers(self):
        self.strided = nn.ConvTranspose2d(1, 4, (4, 3), stride=(2, 1), padding=(1, 0))
        self.grouped = nn.ConvTranspose2d(4, 2, 3, stride=(1, 3), groups=2, dilation=2, output_padding=(0, 1), padding=(2, 1))

    def of(self, y):
        return self.grouped(torch.tanh(self.strided(y[:, None]))).flatten(1, 2)


class Periods(Case):
    """HiFi-GAN's discriminator of periods: `reflect` up to whole periods, `view`, then kernels of [5, 1]; and of scales, over pooled waveforms"""

    def __init__(self, period=3):
        super().__init__()
        self.period = period
        self.first, self.last = nn.Conv2d(1, 4, (5, 1), (3, 1), padding=(2, 0)), nn.Conv2d(4, 1, (3, 1), padding=(1, 0))
        self.pool, self.scales = nn.AvgPool1d(4, 2, padding=2), nn.Conv1d(1, 4, 15, stride=4, groups=1, padding=7)

    def forward(self, wave):
        more = (-wave.shape[1]) % self.period
        y = F.pad(wave[:, None], (0, more + self.period), "reflect")
        y = y.view(wave.shape[0], 1, -1, self.period)
        return self.last(F.leaky_relu(self.first(y), 0.1)).flatten(1)[:, :8] + self.scales(self.pool(wave[:, None])).mean((1, 2))[:, None]


class UNet(_Frames):
    """a U-Net over time: `F.pad(y, (0, 4 - n % 4))`, strided down, transposed up, the skip joined, and the rest cut"""

    def layers(self):
        self.down, self.up = nn.Conv1d(WIDTH, 12, 4, stride=4), nn.ConvTranspose1d(12, WIDTH, 4, stride=4)
        self.out = nn.Conv1d(2 * WIDTH, WIDTH, 3, padding=1)

    def of(self, y):
        padded = F.pad(y, (0, 4 - y.shape[2] % 4))
        return self.out(torch.cat([padded, self.up(torch.tanh(self.down(padded)))], 1))[:, :, :y.shape[2]]


class Groups(_Frames):
    """zeros up to whole groups, `-(-n // 4) * 4 - n`, and sums of the groups"""

    def of(self, y):
        return F.pad(y, (0, -(-y.shape[2] // 4) * 4 - y.shape[2])).unflatten(2, (-1, 4)).sum(3)


class WholeHops(_Frames):
    """zeros up to whole hops as codecs have them, `math.ceil(n / hop) * hop - n` and `int(...)` of it, coded, decoded, cut and added"""

    def layers(self):
        self.down, self.up = nn.Conv1d(WIDTH, 12, 4, stride=4), nn.ConvTranspose1d(12, WIDTH, 4, stride=4)

    def of(self, y):
        n = int(y.shape[-1])
        more = int(math.ceil(n / 4)) * 4 - n
        return y + self.up(torch.tanh(self.down(F.pad(y, (0, more)))))[..., :n]


class CutResult(WholeHops):
    """the same with `-n % hop`, cut, transposed and returned as it is: whole hops and others in one bundle"""

    buckets = ({"T": 24}, {"T": 61})

    def of(self, y):
        n = y.shape[-1]
        return self.up(torch.tanh(self.down(F.pad(y, (0, -n % 4)))))[..., :n]


class OddLengths(_Frames):
    """a frame that is repeated if the length is odd: `if y.shape[2] % 2`"""

    refused = "dimension T chose what was traced, which holds for Ne(Mod(T, 2), 0) only"
    way_out = Groups

    def of(self, y):
        if y.shape[2] % 2 != 0:  # blamed
            y = torch.cat([y, y[..., -1:]], dim=2)
        return F.avg_pool1d(y, 2)


class UncutUNet(UNet):
    """a length that a stride rounds, and that must be the unrounded one"""

    refused = "Expected T in dimension 2 but got 4*((T//4))"
    way_out = UNet
    buckets = ({"T": 25}, {"T": 61})

    def of(self, y):
        return self.out(torch.cat([y, self.up(torch.tanh(self.down(y)))], 1))  # blamed


class Pools(_Frames):
    """`avg_pool1d`, `max_pool1d` (of equal ones the first gets the gradient), `nn.AvgPool2d`, `nn.MaxPool2d`, with stride, padding and dilation"""

    def of(self, y):
        y = F.relu(y)
        y = F.avg_pool1d(y, 3, stride=2, padding=1, count_include_pad=False) + F.max_pool1d(y, 3, stride=2, padding=1) + F.avg_pool1d(F.pad(y, (0, 1)), 2)[..., :1]
        z = nn.AvgPool2d((2, 3), stride=(2, 1), padding=(1, 1))(y[:, None]) + nn.MaxPool2d((4, 3), stride=(2, 1), padding=(2, 1))(y[:, None])
        return z.squeeze(1) + F.max_pool1d(y, 2, dilation=2, stride=1).mean(-1, keepdim=True).mean(1, keepdim=True)


class PoolsToOne(_Frames):
    """`nn.AdaptiveAvgPool1d(1)`, `AdaptiveMaxPool1d(1)`, `AdaptiveAvgPool2d`, of a fixed length to any"""

    def of(self, y):
        y = F.relu(y)
        z = nn.AdaptiveAvgPool1d(1)(y) + nn.AdaptiveMaxPool1d(1)(y) + F.adaptive_avg_pool1d(y.transpose(1, 2), 3).mean(1)[:, :1, None]
        return z * F.adaptive_avg_pool2d(y[:, None], (None, 1)).squeeze(1) + nn.AdaptiveAvgPool2d(1)(y[:, None]).flatten(1)[..., None]


class PoolsToSome(_Frames):
    """`F.adaptive_avg_pool1d` of a dynamic length to several"""

    refused = "makes 3 of a dynamic length"
    way_out = Pools

    def of(self, y):
        return F.adaptive_avg_pool1d(y, 3)  # blamed


class CeilingPool(_Frames):
    """`ceil_mode` of a pool"""

    refused = "a maximum pool has ceil_mode"
    way_out = UNet

    def of(self, y):
        return F.max_pool1d(y, 4, ceil_mode=True)  # blamed


class Resampled(_Frames):
    """`F.interpolate` by `scale_factor` and by size: `nearest`, `nearest-exact`, `linear`, with and without `align_corners`"""

    def of(self, y):
        y = F.interpolate(y, scale_factor=2.0) + F.interpolate(y, scale_factor=2, mode="linear") + F.interpolate(y, size=2 * y.shape[2], mode="nearest-exact")
        y = F.interpolate(y, scale_factor=0.25) + F.interpolate(y, scale_factor=0.25, mode="linear", align_corners=False) + F.interpolate(y, y.shape[2] // 4, mode="linear")
        return y + F.interpolate(F.interpolate(y, scale_factor=1.5, mode="linear"), size=y.shape[2], mode="linear", align_corners=True) * y


class ResampledTo(Case):
    """`F.interpolate` of frames to the length of another sequence, `nearest` and `linear`, and `nn.Upsample`"""

    def __init__(self):
        super().__init__()
        self.linear, self.up = nn.Linear(WIDTH, WIDTH), nn.Upsample(scale_factor=1.5, mode="nearest")

    def forward(self, x, wave):
        y = self.linear(x).transpose(1, 2)
        y = F.interpolate(y, size=wave.shape[1]) + F.interpolate(self.up(y), size=wave.shape[1], mode="linear") + wave[:, None]
        return y.transpose(1, 2)


class Resampled2d(_Frames):
    """`F.interpolate` of spectrograms, `nearest` and `bilinear`"""

    def of(self, y):
        y = F.interpolate(y[:, None], scale_factor=2) + F.interpolate(y[:, None], scale_factor=(2, 2), mode="bilinear")
        return F.interpolate(y, size=(4, y.shape[3]), mode="bilinear", align_corners=True).squeeze(1)


class Cubic(_Frames):
    """`F.interpolate` with `bicubic`"""

    refused = "has the mode 'bicubic'"
    way_out = Resampled2d

    def of(self, y):
        return F.interpolate(y[:, None], scale_factor=2, mode="bicubic").squeeze(1)  # blamed


class Padded(_Frames):
    """`F.pad` with `reflect`, `replicate` and `circular`, `nn.ReflectionPad1d`, `nn.ConstantPad1d`, and `padding_mode` of convolutions"""

    def layers(self):
        self.reflected, self.around = nn.Conv1d(WIDTH, WIDTH, 3, padding=1, padding_mode="reflect"), nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular")
        self.before = nn.ConstantPad1d((1, 2), 0.5)

    def of(self, y):
        y = self.reflected(F.pad(y, (2, 3), "reflect")) + self.before(F.pad(y, (1, 1), "replicate")) * 0.5
        y = self.around(F.pad(nn.ReflectionPad1d(1)(y), (3, 0), mode="circular")[:, None]).squeeze(1)
        return F.pad(y, (-1, 2)) + F.pad(y[:, :3], (-2, 3, 2, 3), "replicate").mean(1, keepdim=True)


class Framed(_Frames):
    """`Tensor.unfold` with windows that are no multiple of the step, `F.unfold`, and `F.fold` (overlap and add)"""

    def of(self, y):
        windows = y.unfold(2, 7, 3)
        patches = F.unfold(y[:, None], (3, 5), padding=(1, 2), stride=(2, 1), dilation=(1, 1))
        added = F.fold(windows[:, 0].transpose(1, 2), (1, 7 + 3 * (windows.shape[2] - 1)), (1, 7), stride=(1, 3))
        return windows.flatten(2)[..., :4] + patches.mean(1, keepdim=True)[:, :, :4] + added[:, :, 0, :4]
