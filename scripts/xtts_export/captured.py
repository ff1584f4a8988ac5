"""Tensors that would be trained in PyTorch and that the module does not have, as a criterion with weights in a closure of the loss: in a graph they would be
constants."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree

from . import refusal
from .reach import Reached, globals_of_users
from .refusal import Refusal


class Captured(Refusal):
    """The refusal of a tensor, which has no name yet."""

    def __init__(self, tensor: Tensor, place: str | None, name: str | None = None):
        what = f"{name or 'a tensor'}, {list(tensor.shape)}, requires a gradient and is no parameter of the exported module: a graph would keep its values"
        owner = (name or "criterion.weight").split(".")[0]
        hint = (f"give the module the part that has it, module.{owner} = {owner}, before Export(...) gets the module; or {owner}.requires_grad_(False), for what stays as it is"
                if name is None or "." in name else
                f"make it the module's, module.{owner} = nn.Parameter({owner}.detach()), and read module.{owner} where it was used; or {owner}.requires_grad_(False), for what stays as it is")
        super().__init__(what, hint, place)
        self.tensor, self.place = tensor, place

    def named(self, module: nn.Module, functions: Iterable[Callable]) -> "Captured":
        return Captured(self.tensor, self.place, next(_names(self.tensor, module, functions), None))


def refuse(args: tuple, kwargs: dict, own: dict[int, str]) -> None:
    """Raises Captured if an operator's arguments have such a tensor. own has the storages of the module's parameters."""
    if not torch.is_grad_enabled():
        return
    for x in _pytree.arg_tree_leaves(*args, **kwargs):
        if isinstance(x, Tensor) and not isinstance(x, FakeTensor) and x.requires_grad and storage(x) not in own:
            raise Captured(x, refusal.here())


def storage(x: Tensor) -> int:
    """Which memory a tensor is a view of."""
    return x.untyped_storage()._cdata


def _names(tensor: Tensor, module: nn.Module, functions: Iterable[Callable]) -> Iterator[str]:
    """What the code calls it."""
    reached = Reached((module, *functions))
    for label, place in [*reached.places, *((f"{name}.", own) for name, own in globals_of_users())]:
        entries = place.items() if hasattr(place, "items") else enumerate(tuple(place))
        for key, x in list(entries):
            # Of a variable the name counts, not where it is; of an entry, the container's.
            name = str(key) if label.endswith(".") or not label else label.rpartition(".")[2]
            if x is tensor:
                yield name
            elif isinstance(x, nn.Module) and x is not module:
                yield from (f"{name}.{own}" for own, p in x.named_parameters() if p is tensor)
    for part in reached.parts():
        yield from (f"{type(part).__name__}.{own}" for own, p in part.named_parameters() if p is tensor)
