"""Arguments and shapes"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn

from ..recurrence import scan
from .case import TABLE, WIDTH, Case


class _Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        # [B, WIDTH, T]
        return self.of(self.linear(x).transpose(1, 2))


class LinearResize(_Linear):
    """`F.interpolate(scale_factor=1.5, mode="linear")` of [B, C, T], and bilinear of [B, C, H, W]"""

    def of(self, y):
        images = F.interpolate(y[:, None], scale_factor=(1, 1.5), mode="bilinear")
        return F.interpolate(y, scale_factor=1.5, mode="linear") + images[:, 0]


class Resize(_Linear):
    """`F.interpolate` with a size and a factor"""

    refused = "F.interpolate has neither or both of size and scale_factor"
    way_out = LinearResize

    def of(self, y):
        return F.interpolate(y, size=(30,), scale_factor=1.5)  # blamed


class BicubicResize(_Linear):
    """`F.interpolate(mode="bicubic")`"""

    refused = "F.interpolate of 4 dimensions has the mode 'bicubic'"
    way_out = LinearResize

    def of(self, y):
        return F.interpolate(y[:, None], scale_factor=(1, 1.5), mode="bicubic")[:, 0]  # blamed


class Mirrored(_Linear):
    """`F.pad` by `"reflect"` with one element less than the axis has"""

    def of(self, y):
        return F.pad(y.transpose(1, 2), (WIDTH - 1, 2), mode="reflect")


class TooMuchPadding(_Linear):
    """`F.pad` by `"reflect"` with more elements than the axis has"""

    refused = f"F.pad adds {WIDTH} to an axis of {WIDTH} by reflect"
    way_out = Mirrored

    def of(self, y):
        return F.pad(y.transpose(1, 2), (WIDTH, 2), mode="reflect")  # blamed


class OtherPadding(_Linear):
    """`F.pad` with a mode that PyTorch does not have"""

    refused = "F.pad has the mode 'symmetric'"
    way_out = Mirrored

    def of(self, y):
        return F.pad(y.transpose(1, 2), (2, 2), mode="symmetric")  # blamed


class PatchesOfImages(_Linear):
    """`F.unfold` of [B, C, H, W] with a dilation"""

    def of(self, y):
        return F.unfold(y[:, None], (3, 1), dilation=(2, 1))


class PatchesOfRows(_Linear):
    """`F.unfold` of [C, H, W]"""

    refused = "F.unfold of 3 dimensions"
    way_out = PatchesOfImages

    def of(self, y):
        return F.unfold(y, (3, 1))  # blamed


class OverlapAdd(_Linear):
    """`F.fold` of [B, C * kernel, windows] without a dilation"""

    def of(self, y):
        return F.fold(y, (1, y.shape[2] + WIDTH - 1), (1, WIDTH))[:, 0, 0]


class DilatedFold(_Linear):
    """`F.fold` with a dilation"""

    refused = "F.fold has a dilation or no batch"
    way_out = OverlapAdd

    def of(self, y):
        return F.fold(y, (1, y.shape[2] + 2 * (WIDTH - 1)), (1, WIDTH), dilation=(1, 2))[:, 0, 0]  # blamed


class OrthonormalFourier(_Linear):
    """`torch.fft.rfft(norm="ortho")`"""

    def of(self, y):
        return torch.fft.rfft(y, dim=1, norm="ortho").abs().square()


class OtherNorm(_Linear):
    """`torch.fft.rfft` with a norm that PyTorch does not have"""

    refused = "a Fourier transform has the norm 'unitary'"
    way_out = OrthonormalFourier

    def of(self, y):
        return torch.fft.rfft(y, dim=1, norm="unitary").abs().square()  # blamed


class _Square(_Linear):
    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(WIDTH, WIDTH) / 4)


class MatrixGivenTwice(_Square):
    """a matrix that a step of `xtts_export.scan` has for `F.linear` and for another use: twice in `constants`"""

    def of(self, y):
        def step(carry, items, constants):
            state = torch.tanh(F.linear(carry[0], constants[0]) + items[0] * constants[1].diagonal())
            return (state,), (state,)

        y = y.permute(2, 0, 1)
        return scan(step, (torch.zeros_like(y[0]),), (y,), (self.matrix, self.matrix))[1][0].transpose(0, 1)


class MatrixUsedTwice(_Square):
    """a matrix in `constants` of `xtts_export.scan` that its step has for `F.linear` and for another use"""

    refused = "a constant of a scan is the matrix or bias of F.linear, and used in another way, too"
    way_out = MatrixGivenTwice
    whole = True

    def of(self, y):
        def step(carry, items, constants):
            state = torch.tanh(F.linear(carry[0], constants[0]) + items[0] * constants[0].diagonal())
            return (state,), (state,)

        y = y.permute(2, 0, 1)
        return scan(step, (torch.zeros_like(y[0]),), (y,), (self.matrix,))[1][0].transpose(0, 1)


class Filtered(_Linear):
    """`nn.Conv1d` of [B, C, T], with channels as the second axis"""

    def __init__(self):
        super().__init__()
        self.filter = nn.Conv1d(2, 4, 3, padding=1)

    def of(self, y):
        return self.filter(self.pairs(y).transpose(1, 2)).unflatten(0, (y.shape[0], -1))

    @staticmethod
    def pairs(y):
        """[B * T, WIDTH / 2, 2]"""
        return y.transpose(1, 2).unflatten(2, (WIDTH // 2, 2)).flatten(0, 1)


class ChannelsLast(Filtered):
    """`nn.Conv1d` of [B, T, C]"""

    refused = f"a convolution of 2 channels gets {WIDTH // 2}"
    way_out = Filtered

    def of(self, y):
        return self.filter(self.pairs(y)).unflatten(0, (y.shape[0], -1))  # blamed


class NoStride(Filtered):
    """`F.conv1d(stride=0)`"""

    refused = "a convolution has the kernel [3], the stride [0] and the dilation [1]"
    way_out = Filtered

    def of(self, y):
        return F.conv1d(y[:, :2], self.filter.weight, stride=0)  # blamed


class _Connected(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, TABLE + 1)

    def forward(self, x, ids, lengths, id_lengths):
        return self.of(F.log_softmax(self.linear(x), -1).transpose(0, 1), ids + 1, lengths, id_lengths)


class Connected(_Connected):
    """`F.ctc_loss` of [rows, symbols], with the inputs that have the lengths"""

    def of(self, y, ids, lengths, id_lengths):
        return F.ctc_loss(y, ids, lengths, id_lengths, reduction="none", zero_infinity=True)[:, None]


class ConnectedFlat(_Connected):
    """`F.ctc_loss` of the targets of all rows in one row"""

    refused = "ctc_loss gets the targets of all rows in one row"
    way_out = Connected

    def of(self, y, ids, lengths, id_lengths):
        return F.ctc_loss(y, ids.flatten(), lengths, id_lengths, reduction="none")[:, None]  # blamed


class ConnectedOfNumbers(_Connected):
    """`F.ctc_loss` with lengths that are Python's numbers"""

    refused = "ctc_loss gets lengths that are no tensors"
    way_out = Connected

    def of(self, y, ids, lengths, id_lengths):
        frames, symbols = [y.shape[0]] * ids.shape[0], [ids.shape[1]] * ids.shape[0]
        return F.ctc_loss(y, ids, frames, symbols, reduction="none")[:, None]  # blamed


class _Packed(Case):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def packed(self, x, lengths):
        y, _ = self.gru(rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))  # blamed
        return rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]


class PackedByInput(_Packed):
    """`pack_padded_sequence` with the input that has the lengths"""

    nan_when_empty = True

    def forward(self, x, lengths):
        return self.packed(x, lengths)


class PackedByNumbers(_Packed):
    """`pack_padded_sequence` with lengths that are Python's numbers"""

    refused = "pack_padded_sequence gets lengths that are no tensor"
    way_out = PackedByInput

    def forward(self, x):
        return self.packed(x, [x.shape[1]] * x.shape[0])


class _Wave(Case):
    def __init__(self):
        super().__init__()
        self.filter = nn.Conv1d(1, 1, 3, padding=1)
        self.register_buffer("window", torch.hann_window(16), persistent=False)

    def forward(self, wave):
        return self.of(self.filter(wave[:, None])[:, 0])


class Transformed(_Wave):
    """`torch.stft` of real samples, and `torch.istft` of it"""

    def of(self, y):
        spectrum = torch.stft(y, 16, 4, window=self.window, return_complex=True)
        return torch.istft(spectrum, 16, 4, window=self.window, length=y.shape[1])


class ComplexSamples(_Wave):
    """`torch.stft` of complex samples"""

    refused = "torch.stft has complex samples or align_to_window"
    way_out = Transformed

    def of(self, y):
        y = torch.complex(y, y)
        return torch.stft(y, 16, 4, window=self.window, return_complex=True).abs().mean(1)  # blamed


class ComplexInverse(_Wave):
    """`torch.istft` with complex samples as its result"""

    refused = "torch.istft has return_complex"
    way_out = Transformed

    def of(self, y):
        z = torch.stft(y, 16, 4, window=self.window, return_complex=True, onesided=False)
        return torch.istft(z, 16, 4, window=self.window, onesided=False, return_complex=True).real  # blamed


class PairsAsComplex(_Linear):
    """`torch.view_as_complex` of pairs: `y.unflatten(-1, (-1, 2))`"""

    def of(self, y):
        return torch.view_as_complex(y.transpose(1, 2).unflatten(-1, (-1, 2))).abs().square()


class RowsAsComplex(_Linear):
    """`torch.view_as_complex` of an axis that is no pair"""

    refused = f"view_as_complex of a last axis of {WIDTH}"
    way_out = PairsAsComplex

    def of(self, y):
        return torch.view_as_complex(y.transpose(1, 2)).abs()  # blamed


class PooledAndResized(_Linear):
    """`F.max_pool1d`, undone by `F.interpolate`"""

    def of(self, y):
        return F.interpolate(F.max_pool1d(y, 2), scale_factor=2)


class PooledWithIndices(_Linear):
    """`F.max_pool1d(return_indices=True)` and `F.max_unpool1d`"""

    refused = "a maximum pool returns indices"
    way_out = PooledAndResized

    def of(self, y):
        return F.max_unpool1d(*F.max_pool1d(y, 2, return_indices=True), 2)  # blamed
