"""PyTorch's functions that run on the example's sizes, or as one kernel that ONNX lacks, written with others."""

import builtins
import contextlib
import functools
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from . import complexes, ctc, derivatives, groupnorm, integers, logarithms, matrices, refusal, signals, tapers
from .refusal import Refusal


@contextlib.contextmanager
def functions() -> Iterator[None]:
    with contextlib.ExitStack() as replaced:
        replaced.enter_context(complexes.Numbers())
        for owner, name, function in _FUNCTIONS:
            replaced.enter_context(mock.patch.object(owner, name, function))
        replaced.enter_context(_Data())
        replaced.enter_context(integers.sizes())
        yield


class _Data(TorchFunctionMode):
    """`x.data`, which tracing cannot follow, as a detached x. As there, autograd does not notice writes into it."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function == Tensor.data.__get__:
            x = args[0].detach()
            x.aside = True
            return x
        if function == Tensor.data.__set__:
            function, args = Tensor.copy_, (args[0].detach(), args[1])
        elif not args or not isinstance(args[0], Tensor) or not getattr(args[0], "aside", False):
            return function(*args, **(kwargs or {}))
        with torch.autograd._unsafe_preserve_version_counter(args[0]):
            return function(*args, **(kwargs or {}))


def _baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _times(x, beta) + _times(torch.bmm(a, b), alpha)


def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + _times(a * b, value)


def _addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + _times(a / b, value)


def _lerp(x: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    return x + weight * (end - x)


def _times(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1 else x * factor


def _bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # [..., 1, i] times [i, o * j], then times y.
    rows = torch.matmul(x, weight.permute(1, 0, 2).reshape(weight.shape[1], -1)).unflatten(-1, (weight.shape[0], -1))
    z = (rows * y.unsqueeze(-2)).sum(-1)
    return z if bias is None else z + bias


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    axes = [d for d in range(v.dim()) if dim == -1 or d != dim % v.dim()]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())


def _take_along_dim(x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return x.reshape(-1).gather(0, index.reshape(-1))
    wide = lambda a, b: [n if isinstance(m, int) and m == 1 and d != dim % x.dim() else m for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))]
    return x.expand(wide(x, index)).gather(dim, index.expand(wide(index, x)))


def _cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "") -> Tensor:
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), ord=p, dim=-1)


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """In units of the larger number, whose square may be too large or too small."""
    unit = torch.maximum(x.detach().abs(), y.detach().abs()).clamp(max=_LARGEST)
    unit = torch.where(unit > 0, unit, 1.0)
    return ((x / unit).square() + (y / unit).square()).sqrt() * unit


def _atan2(y: Tensor, x: Tensor) -> Tensor:
    """By Chebyshev's series of the arc tangent on [0, 1], whose coefficients are 2 (-1)^k q^(2k+1) / (2k+1), q = sqrt(2) - 1. ONNX Runtime has no Atan on a GPU."""
    # Infinity over infinity is NaN.
    y, x = y.clamp(-_LARGEST, _LARGEST), x.clamp(-_LARGEST, _LARGEST)
    a, b = y.detach().abs(), x.detach().abs()
    larger = torch.maximum(a, b)
    t = torch.minimum(a, b) / torch.where(larger > 0, larger, 1.0)
    # Clenshaw's recurrence for the odd polynomials: T(2k+1) = (4 t^2 - 2) T(2k-1) - T(2k-3).
    twice, last, before = 4 * t * t - 2, 0.0, 0.0
    for k in range(_TERMS - 1, 0, -1):
        last, before = _share(k) + twice * last - before, last
    angle = t * (_share(0) + (twice - 1) * last - before)
    angle = torch.where(a > b, math.pi / 2 - angle, angle)
    angle = torch.where(_negative(x), math.pi - angle, angle)
    angle = torch.where(_negative(y), -angle, angle)
    # Its gradient, of a term that is 0.
    size = x.detach().square() + y.detach().square()
    some = size > 1 / _LARGEST
    share = torch.where(some, 1 / torch.where(some, size, 1.0), 0.0)
    return angle + x.detach() * share * (y - y.detach()) - y.detach() * share * (x - x.detach())


def _negative(x: Tensor) -> Tensor:
    """Whether the sign is minus, that of 0, too."""
    x = x.detach()
    return torch.where(x == 0, 1 / x, x) < 0


_LARGEST = torch.finfo(torch.float32).max
# The next term of the series is below 1e-9.
_TERMS = 10


def _share(k: int) -> float:
    return 2 * (-1) ** k * (math.sqrt(2) - 1) ** (2 * k + 1) / (2 * k + 1)


def _atan(x: Tensor) -> Tensor:
    return _atan2(x, torch.ones_like(x))


def _prod(x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Of a fixed count: PyTorch's gradient looks for zeros."""
    if dtype is not None:
        x = x.to(dtype)
    if dim is None:
        x, dim = x.reshape(-1), 0
    y = functools.reduce(torch.mul, _places(x, dim, "prod", "torch.exp of a sum of logarithms, for positive numbers"))
    return y.unsqueeze(dim) if keepdim else y


def _cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    parts = _places(x if dtype is None else x.to(dtype), dim, "cumprod", "torch.exp of cumsum of logarithms, for positive numbers")
    return torch.stack(list(itertools.accumulate(parts, torch.mul)), dim)


def _places(x: Tensor, dim: int, name: str, hint: str) -> tuple[Tensor, ...]:
    if not isinstance(x.shape[dim], int):
        raise Refusal(f"{name} runs over a dynamic length", hint, refusal.here())
    return x.unbind(dim)


def _whole(function: Callable) -> Callable:
    """amax, amin, max or min, whose form over all axes ONNX lacks."""
    over = {"max": torch.amax, "min": torch.amin}.get(function.__name__, function)

    def reduced(x: Tensor, *args, **options):
        shapes = [*args[:1], options.get("dim", ())]
        whole = not args and not options if over is not function else all(isinstance(d, tuple | list) and not d for d in shapes) and not args[1:]
        if not whole or options.get("out") is not None:
            return function(x, *args, **options)
        y = over(x.reshape(-1), 0)
        return y.reshape([1] * x.dim()) if options.get("keepdim") else y

    return reduced


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> torch.return_types.kthvalue:
    return torch.return_types.kthvalue([y.narrow(dim, k - 1, 1) if keepdim else y.select(dim, k - 1) for y in torch.sort(x, dim=dim)])


def _median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | torch.return_types.median:
    if dim is None:
        # Equal elements share its gradient, as that of a largest one.
        x = x.reshape(-1)
        middle = torch.sort(x.detach()).values.narrow(0, (x.shape[0] - 1) // 2, 1)
        return torch.where(x == middle, x, -math.inf).amax(0) if x.is_floating_point() else middle[0]
    at = (x.shape[dim] - 1) // 2
    return torch.return_types.median([y.narrow(dim, at, 1) if keepdim else y.select(dim, at) for y in torch.sort(x, dim=dim)])


def _searchsorted(edges: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None, **options) -> Tensor:
    """By comparisons with every edge."""
    edges = edges if edges.dim() == 1 else edges.unsqueeze(-2)
    reached = x.unsqueeze(-1) >= edges if right or side == "right" else x.unsqueeze(-1) > edges
    return reached.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def _one_hot(ids: Tensor, num_classes: int = -1, one_hot: Callable[..., Tensor] = torch.nn.functional.one_hot) -> Tensor:
    """PyTorch's own makes a number of a length."""
    if not isinstance(num_classes, torch.SymInt):
        return one_hot(ids, num_classes)
    return (ids.unsqueeze(-1) == torch.arange(num_classes, device=ids.device)).to(torch.int64)


def _hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where(x.abs() > lambd, x, 0.0)


def _softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where(x.abs() > lambd, x - lambd * x.detach().sign(), 0.0)


def _rrelu(x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    slope = lower + (upper - lower) * torch.rand_like(x) if training else (lower + upper) / 2
    y = torch.where(x > 0, x, x * slope)
    return x.copy_(y) if inplace else y


def _scripted(function: torch.jit.ScriptFunction, *args, **options):
    """The Python function that torch.jit.script compiled: its own interpreter runs on the example's sizes."""
    return function._torchdynamo_inline(*args, **options)


def _len(x: object, len: Callable[[object], int] = len) -> int:
    """Python's own makes a number of a size."""
    return x.shape[0] if isinstance(x, Tensor) and x.dim() else len(x)


def _is_causal(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """PyTorch compares the values of the mask, to choose a faster kernel."""
    return is_causal is True


_FUNCTIONS = (
    *signals.FUNCTIONS, *complexes.FUNCTIONS, *tapers.FUNCTIONS, *matrices.FUNCTIONS, *derivatives.FUNCTIONS, *logarithms.FUNCTIONS,
    (torch, "baddbmm", _baddbmm), (Tensor, "baddbmm", _baddbmm),
    (torch, "addcmul", _addcmul), (Tensor, "addcmul", _addcmul), (torch, "addcdiv", _addcdiv), (Tensor, "addcdiv", _addcdiv),
    (torch, "lerp", _lerp), (Tensor, "lerp", _lerp),
    (torch, "group_norm", groupnorm.group_norm),
    (torch.nn.functional, "bilinear", _bilinear), (torch, "bilinear", _bilinear),
    (torch, "_weight_norm", _weight_norm), (sys.modules["torch.nn.utils.weight_norm"], "_weight_norm", _weight_norm),
    (torch, "take_along_dim", _take_along_dim), (Tensor, "take_along_dim", _take_along_dim),
    (torch, "cdist", _cdist), (torch, "hypot", _hypot), (Tensor, "hypot", _hypot),
    (torch, "atan2", _atan2), (Tensor, "atan2", _atan2), (torch, "arctan2", _atan2), (Tensor, "arctan2", _atan2),
    *((owner, name, _atan) for owner in (torch, Tensor) for name in ("atan", "arctan")),
    (torch, "prod", _prod), (Tensor, "prod", _prod), (torch, "cumprod", _cumprod), (Tensor, "cumprod", _cumprod),
    *((owner, name, _whole(getattr(owner, name))) for owner in (torch, Tensor) for name in ("amax", "amin", "max", "min")),
    (torch, "kthvalue", _kthvalue), (Tensor, "kthvalue", _kthvalue), (torch, "median", _median), (Tensor, "median", _median),
    (torch.nn.functional, "hardshrink", _hardshrink), (torch.nn.functional, "softshrink", _softshrink),
    (torch.nn.functional, "rrelu", _rrelu), (torch, "rrelu", _rrelu),
    *((owner, "rrelu_", functools.partial(_rrelu, inplace=True)) for owner in (torch.nn.functional, torch)),
    (torch, "searchsorted", _searchsorted), (torch.nn.functional, "one_hot", _one_hot),
    (torch.jit.ScriptFunction, "__call__", _scripted), (builtins, "len", _len),
    (torch.nn.functional, "ctc_loss", ctc.ctc_loss), (torch, "ctc_loss", ctc.ctc_loss),
    (torch.nn.modules.transformer, "_detect_is_causal_mask", _is_causal),
)
