"""A module of one's own as a bundle: the description that `xtts-export module` takes, and its way into a folder."""

import inspect
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from . import lowering, mixed, verify, watch
from .bundle import Bundle
from .clean import Gains
from .refusal import Refusal

METRIC = "metric."


@dataclass(frozen=True)
class Input:
    """A tensor of the batch, as `inputs` of bundle.json has it (docs/bundle.md).

    shape has numbers and symbols, the rows' symbol "B" first. lengths names the input that counts the valid part of axis 1, and
    pad fills what lies behind it. origin is "dataset" for what the host makes, "stage" for what a stage of the pipeline does.
    below bounds the integers of made-up batches: the size of the table that they index.
    """

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    lengths: str | None = None
    pad: float = 0
    origin: str = "dataset"
    below: int = 2

    def entry(self) -> dict:
        entry = {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}
        if self.lengths:
            entry |= {"pad": self.pad, "lengths": self.lengths}
        return entry | {"origin": self.origin}


def sequence(name: str, dtype: str, *shape: str | int, lengths: str, **rest) -> list[Input]:
    """The input `name` of rows of a varying length, and the input that has their lengths."""
    return [Input(name, dtype, ("B", *shape), lengths=lengths, **rest), Input(lengths, "i32", ("B",), origin=rest.get("origin", "dataset"))]


@dataclass
class Export:
    """What becomes a bundle; `build()` of `xtts-export module FILE:build` returns one.

    module's forward takes inputs by name: those that it has parameters for, and `seed` (i64 scalar, None in the eval graph) when
    it has one. Its parameters keep their state_dict names; those with requires_grad False are frozen.

    The batch reaches it clean: what stands behind a row's length is padding. nn.Dropout and the dropout of PyTorch's attention are drawn
    from the seed.

    loss(outputs, batch) gets what forward returned and the batch as {name: tensor}. It returns scalars by name: "loss", "loss_weight"
    (what the loss is a mean over; see accumulation) and metrics under any other names. Without loss, forward returns them itself.

    buckets give every symbol but B a value, in ascending order. accumulation is "exact" when one denominator, loss_weight,
    covers the whole loss, and "mean" otherwise. tokenizer is the text of a Hugging Face tokenizer.json. The other fields are the keys of
    bundle.json of the same names (docs/bundle.md).
    """

    name: str
    module: nn.Module
    inputs: list[Input]
    buckets: list[dict[str, int]]
    features: dict
    loss: Callable[[object, dict[str, Tensor]], dict[str, Tensor]] | None = None
    tokenizer: str | None = None
    pipeline: list[dict] = field(default_factory=list)
    optimizer: dict = field(default_factory=lambda: {
        "name": "adamw", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0})
    schedule: dict = field(default_factory=lambda: {"name": "cosine", "warmup_steps": 20})
    accumulation: str = "exact"
    baselines: list[dict] = field(default_factory=list)
    description: str = ""
    license: str = "Apache-2.0"
    eval_graph: bool = True

    def write(self, folder: Path, precisions: tuple[str, ...] = ("f32",)) -> None:
        """Writes the bundle, with a training graph for each precision, and prints how long each phase took. Raises Refusal."""
        step = Step(self)
        describe(self.module)
        bundle = self._bundle(step)
        rows = batch(self.inputs, bundle.small(), np.random.default_rng(0))
        with phase("rehearse"):
            rehearsal = watch.rehearse(step, bundle.signature(), [*rows.values(), torch.tensor(-1)], loss=_loss)
        step.outputs = tuple(rehearsal.result)
        bundle = replace(self._bundle(step), precisions=precisions)
        gains = bundle.write(folder, rehearsal, phase)
        if reason := verify.lacks_memory(step):
            print(f"not compared with PyTorch: {reason}")
        else:
            with phase("verify"):
                error, name = verify.check(self, step, bundle.small(), folder)
            print(f"  differs from PyTorch by at most {error:.1e} of the norm, in {name}")
        if "bf16" in precisions:
            self._verify_bf16(step, bundle, folder)
        report(folder, gains)

    def _verify_bf16(self, step: "Step", bundle: Bundle, folder: Path) -> None:
        if reason := verify.lacks_memory(step, mixed.COPIES):
            print(f"bf16 not compared with PyTorch: {reason}")
            return
        with phase("verify bf16"):
            same, f32 = mixed.check(self, step, bundle.small(), folder)
        print(f"  differs from PyTorch in bf16 by {same}, in f32 by {f32}")

    def _bundle(self, step: "Step") -> Bundle:
        return Bundle(
            name=self.name, description=self.description, module=step, inputs=[i.entry() for i in self.inputs], outputs=step.outputs,
            buckets=self.buckets, features=self.features, optimizer=self.optimizer, schedule=self.schedule, pipeline=self.pipeline,
            baselines=self.baselines, accumulation=self.accumulation, tokenizer=self.tokenizer, license=self.license,
            eval_graph=self.eval_graph)


class Step(nn.Module):
    """A module and its loss as one: takes the batch's tensors in the order of the inputs, then the seed; returns scalars.

    The result is a dict by output name until outputs is set, then a tuple in its order.
    """

    outputs: tuple[str, ...] = ()

    def __init__(self, export: Export):
        super().__init__()
        # The module's own tables, so that parameters keep their names. A tuple hides the module from nn.Module's bookkeeping.
        self._parameters, self._modules, self._buffers = export.module._parameters, export.module._modules, export.module._buffers
        self._export = (export,)
        self._takes = inspect.signature(export.module.forward).parameters
        _refuse_shared(export.module)

    def forward(self, *tensors: Tensor):
        scalars = self.named(*tensors)
        return tuple(scalars[name] for name in self.outputs) if self.outputs else scalars

    def named(self, *tensors: Tensor) -> dict[str, Tensor]:
        """forward's, by name."""
        [export] = self._export
        names = [i.name for i in export.inputs]
        batch = _clean(export.inputs, dict(zip(names, tensors, strict=False)))
        given = {**batch, "seed": tensors[len(names)] if len(tensors) > len(names) else None}
        if unknown := [name for name, p in self._takes.items() if name not in given and p.default is p.empty and p.kind != p.VAR_KEYWORD]:
            raise Refusal(f"forward of {type(export.module).__name__} takes {unknown[0]!r}, which is no input",
                          f"inputs are {', '.join(names)}, and seed")
        with lowering.seeded(given["seed"]):
            result = export.module(**{name: x for name, x in given.items() if name in self._takes})
            if export.loss is not None:
                result = export.loss(result, batch)
        if not isinstance(result, dict) or not {"loss", "loss_weight"} <= result.keys():
            raise Refusal(f"{'loss function' if export.loss else 'forward'} returned {type(result).__name__} without loss and loss_weight",
                          'return {"loss": ..., "loss_weight": ..., "any_metric": ...}')
        named = {"loss": result["loss"], "loss_weight": result["loss_weight"]}
        named |= {METRIC + name.removeprefix(METRIC): x for name, x in result.items() if name not in named}
        return {name: x if name == "loss" else x.detach() for name, x in named.items()}


def _clean(inputs: list[Input], batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Padding behind each row's length, whatever stood there: NaN times a mask of 0 is NaN, and an id from nowhere has no row in a table."""
    cleaned = dict(batch)
    for i in inputs:
        if i.lengths:
            x = batch[i.name]
            inside = torch.arange(x.shape[1])[None, :] < batch[i.lengths][:, None]
            inside = inside.view(*inside.shape, *[1] * (x.dim() - 2))
            cleaned[i.name] = torch.where(inside, x, torch.zeros_like(x) + i.pad if i.pad else torch.zeros_like(x))
    return cleaned


def batch(inputs: list[Input], sizes: dict[str, int], random: np.random.Generator, empty_row: int | None = None) -> dict[str, Tensor]:
    """Random content for inputs in order: floats are normal, integers below their bound, lengths from 1 to their axis."""
    axis = {i.lengths: i.shape[1] for i in inputs if i.lengths}
    made = {}
    for i in inputs:
        shape = [sizes[d] if isinstance(d, str) else d for d in i.shape]
        if i.name in axis:
            lengths = random.integers(1, sizes[axis[i.name]] + 1, shape)
            if empty_row is not None:
                lengths[empty_row] = 0
            made[i.name] = torch.from_numpy(lengths.astype(np.int32))
        elif i.dtype in ("f32", "bf16", "f16"):
            made[i.name] = torch.from_numpy(random.standard_normal(shape).astype(np.float32))
        else:
            made[i.name] = torch.from_numpy(random.integers(0, i.below, shape).astype(np.int64 if i.dtype == "i64" else np.int32))
    return made


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Prints the phase and, when it is over, its seconds."""
    print(f"{name} ... ", end="", flush=True)
    start = time.monotonic()
    done = False
    try:
        yield
        done = True
    finally:
        print(f"{time.monotonic() - start:.1f} s" if done else "failed", flush=True)


def describe(module: nn.Module) -> None:
    """Prints the size of the module."""
    parameters = list(module.parameters())
    print(f"{type(module).__name__}: {sum(p.numel() for p in parameters):,} parameters in {len(parameters)} tensors", flush=True)


def report(folder: Path, gains: dict[str, Gains]) -> None:
    """Prints what the graphs of a bundle are made of, what cleaning took away, and what a step costs."""
    document = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    for graph in document["graphs"]:
        print(f"{graph['file']}: " + (f"cleaned {gains[graph['file']]}" if graph["file"] in gains else "the part of training_model.onnx that it needs"))
        print(f"  {sum(graph['nodes'].values())} nodes: " + ", ".join(f"{n} {kind}" for kind, n in graph["nodes"].items()))
    for c in document["cost"]:
        print(f"a step of {c['batch_size']} rows, bucket {c['bucket']}: {c['flops'] / 1e9:.3g} GFLOP, {c['bytes'] / 1e9:.3g} GB read and written at most")


def _refuse_shared(module: nn.Module) -> None:
    names = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        if id(p) in names:
            raise Refusal(f"parameter {name} is {names[id(p)]} under another name", f"use the tensor of {names[id(p)]} in forward: torch.nn.functional.linear(x, weight), say")
        names[id(p)] = name
        if p.dtype != torch.float32:
            raise Refusal(f"parameter {name} is {str(p.dtype).removeprefix('torch.')}", "master weights are float32: call module.float()")


def _loss(result: dict[str, Tensor]) -> Tensor:
    """The loss of what Step returned, which are float32 scalars."""
    for name, x in result.items():
        if x.dim() != 0 or x.dtype != torch.float32:
            raise Refusal(f"{name} is {str(x.dtype).removeprefix('torch.')}{list(x.shape)}, not a float32 scalar", f"reduce {name} with .sum() or .mean(), and .float() it")
    return result["loss"]
