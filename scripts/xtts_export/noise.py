"""Random numbers that are a function of one integer, for models that draw noise in `forward`.

A number's place in its tensor is the plain text of a small block cipher, and the seed is the key. So a resumed run draws the
same numbers, and a graph needs no operator that is random. The cipher is MiMC (arXiv:2016/492 of the IACR) with the exponent 5: in each
round a key is added, and the sum is raised to the fifth power modulo 2^31 - 1. The power is a permutation, as 5 and 2^31 - 2 have no
common divisor. Integers give the same bits in PyTorch and in ONNX Runtime, on a CPU and on a GPU.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import refusal
from .refusal import Refusal

aten = torch.ops.aten

_PRIME, _OTHER_PRIME = 2147483647, 2147483629
# Evaluation has no seed, or a negative one. It draws the same numbers every time, so that evaluations can be compared.
_EVALUATION = -1


def uniform(shape: Sequence[int], seed: Tensor, site: int) -> Tensor:
    """f32 numbers between 0 and 1, without either, in steps of 2^-23. seed is an i64 scalar; site numbers the places of a model."""
    return _fraction(_bits(shape, seed, site))


def normal(shape: Sequence[int], seed: Tensor, site: int) -> Tensor:
    """f32 numbers with mean 0 and variance 1, by the transformation of Box and Muller (1958). The largest is 5.8."""
    bits = _bits(shape, seed, site)
    angle = 2 * math.pi * _fraction(_fifth_power((bits + seed % _OTHER_PRIME) % _PRIME))
    return (-2 * _fraction(bits).log()).sqrt() * angle.cos()


def integers(low: int, high: int, shape: Sequence[int], seed: Tensor, site: int) -> Tensor:
    """i64 numbers from low to high - 1."""
    return _bits(shape, seed, site) % (high - low) + low


def _bits(shape: Sequence[int], seed: Tensor, site: int) -> Tensor:
    """An i64 number from 0 to 2^31 - 2 for each element. All of one tensor are different."""
    x = torch.arange(math.prod(shape)).view(shape) % _PRIME
    # Two residues together have all bits of the seed.
    for key in (seed % _PRIME, seed % _OTHER_PRIME + site * 7919, seed % _PRIME + 12345):
        x = _fifth_power((x + key % _PRIME) % _PRIME)
    return x


def _fifth_power(x: Tensor) -> Tensor:
    square = x * x % _PRIME
    return square * square % _PRIME * x % _PRIME


def _fraction(bits: Tensor) -> Tensor:
    """f32, between 0 and 1. Every step is exact."""
    return ((bits - bits % 256).float() + 128) * 2.0**-31


# Sites of dropout that PyTorch's functions have, apart from those that a model numbers.
_FIRST_DROPOUT = 1000


@dataclass
class Draws:
    """Where the random numbers of a forward pass, or of a step of a recurrence, come from: their seeds, and the sites that come next."""

    # Dropout's: None and a negative one switch it off.
    masks: Tensor | None
    noise: Tensor
    # Makes PyTorch's functions take their numbers from here.
    functions: "Callable[[Draws], contextlib.AbstractContextManager]"
    mask: int = _FIRST_DROPOUT
    site: int = 0
    # What has been drawn for dropout: the shape and the rate of each mask.
    places: list[tuple[tuple[int, ...], float]] = field(default_factory=list)

    @classmethod
    def of(cls, seed: Tensor | None, functions: "Callable[[Draws], contextlib.AbstractContextManager]") -> "Draws":
        return cls(seed, torch.tensor(_EVALUATION) if seed is None else seed, functions)

    def next_mask(self, shape: Sequence[int] = (), rate: float = 0.0) -> int:
        self.places.append((tuple(shape), rate))
        self.mask += 1
        return self.mask - 1

    def next_site(self) -> int:
        self.site += 1
        return self.site - 1

    @contextlib.contextmanager
    def used(self) -> Iterator["Draws"]:
        """Within it, random numbers come from here."""
        _running.append(self)
        try:
            with self.functions(self):
                yield self
        finally:
            _running.pop()

    def in_step(self, noise: Tensor, masks: Tensor | None = None, *, t: Tensor) -> "Draws":
        """Those of a step of a recurrence, with the seeds of the whole: each step t has seeds of its own, and all have the same sites."""
        own = _seed_of_step(noise, t)
        return Draws(None if masks is None else torch.where(masks < 0, masks, _seed_of_step(masks, t)), own, self.functions, self.mask, self.site)


_running: list[Draws] = []


def running() -> Draws | None:
    """Where random numbers come from now."""
    return _running[-1] if _running else None


def _seed_of_step(seed: Tensor, t: Tensor) -> Tensor:
    """A number of 62 bits."""
    high = _fifth_power((t + seed % _PRIME) % _PRIME)
    return high * 2**31 + _fifth_power((high + seed % _OTHER_PRIME) % _PRIME)


class Seeded(TorchDispatchMode):
    """Takes the numbers of torch.randn, torch.rand_like and the like from a seed, each call its own."""

    def __init__(self, draws: Draws):
        super().__init__()
        self.draws = draws

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(isinstance(x, torch.Generator) for x in (*args, *kwargs.values())):
            raise Refusal("a torch.Generator has a state that no checkpoint has",
                          "leave generator out: the numbers follow from the seed of the step", refusal.here())
        draw = _DRAWS.get(operator)
        return operator(*args, **kwargs) if draw is None else draw(self, kwargs.get("dtype"), *args)

    def uniform(self, shape: Sequence[int]) -> Tensor:
        return uniform(shape, self.draws.noise, self.draws.next_site())

    def normal(self, shape: Sequence[int]) -> Tensor:
        return normal(shape, self.draws.noise, self.draws.next_site())

    def integers(self, low: int, high: int, shape: Sequence[int]) -> Tensor:
        return integers(low, high, shape, self.draws.noise, self.draws.next_site())


def _normals(mode: Seeded, dtype: torch.dtype | None, mean: Tensor | float, std: Tensor | float = 1.0, size: Sequence[int] | None = None) -> Tensor:
    shape = torch.broadcast_shapes(*(x.shape for x in (mean, std) if isinstance(x, Tensor))) if size is None else size
    return (mode.normal(shape) * std + mean).to(dtype or torch.float32)


def _rrelu(mode: Seeded, dtype: torch.dtype | None, x: Tensor, slopes: Tensor, low: float = 1 / 8, high: float = 1 / 3, training: bool = False, generator=None) -> Tensor:
    """slopes are what the gradient is multiplied by."""
    drawn = low + (high - low) * mode.uniform(x.shape) if training else torch.tensor((low + high) / 2)
    slopes.copy_(torch.where(x > 0, 1.0, drawn))
    return torch.where(x > 0, x, x * drawn)


# The functions take the mode, the type that the caller names or None, and the operator's positional arguments.
_DRAWS = {
    aten.rand.default: lambda mode, dtype, size: mode.uniform(size).to(dtype or torch.float32),
    aten.randn.default: lambda mode, dtype, size: mode.normal(size).to(dtype or torch.float32),
    aten.rand_like.default: lambda mode, dtype, x: mode.uniform(x.shape).to(dtype or x.dtype),
    aten.randn_like.default: lambda mode, dtype, x: mode.normal(x.shape).to(dtype or x.dtype),
    aten.randint.default: lambda mode, dtype, high, size: mode.integers(0, high, size).to(dtype or torch.int64),
    aten.randint.low: lambda mode, dtype, low, high, size: mode.integers(low, high, size).to(dtype or torch.int64),
    aten.randint_like.default: lambda mode, dtype, x, high: mode.integers(0, high, x.shape).to(dtype or x.dtype),
    aten.randint_like.low_dtype: lambda mode, dtype, x, low, high: mode.integers(low, high, x.shape).to(dtype or x.dtype),
    **dict.fromkeys((aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor, aten.normal.float_float), _normals),
    aten.bernoulli.default: lambda mode, dtype, x: (mode.uniform(x.shape) < x).to(x.dtype),
    aten.bernoulli.p: lambda mode, dtype, x, p: (mode.uniform(x.shape) < p).to(x.dtype),
    aten.bernoulli_.float: lambda mode, dtype, x, p=0.5: x.copy_(mode.uniform(x.shape) < p),
    aten.bernoulli_.Tensor: lambda mode, dtype, x, p: x.copy_(mode.uniform(x.shape) < p),
    aten.normal_.default: lambda mode, dtype, x, mean=0.0, std=1.0: x.copy_(mode.normal(x.shape) * std + mean),
    aten.uniform_.default: lambda mode, dtype, x, low=0.0, high=1.0: x.copy_(mode.uniform(x.shape) * (high - low) + low),
    aten.rrelu_with_noise.default: _rrelu,
    aten.rrelu_with_noise_.default: lambda mode, dtype, x, *rest: x.copy_(_rrelu(mode, dtype, x, *rest)),
    aten.exponential_.default: lambda mode, dtype, x, rate=1.0: x.copy_(mode.uniform(x.shape).log() / -rate),
}
