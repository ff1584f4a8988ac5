"""Files of torch.save that other programs wrote: their tensors, and the same files with other weights."""

import pickle
from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor, nn


class Unreadable(Exception):
    """The reason why a file has no state_dict."""


class Unfit(Exception):
    """The reason why tensors are not those of a module."""


# How many tensors a reason names.
_SHOWN = 3


def load(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Loads exactly these tensors into the module. Raises Unfit."""
    wanted = module.state_dict()
    problems = [f"{name} is missing" for name in wanted if name not in tensors]
    problems += [f"{name} is unknown" for name in tensors if name not in wanted]
    problems += [f"{name} is {list(tensors[name].shape)}, not {list(x.shape)}" for name, x in wanted.items() if name in tensors and tensors[name].shape != x.shape]
    if problems:
        raise Unfit(", ".join(problems[:_SHOWN]) + (f", and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""))
    module.load_state_dict(tensors)


def shape(tensors: dict[str, Tensor], name: str, count: int) -> tuple[int, ...]:
    """That of a tensor with so many axes, none empty. Raises Unfit."""
    if name not in tensors:
        raise Unfit(f"{name} is missing")
    if (x := tensors[name]).dim() != count or not x.numel():
        raise Unfit(f"{name} is {list(x.shape)}, not of {count} axes with elements")
    return tuple(x.shape)


def read(file: Path) -> dict[str, Tensor]:
    """The state_dict, of the whole file or under the key `model`. Nothing of the file is executed. Raises Unreadable."""
    try:
        saved = _load(file)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise Unreadable(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
    model = saved.get("model", saved) if isinstance(saved, dict) else None
    tensors = {name: x for name, x in model.items() if torch.is_tensor(x)} if isinstance(model, dict) else {}
    if not tensors:
        raise Unreadable(f"{file} holds no state_dict")
    return tensors


def replaced(model: dict[str, Tensor], weights: dict[str, Tensor], tables: Collection[str] = ()) -> tuple[dict[str, Tensor], list[str]]:
    """The state_dict with these weights, and what does not fit.

    The names in the state_dict may all have one more prefix. A tensor that it has under several names is replaced under all. tables are weights
    that may have got more rows.
    """
    first = next(iter(weights))
    prefixes = [name.removesuffix(first) for name in model if name == first or name.endswith("." + first)]
    prefix = max(prefixes, key=lambda p: sum(p + name in model for name in weights), default="")
    problems = [f"missing     {prefix}{name}" for name in weights if prefix + name not in model]
    both = {name: prefix + name for name in weights if prefix + name in model}
    grown = lambda name, own: name in tables and weights[name].shape[1:] == model[own].shape[1:] and weights[name].shape[:1] > model[own].shape[:1]
    problems += [f"shape       {own} is {list(model[own].shape)}, not {list(weights[name].shape)}" for name, own in both.items()
                 if model[own].shape != weights[name].shape and not grown(name, own)]
    place = lambda x: (x.data_ptr(), x.shape, x.stride())
    new = {place(model[own]): weights[name] for name, own in both.items()}
    return {name: new.get(place(x), x) for name, x in model.items()}, problems


class _Unknown(dict):
    """Stands for an object of a class that is not PyTorch's, such as a program's settings. It takes what the file says of it, and does nothing."""

    def __init__(self, *_: object):
        super().__init__()

    def __setstate__(self, _: object) -> None:
        pass


def _load(file: Path) -> object:
    load = lambda **options: torch.load(file, map_location="cpu", weights_only=True, **options)
    try:
        unknown = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    except (ValueError, RuntimeError):  # the format from before 2020, or no such file at all
        return load()
    with torch.serialization.safe_globals([(_Unknown, name) for name in unknown]):
        return load(mmap=True)
