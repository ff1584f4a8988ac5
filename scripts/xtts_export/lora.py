"""LoRA (Hu et al. 2021): an adapter for each chosen weight W, which is used as W + scale * B A. Only A and B are trained.

This holds however the module uses the weight: in a linear layer, a convolution, an embedding, attention. W stays frozen under its own
name; A and B are `lora_A.weight` and `lora_B.weight` of the module that has W. A takes the layer's input, B makes its output: of a weight
that is [in, out], the product is transposed.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from . import names
from .module import Export
from .refusal import Refusal

# A of every adapter is drawn with this seed; B begins at 0, so that the model begins as it is without adapters.
_SEED = 0
# Layers whose weight is [in, out].
TRANSPOSED = ("transposed", "embedding")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What --lora says."""

    rank: int
    alpha: float
    targets: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Settings":
        """rank=16,alpha=32,targets=PATTERN; targets may be repeated. Raises ValueError."""
        values: dict[str, list[str]] = {}
        for part in text.split(","):
            key, _, value = part.partition("=")
            values.setdefault(key, []).append(value)
        if values.keys() != {"rank", "alpha", "targets"} or len(values["rank"]) > 1 or len(values["alpha"]) > 1 or not all(values["targets"]):
            raise ValueError(f"{text!r} is not rank=N,alpha=X,targets=PATTERN")
        rank, alpha = int(values["rank"][0]), float(values["alpha"][0])
        if rank < 1 or not 0 < alpha < math.inf:
            raise ValueError(f"{text!r}: rank and alpha are above 0")
        return cls(rank, alpha, tuple(values["targets"]))


def freeze(module: nn.Module, patterns: Iterable[str]) -> None:
    """Freezes the parameters that a pattern of names matches."""
    for pattern in patterns:
        for name in _matching("--freeze", pattern, module):
            module.get_parameter(name).requires_grad_(False)


def adapt(export: Export, settings: Settings) -> Export:
    """The export with adapters, and everything else frozen."""
    module = export.module
    targets = [name for pattern in settings.targets for name in _matching("--lora targets", pattern, module)]
    weights = [name for name in dict.fromkeys(targets) if module.get_parameter(name).dim() >= 2]
    if not weights:
        raise Refusal(f"--lora: {', '.join(settings.targets)} matches no matrix", "name modules with weights of two or more dimensions")
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    adapters = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        for name in weights:
            adapters.append(_add(module, name, settings))
    return dataclasses.replace(export, module=Adapted(module, adapters), adapters=adapters)


def merged(weight: Tensor, a: Tensor, b: Tensor, adapter: dict) -> Tensor:
    """The weight that an adapter, as bundle.json has it, stands for. A weight of more than two dimensions is a matrix of its rows."""
    product = a.T @ b.T if adapter.get("layer") in TRANSPOSED else b @ a
    return weight + adapter["scale"] * product.view(weight.shape)


def merge(model: dict[str, Tensor], adapters: list[dict], parameters: Iterable[dict] = ()) -> dict[str, Tensor]:
    """A state_dict without adapters, in which the weights are merged, also under the aliases that the bundle's parameters have."""
    out = dict(model)
    for adapter in adapters:
        a, b = out.pop(adapter["a"]), out.pop(adapter["b"])
        out[adapter["weight"]] = merged(out[adapter["weight"]], a, b, adapter)
    return out | {alias: out[p["name"]] for p in parameters for alias in p.get("aliases", ()) if p["name"] in out}


class Adapted(nn.Module):
    """A module whose weights have adapters. Its parameters have the names that they have in the module."""

    def __init__(self, module: nn.Module, adapters: list[dict]):
        super().__init__()
        self._parameters, self._modules, self._buffers = module._parameters, module._modules, module._buffers
        self.training = module.training

        @functools.wraps(module.forward)  # whose parameters say which inputs it takes
        def forward(*arguments, **named):
            weights = {a["weight"]: merged(_tensor(module, a["weight"]), _tensor(module, a["a"]), _tensor(module, a["b"]), a) for a in adapters}
            module.training = self.training  # the mode of its parts is theirs
            return torch.func.functional_call(module, weights, arguments, named)

        self.forward = forward


def _tensor(module: nn.Module, name: str) -> Tensor:
    """A parameter by its name. While the module is traced, it is not an nn.Parameter."""
    path, _, own = name.rpartition(".")
    return getattr(module.get_submodule(path), own)


def _add(module: nn.Module, name: str, settings: Settings) -> dict:
    """Adds the adapter of a weight, and returns its entry in bundle.json."""
    path, _, own = name.rpartition(".")
    owner, weight = module.get_submodule(path), module.get_parameter(name)
    if isinstance(owner, (nn.Sequential, nn.ModuleList)):
        raise Refusal(f"--lora: {name} is a parameter of a {type(owner).__name__}", "name weights of layers")
    layer = _layer(owner, own)
    inner, outer = weight.shape if layer in TRANSPOSED else (weight[0].numel(), len(weight))
    a, b = torch.empty(settings.rank, inner), torch.zeros(outer, settings.rank)
    nn.init.kaiming_uniform_(a, a=math.sqrt(5))
    if layer == "embedding":
        # A row of A is as rare as its token, so that B is the one that is not 0 at first.
        nn.init.normal_(b)
        nn.init.zeros_(a)
    for key, value in (("lora_A", a), ("lora_B", b)):
        if not hasattr(owner, key):
            owner.add_module(key, nn.Module())
        getattr(owner, key).register_parameter(own, nn.Parameter(value))
    prefix = path + "." if path else ""
    return {"weight": name, "a": f"{prefix}lora_A.{own}", "b": f"{prefix}lora_B.{own}", "scale": settings.alpha / settings.rank,
            **({"layer": layer} if layer else {})}


def _layer(owner: nn.Module, own: str) -> str | None:
    """What kind of layer has the weight, if it is one that the library PEFT knows: as bundle.json has it."""
    if own != "weight":
        return None
    if isinstance(owner, nn.Embedding):
        return "embedding"
    if isinstance(owner, nn.Linear):
        return "linear"
    if isinstance(owner, (nn.Conv1d, nn.Conv2d, nn.Conv3d)) and owner.groups == 1:
        return "convolution"
    transformers = any(f"{base.__module__}.{base.__name__}" == "transformers.pytorch_utils.Conv1D" for base in type(owner).__mro__)
    return "transposed" if transformers or getattr(owner, "inputs_first", False) else None


def _matching(flag: str, pattern: str, module: nn.Module) -> list[str]:
    found = [name for name, _ in module.named_parameters() if names.match([pattern], {"name": name})]
    if not found:
        raise Refusal(f"{flag} {pattern}: no parameter has such a name", f"parameters are {', '.join([n for n, _ in module.named_parameters()][:5])}, ...")
    return found
