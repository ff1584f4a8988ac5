"""The functions that take the place of PyTorch's for signals: values and gradients, without a graph. suite/signals.py has graphs."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import layers, lowering
from .refusal import Refusal


def same(call, *tensors: Tensor) -> None:
    """call gives equal results, and equal gradients, with the exporter's functions and with PyTorch's."""
    got, want = ([x.detach().requires_grad_() for x in tensors] for _ in range(2))
    expected = call(*want)
    with lowering.functions():
        result = call(*got)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    (result * weight).sum().backward()
    (expected * weight).sum().backward()
    for ours, theirs in zip(got, want, strict=True):
        ours, theirs = (torch.zeros_like(x) if x.grad is None else x.grad for x in (ours, theirs))
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("arguments", [
    {"kernel_size": 3, "padding": 1}, {"kernel_size": 1, "bias": False}, {"kernel_size": 4, "padding": "same"}, {"kernel_size": 5, "padding": "valid"},
    {"kernel_size": 3, "padding": 4, "dilation": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 3, "groups": 2, "padding": 1},
    {"kernel_size": 7, "groups": 6, "padding": 3}, {"kernel_size": 35, "stride": 3, "padding": 20, "dilation": 2, "groups": 3}, {"kernel_size": 2, "stride": 5},
    {"kernel_size": 3, "padding": 2, "padding_mode": "reflect"}, {"kernel_size": 3, "padding": 1, "padding_mode": "circular"},
    {"kernel_size": 5, "groups": 6, "stride": 2, "dilation": 3, "padding": 9},
], ids=str)
def test_conv1d_is_pytorchs(arguments):
    torch.manual_seed(0)
    theirs = nn.Conv1d(6, 6, **arguments)
    ours = layers.Conv1d(6, 6, **arguments)
    ours.load_state_dict(theirs.state_dict())
    x, y = (numbers(2, 6, 43).requires_grad_() for _ in range(2))
    theirs(x).square().sum().backward()
    ours(y).square().sum().backward()
    torch.testing.assert_close(ours(y), theirs(x))
    for got, want in zip([y, *ours.parameters()], [x, *theirs.parameters()], strict=True):
        torch.testing.assert_close(got.grad, want.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "options"), [
    ((4, 2, 3, 3), {"padding": 1}), ((4, 4, 3, 2), {"stride": (2, 3), "padding": (1, 0)}), ((4, 4, 2, 5), {"dilation": (3, 2), "padding": "same"}),
    ((6, 2, 5, 1), {"stride": (3, 1), "padding": (2, 0), "groups": 2}), ((4, 1, 3, 3), {"groups": 4, "stride": 2, "padding": 1}), ((2, 4, 4, 4), {"stride": 4}),
], ids=str)
def test_conv2d_is_pytorchs(shape, options):
    x = numbers(2, shape[1] * options.get("groups", 1), 11, 13)
    same(lambda x, weight, bias: F.conv2d(x, weight, bias, **options), x, numbers(*shape), numbers(shape[0]))


@pytest.mark.parametrize("options", [
    {"stride": 2, "padding": 1}, {}, {"stride": 8, "bias": False}, {"stride": 2, "padding": 2, "output_padding": 1}, {"dilation": 3, "output_padding": 2},
    {"stride": 3, "dilation": 2, "groups": 2, "padding": 1, "output_padding": 1}, {"stride": 2, "groups": 6}, {"stride": 3, "output_padding": 2},
], ids=str)
@pytest.mark.parametrize("kernel", [1, 4, 5])
def test_conv_transpose1d_is_pytorchs(kernel, options):
    options = {**options}
    bias = [numbers(6)] if options.pop("bias", True) else []
    call = lambda x, weight, *bias: F.conv_transpose1d(x, weight, *bias, **options)
    if options.get("padding", 0) * 2 > kernel + 9:
        return
    same(call, numbers(2, 6, 11), numbers(6, 6 // options.get("groups", 1), kernel), *bias)


@pytest.mark.parametrize("options", [
    {"stride": 2, "padding": 1}, {"stride": (2, 1), "padding": (0, 2), "output_padding": (1, 0)}, {"dilation": (1, 3), "stride": (3, 2), "groups": 2},
], ids=str)
def test_conv_transpose2d_is_pytorchs(options):
    same(lambda x, weight, bias: F.conv_transpose2d(x, weight, bias, **options), numbers(2, 4, 5, 7), numbers(4, 2, 3, 4), numbers(2 * options.get("groups", 1)))


@pytest.mark.parametrize("call", [
    lambda x: F.max_pool1d(x.relu(), 3, stride=2, padding=1), lambda x: F.max_pool1d(x.relu(), 2, 1, dilation=3), lambda x: F.avg_pool1d(x, 4, padding=2),
    lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), lambda x: F.avg_pool2d(x[None], (2, 3), (1, 2), divisor_override=5),
    lambda x: F.max_pool2d(x.round()[None], 3, 2, padding=1), lambda x: F.adaptive_avg_pool1d(x, 4), lambda x: F.adaptive_max_pool1d(x, 1),
    lambda x: F.lp_pool1d(x.abs() + 1, 2, 3),
    lambda x: x.unfold(2, 7, 3), lambda x: x.unfold(1, 2, 1), lambda x: F.unfold(x[None], (2, 3), padding=1, stride=2), lambda x: x.unfold(2, 20, 1),
    lambda x: F.fold(x[:, :, :16], (5, 6), (2, 3), padding=0, stride=1), lambda x: F.fold(x[:1, :4, :12], (5, 7), 2, padding=1, stride=2),
    lambda x: F.fold(x[:1, :4, :6], (7, 6), (2, 2), padding=0, stride=(3, 2)), lambda x: F.fold(x[:1, :4, :4], (4, 5), 2, padding=(1, 0), stride=(5, 1)),
])
def test_windows_are_pytorchs(call):
    same(call, numbers(2, 6, 23))


@pytest.mark.parametrize("size", [1, 5, 11, 22, 33, 40])
@pytest.mark.parametrize("options", [{}, {"mode": "nearest-exact"}, {"mode": "linear"}, {"mode": "linear", "align_corners": True}], ids=str)
def test_interpolate_to_a_size_is_pytorchs(size, options):
    same(lambda x: F.interpolate(x, size=size, **options), numbers(2, 3, 11))


@pytest.mark.parametrize("factor", [0.2, 0.5, 1 / 3, 1.0, 1.5, 2, 3.0, 0.75])
@pytest.mark.parametrize("options", [{}, {"mode": "nearest-exact"}, {"mode": "linear"}, {"mode": "linear", "recompute_scale_factor": True}, {"mode": "area"}], ids=str)
def test_interpolate_by_a_factor_is_pytorchs(factor, options):
    same(lambda x: F.interpolate(x, scale_factor=factor, **options), numbers(2, 3, 11))


def test_interpolate_in_two_dimensions_is_pytorchs():
    same(lambda x: F.interpolate(x, scale_factor=(2, 1.5), mode="bilinear"), numbers(2, 3, 4, 6))
    same(lambda x: F.interpolate(x, size=(8, 5)), numbers(2, 3, 4, 6))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("margins", [[0, 1], [3, 2], [4, 0]])
def test_pad_is_pytorchs(mode, margins):
    same(lambda x: F.pad(x, margins, mode), numbers(2, 3, 5))
    same(lambda x: F.pad(x, [*margins, 2, 1], mode), numbers(2, 3, 5, 6))
    same(lambda x: F.pad(x, margins, mode), numbers(2, 3, 400))


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: F.pad(x, (5, 0), "reflect"), "adds 5 to an axis of 5 by reflect"), (lambda x: F.max_pool1d(x, 2, return_indices=True), "returns indices"),
    (lambda x: F.avg_pool1d(x, 2, ceil_mode=True), "ceil_mode"),
    (lambda x: F.conv1d(x, torch.zeros(4, 2, 3)), "a convolution of 2 channels gets 3"), (lambda x: F.conv_transpose1d(x, torch.zeros(4, 2, 3)), "of 4 channels gets 3"),
    (lambda x: F.interpolate(x[None], scale_factor=2, mode="bicubic"), "bicubic"), (lambda x: F.interpolate(x), "neither or both"),
])
def test_refuses_with_a_hint(call, message):
    with lowering.functions(), pytest.raises(Refusal, match=message) as caught:
        call(numbers(2, 3, 5))
    assert caught.value.hint
