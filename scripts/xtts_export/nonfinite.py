"""Which operation of a module gives NaN, with the user's line: found by running it once more in PyTorch."""

import re
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import refusal, watch
from .refusal import Refusal

# Operators that write an infinity which the user has given, as masks have it.
_GIVEN = {"full", "fill", "masked_fill", "where", "scalar_tensor", "full_like", "lift_fresh", "constant_pad_nd", "new_full", "copy", "index_put"}
_HINTS = {
    "div": "divide by x.clamp(min=1), or add a small number to it",
    "reciprocal": "divide by x.clamp(min=1), or add a small number to it",
    "softmax": "mask with a large negative number, -1e9, not with -inf: a row whose scores are all -inf has no softmax",
    "log_softmax": "mask with a large negative number, -1e9, not with -inf: a row whose scores are all -inf has no softmax",
    "logsumexp": "mask with a large negative number, -1e9, not with -inf: a row whose scores are all -inf has no logsumexp",
    "exp": "take exp(x.clamp(max=80))",
    "log": "take log(x.clamp(min=1e-5))",
    "sqrt": "take sqrt(x + 1e-8): at 0 its gradient is infinite",
    "rsqrt": "take rsqrt(x + 1e-8)",
    "pow": "take (x + 1e-8) ** p: at 0 the gradient of a root is infinite",
    "std": "take (x.var(...) + 1e-5).sqrt()",
    "var": "a variance needs two elements: correction=0 takes one",
    "mean": "divide a sum by count.clamp(min=1)",
    "linalg_vector_norm": "take (x.square().sum(dim) + 1e-8).sqrt()",
    "acos": "clamp to -0.999 to 0.999", "asin": "clamp to -0.999 to 0.999", "atanh": "clamp to -0.999 to 0.999",
}
# From finite numbers as large as these, an infinity is no root or quotient, but the end of f32.
_LARGE = 2.0 ** 50
_TOO_LARGE = "clamp what it gets, x.clamp(-1e4, 1e4), or normalize that over the elements of each row"
_ANY = "weight rows by a mask of their length, divide by count.clamp(min=1), and guard both branches of torch.where"


class Found(Exception):
    """Ends the run."""


class _Watch(TorchDispatchMode):
    """Stops at the first NaN, and remembers which operator made the infinity that it may come from."""

    def __init__(self):
        super().__init__()
        self.operator = self.place = None
        # Whether it made the infinity of large numbers.
        self.overflows = False

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        given, made = _floats([args, kwargs or {}]), _floats(result)
        name = _name(operator)
        fresh = all(bool(x.isfinite().all()) for x in given)
        if fresh and self.operator is None and name not in _GIVEN and any(bool(x.isinf().any()) for x in made):
            self.operator, self.place = name, refusal.here()
            self.overflows = any(bool((x.abs() >= _LARGE).any()) for x in given)
        # New memory may hold anything.
        if any(bool(x.isnan().any()) for x in made) and not name.startswith(("empty", "new_empty", "gradient of copy")) and not any(bool(x.isnan().any()) for x in given):
            if self.operator is None or name.removeprefix("_") in _HINTS and not fresh and not self.overflows:
                self.operator, self.place = name, refusal.here()
            raise Found
        return result


def _name(operator) -> str:
    """The operator; during the backward pass, the one whose gradient is being computed, with `gradient of`."""
    node = torch._C._current_autograd_node()
    if node is None:
        return operator._schema.name.partition("::")[2].removesuffix("_")
    return "gradient of " + re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"Backward\d*$", "", node.name())).lower()


def _floats(values: object) -> list[Tensor]:
    return [x for x in torch.utils._pytree.tree_leaves(values) if isinstance(x, Tensor) and x.is_floating_point()]


def explain(what: str, loss: Callable[[], Tensor], parameters: list[Tensor]) -> Refusal:
    """The refusal of `what` (a sentence that ends with "NaN"): loss() is run forward and backward, until the first NaN."""
    operations = _Watch()
    try:
        with watch.quiet(), torch.autograd.detect_anomaly(check_nan=False), operations:
            torch.autograd.grad(loss(), parameters, allow_unused=True)
    except Found:
        pass
    if operations.operator is None:
        return Refusal(what, _ANY)
    named = f"{'the ' if ' ' in operations.operator else ''}{operations.operator}"
    if operations.overflows:
        return Refusal(f"{what}: numbers of empty rows grow from layer to layer, and in {named} beyond those of f32", _TOO_LARGE, operations.place)
    hint = _HINTS.get(operations.operator.removeprefix("gradient of ").removeprefix("_"), _ANY)
    return Refusal(f"{what}: {named} gives it first", hint, operations.place)
