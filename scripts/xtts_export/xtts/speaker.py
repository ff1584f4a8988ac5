"""The speaker encoder of XTTS v2: H/ASP (Heo et al. 2020), a ResNet with squeeze and excitation (Hu et al. 2018) and attentive statistics, from a
waveform of 16 kHz to a vector of length 1.

Tensors have the names of `hifigan_decoder.speaker_encoder` in coqui's checkpoints.
"""

import librosa
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import foreign
from .power import Power

RATE = 16000
_FFT, _HOP, _WINDOW, _MELS = 512, 160, 400, 64
_EMPHASIS, _FLOOR, _EPSILON, _LEAST = 0.97, 1e-6, 1e-5, 1e-5
_DEPTHS, _REDUCTION, _ATTENTION = (3, 4, 6, 3), 8, 128
WIDTHS, SPEAKER = (32, 64, 128, 256), 512
# A ResNet with strides of 2 in three of its four layers.
_BANDS = _MELS // 8
# A name that batch norm has beside its statistics.
_COUNTER = ".num_batches_tracked"


class Squeeze(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(width, width // _REDUCTION), nn.ReLU(), nn.Linear(width // _REDUCTION, width), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.fc(x.mean((2, 3)))[:, :, None, None]


class Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
        self.conv2, self.bn2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
        self.se = Squeeze(outer)
        self.downsample = None if stride == 1 and inner == outer else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        y = self.se(self.bn2(self.conv2(self.bn1(F.relu(self.conv1(x))))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class SpeakerEncoder(nn.Module):
    def __init__(self, widths: tuple[int, ...] = WIDTHS, speaker: int = SPEAKER):
        super().__init__()
        self.power = Power(torch.hamming_window(_WINDOW), _FFT, _HOP, _FFT // 2 + 1)
        bank = librosa.filters.mel(sr=RATE, n_fft=_FFT, n_mels=_MELS, fmin=0, fmax=RATE / 2, htk=True, norm=None)
        self.register_buffer("bank", torch.from_numpy(bank.T.astype(np.float64)))
        self.conv1, self.bn1 = nn.Conv2d(1, widths[0], 3, 1, 1), nn.BatchNorm2d(widths[0])
        for i, (inner, outer, depth) in enumerate(zip((widths[0], *widths), widths, _DEPTHS, strict=False), 1):
            blocks = [Block(inner if k == 0 else outer, outer, 2 if i > 1 and k == 0 else 1) for k in range(depth)]
            self.add_module(f"layer{i}", nn.Sequential(*blocks))
        seen = widths[-1] * _BANDS
        self.attention = nn.Sequential(nn.Conv1d(seen, _ATTENTION, 1), nn.ReLU(), nn.BatchNorm1d(_ATTENTION), nn.Conv1d(_ATTENTION, seen, 1), nn.Softmax(2))
        self.fc = nn.Linear(2 * seen, speaker)

    def forward(self, waveform: Tensor) -> Tensor:
        """f32[B, speaker] of f32[B, samples]."""
        # Before the first sample is the second one.
        sharp = waveform - _EMPHASIS * waveform.index_select(1, (torch.arange(waveform.shape[1]) - 1).abs())
        x = ((self.power(sharp, torch.ones_like(waveform).sum(1).int()) @ self.bank).float() + _FLOOR).log().transpose(1, 2)
        x = x - x.mean(2, keepdim=True)
        x = (x * torch.rsqrt(x.square().mean(2, keepdim=True) + _EPSILON))[:, None]
        x = self.bn1(F.relu(self.conv1(x)))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        x = x.flatten(1, 2)
        weight = self.attention(x)
        mean = (x * weight).sum(2)
        spread = ((x.square() * weight).sum(2) - mean.square()).clamp(min=_LEAST).sqrt()
        return F.normalize(self.fc(torch.cat([mean, spread], 1)), dim=1)


def load(weights: dict[str, Tensor]) -> SpeakerEncoder:
    """Of the tensors of speaker_encoder. Raises foreign.Unfit if they are others."""
    widths = tuple(foreign.shape(weights, f"layer{i}.0.conv1.weight", 4)[0] for i in range(1, 5))
    if narrow := [i for i, width in enumerate(widths, 1) if width < _REDUCTION]:
        raise foreign.Unfit(f"layer{narrow[0]}.0.conv1.weight has fewer than {_REDUCTION} channels")
    made = SpeakerEncoder(widths, foreign.shape(weights, "fc.weight", 2)[0])
    # The spectrogram's tables are computed, and batches are not counted.
    own = {name: x for name, x in made.state_dict().items() if name.startswith(("power.", "bank")) or name.endswith(_COUNTER)}
    foreign.load(made, {name: x.float() for name, x in weights.items() if not name.startswith("torch_spec.") and not name.endswith(_COUNTER)} | own)
    return made.eval()
