"""Which function of a module saturates, with the user's line: there, a gradient is what rounding leaves.

A sigmoid of 20 is 1 - 2e-9, which f32 rounds to 1. What takes the logarithm of its distance from 1, as binary_cross_entropy
does, has a gradient that depends on the order of the steps, and two right ones may be far apart.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import refusal, watch
from .refusal import Refusal

aten = torch.ops.aten
# Numbers this near to 0 and 1 have lost most of their digits, as distances from it.
_NEAR = 1e-6
HINT = "F.binary_cross_entropy_with_logits(y, target) of what goes into the sigmoid, and F.logsigmoid(y) in place of log(sigmoid(y))"


class _Watch(TorchDispatchMode):
    """Notes the function that takes logarithms of what a sigmoid has rounded to 0 or 1."""

    def __init__(self):
        super().__init__()
        self.saturated = False
        self.found: tuple[str, str | None] | None = None

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        if operator is aten.sigmoid.default:
            self.saturated |= _any(result, lambda x: (x < _NEAR) | (x > 1 - _NEAR))
        name = operator._schema.name.partition("::")[2]
        entropy = name == "binary_cross_entropy" and _any(args[0], lambda x: (x < _NEAR) | (x > 1 - _NEAR))
        logarithm = name in ("log", "log2", "log10") and self.saturated and _any(args[0], lambda x: x < _NEAR)
        if self.found is None and (entropy or logarithm):
            self.found = name, refusal.here()
        return result


def _any(x: Tensor, condition: Callable[[Tensor], Tensor]) -> bool:
    return bool(condition(x).any())


def explained(error: Refusal, run: Callable[[], object]) -> Refusal:
    """The refusal of a difference; with the function that saturates in run, if one does."""
    watched = _Watch()
    with torch.no_grad(), watch.quiet(), watched:
        run()
    if watched.found is None:
        return error
    name, place = watched.found
    what = "probabilities" if name == "binary_cross_entropy" else "results of a sigmoid"
    return Refusal(f"{error}: {name} gets {what} that are rounded to 0 and 1, whose gradients are rounding in PyTorch, too", HINT, place)
