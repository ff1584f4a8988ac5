"""What a module owns: parameters under one name each, and buffers, which are constants of the graph."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.utils import stateless
from torch.utils._python_dispatch import _disable_current_modes

from . import hooks

# `xtts-host graph lint` reports larger constants: each graph of the bundle would hold them.
LARGEST = 1 << 20


def aliases(module: nn.Module) -> dict[str, list[str]]:
    """The further names of parameters that have several, as tied weights have, by their first."""
    first, further = {}, {}
    for name, p in module.named_parameters(remove_duplicate=False):
        if first.setdefault(id(p), name) != name:
            further.setdefault(first[id(p)], []).append(name)
    return further


def _tied(module: nn.Module) -> dict[str, str]:
    """The first name of parameters that several layers have, by each further name. A layer with two names has its parameters once."""
    first, tied = {}, {}
    for path, owner in module.named_modules():
        for name, p in owner._parameters.items():
            full = f"{path}.{name}" if path else name
            if p is not None and first.setdefault(id(p), full) != full:
                tied[full] = first[id(p)]
    return tied


def freeze_large_buffers(module: nn.Module) -> None:
    """Makes frozen parameters, under the same names, of large buffers of f32."""
    for owner in module.modules():
        for name, x in list(owner._buffers.items()):
            if x is not None and x.dtype == torch.float32 and 4 * x.numel() > LARGEST:
                delattr(owner, name)
                owner.register_parameter(name, nn.Parameter(x, requires_grad=False))
                owner._parameters[name].was_buffer = True


def restore_buffers(module: nn.Module, names: Iterable[str]) -> None:
    """Undoes freeze_large_buffers for some."""
    for name in names:
        path, _, own = name.rpartition(".")
        owner = module.get_submodule(path)
        if (x := owner._parameters.get(own)) is not None:
            delattr(owner, own)
            owner.register_buffer(own, x.detach())


def made(constant: Callable):
    """What constant() returns, computed at once: a tensor that the graph holds, not operators that compute it."""
    with _disable_current_modes():
        return constant()


@contextlib.contextmanager
def parameters_only(module: nn.Module) -> Iterator[None]:
    """Hides from PyTorch's tracing, which would make inputs of them, buffers and the further names of parameters."""
    named, replace, tied = nn.Module.named_parameters, stateless._reparametrize_module, _tied(module)

    def once(module: nn.Module, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        return named(module, prefix, recurse)

    def tied_ones(module: nn.Module, given: dict[str, Tensor], **options):
        for name, p in named(module):
            if name in given:
                hooks.carry(p, given[name])
        return replace(module, given | {further: given[name] for further, name in tied.items()}, **options)

    with (mock.patch.object(nn.Module, "named_buffers", lambda *_, **options: iter(())), mock.patch.object(nn.Module, "named_parameters", once),
          mock.patch.object(stateless, "_reparametrize_module", tied_ones)):
        yield
