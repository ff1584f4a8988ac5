"""What changes gradients on their way: hooks of parameters, which a graph's own inputs get too, and hooks of results.

Tracing computes with stand-ins of the parameters, which would have no hooks. PyTorch calls hooks of accumulated gradients in backward() only,
and no part of a graph accumulates: their place is after all hooks of the parameter.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from unittest import mock

import torch
from torch import Tensor, nn

from . import refusal
from .refusal import Refusal


@contextlib.contextmanager
def without_gradients() -> Iterator[None]:
    """Within it, code that watches a result's gradient runs where none is computed, too, as in an evaluation. There PyTorch refuses to."""
    with (mock.patch.object(Tensor, "register_hook", _if_there_is_one(Tensor.register_hook, lambda: torch.utils.hooks.RemovableHandle(OrderedDict()))),
          mock.patch.object(Tensor, "retain_grad", _if_there_is_one(Tensor.retain_grad, lambda: None))):
        yield


def _if_there_is_one(method: Callable, otherwise: Callable) -> Callable:
    return lambda self, *args: method(self, *args) if self.requires_grad or torch.is_grad_enabled() else otherwise()


def carry(parameter: nn.Parameter, stand_in: Tensor) -> None:
    """Gives the hooks of a parameter to what stands for it in a trace."""
    if stand_in.requires_grad:
        for hook in (parameter._backward_hooks or {}).values():
            stand_in.register_hook(hook)
        _at_last(parameter, stand_in)


@contextlib.contextmanager
def at_last(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Within it, torch.autograd.grad calls the hooks of accumulated gradients."""
    handles = [handle for p in parameters if p.requires_grad for handle in _at_last(p, p)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _at_last(parameter: nn.Parameter, tensor: Tensor) -> list:
    return [tensor.register_hook(_accumulated(hook, tensor)) for hook in (parameter._post_accumulate_grad_hooks or {}).values()]


def _accumulated(hook: Callable, tensor: Tensor) -> Callable[[Tensor], Tensor]:
    """The hook of an accumulated gradient as one of a gradient: it finds a parameter with that gradient."""
    def of(gradient: Tensor) -> Tensor:
        with torch.no_grad():
            p = tensor.detach()
            p.grad, version = gradient.clone(), p._version
            hook(p)
        code = hook.__code__ if hasattr(hook, "__code__") else None
        line = code and refusal.at(code.co_filename, code.co_firstlineno, code.co_name)
        if p.grad is None or p._version != version:
            raise Refusal("a hook of the accumulated gradient updates the parameter or takes its gradient away",
                          "leave the hook out: the optimizer of the bundle updates parameters", line)
        return p.grad
    return of
