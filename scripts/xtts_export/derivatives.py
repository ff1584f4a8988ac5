"""torch.func's gradients by torch.autograd, which a trace can follow: within functorch's own wrappers PyTorch's functions run on the example's sizes.

And gradients that code takes where none are computed, as an evaluation of a gradient penalty has them.
"""

import contextlib
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch import Tensor
from torch._functorch import eager_transforms
from torch.utils import _pytree as pytree


class Needed(Exception):
    """Code takes gradients, and what it takes them of was computed without."""


@contextlib.contextmanager
def functions() -> Iterator[None]:
    """Within it torch.autograd.grad raises Needed where autograd is off."""
    grad = torch.autograd.grad

    def taken(*args, **options):
        if not torch.is_grad_enabled():
            raise Needed
        return grad(*args, **options)

    with mock.patch.object(torch.autograd, "grad", taken):
        yield


def recorded(run: Callable[[], dict]) -> dict:
    """What run returns; if it takes gradients, of a run that computes them."""
    try:
        return run()
    except Needed:
        with torch.enable_grad():
            results = run()
        return pytree.tree_map_only(Tensor, Tensor.detach, results)


def _copied(args: tuple) -> tuple[tuple, list[Tensor]]:
    """Arguments that gradients can be taken of, and their tensors. Through them the results depend on the originals."""
    leaves, spec = pytree.tree_flatten(args)
    leaves = [x.view_as(x) if isinstance(x, Tensor) and x.requires_grad else x.detach().requires_grad_() if _floats(x) else x for x in leaves]
    return pytree.tree_unflatten(leaves, spec), [x for x in leaves if _floats(x)]


def _floats(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _of(args: tuple, gradients: tuple[Tensor, ...]) -> tuple:
    """The gradients in the places of their tensors."""
    leaves, spec = pytree.tree_flatten(args)
    left = iter(gradients)
    return pytree.tree_unflatten([next(left) if _floats(x) else None for x in leaves], spec)


def _kept(results: object, recording: bool) -> object:
    return results if recording else pytree.tree_map_only(Tensor, Tensor.detach, results)


def _grad_and_value(func: Callable, argnums: int | tuple[int, ...], has_aux: bool, args: tuple, kwargs: dict):
    recording = torch.is_grad_enabled()
    with torch.enable_grad():
        several = argnums if isinstance(argnums, tuple) else (argnums,)
        chosen, leaves = _copied(tuple(args[i] for i in several))
        given = list(args)
        for i, x in zip(several, chosen, strict=True):
            given[i] = x
        result = func(*given, **kwargs)
        value = result[0] if has_aux else result
        found = _of(chosen, torch.autograd.grad(value, leaves, create_graph=True, materialize_grads=True))
    found = found if isinstance(argnums, tuple) else found[0]
    return _kept(found, recording), _kept(result, recording)


def _grad(func: Callable, argnums: int | tuple[int, ...], has_aux: bool, args: tuple, kwargs: dict):
    found, result = _grad_and_value(func, argnums, has_aux, args, kwargs)
    return (found, result[1]) if has_aux else found


def _vjp(original: Callable) -> Callable:
    def vjp(func: Callable, *primals, argnums: int | tuple[int, ...] | None = None, has_aux: bool = False):
        if argnums is not None:
            # jacrev's, which takes all rows of the matrix at once.
            return original(func, *primals, argnums=argnums, has_aux=has_aux)
        recording = torch.is_grad_enabled()
        with torch.enable_grad():
            copies, leaves = _copied(primals)
            result = func(*copies)
        value = result[0] if has_aux else result

        def pull(*cotangents, **_):
            [slopes] = [cotangents] if len(cotangents) > 1 else [cotangents[0]]
            found = torch.autograd.grad(pytree.tree_leaves(value), leaves, pytree.tree_leaves(slopes), create_graph=True, materialize_grads=True)
            return _kept(_of(copies, found), recording)

        return _kept(value, recording), pull, *([_kept(result[1], recording)] if has_aux else [])
    return vjp


FUNCTIONS = (
    (eager_transforms, "grad_and_value_impl", _grad_and_value), (eager_transforms, "grad_impl", _grad),
    (eager_transforms, "_vjp_with_argnums", _vjp(eager_transforms._vjp_with_argnums)),
)
