"""Writes graph bundles (docs/bundle.md)."""

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from safetensors.numpy import save as safetensors
from safetensors.numpy import save_file
from torch import nn

from . import cost, joint, mixed
from .clean import Gains
from .watch import Input, Rehearsal

DTYPES = {"f32": torch.float32, "i32": torch.int32, "i64": torch.int64}
COST_ROWS = 8


@dataclass(frozen=True)
class Bundle:
    """All that a bundle's folder is made of.

    module's forward takes the tensors of `inputs` in that order and then the seed, which the evaluation graph leaves out, and
    returns the scalars of `outputs`, the loss first, the others detached. Its weights are the initial ones.
    """

    name: str
    description: str
    module: nn.Module
    inputs: list[dict]
    outputs: tuple[str, ...]
    buckets: list[dict]
    features: dict
    optimizer: dict
    schedule: dict
    pipeline: list[dict]
    baselines: list[dict]
    accumulation: str
    tokenizer: str | None
    license: str = "Apache-2.0"
    eval_graph: bool = True
    precisions: tuple[str, ...] = ("f32",)

    def signature(self) -> list[Input]:
        """The graph's inputs but for the parameters."""
        return [Input(i["name"], i["dtype"], tuple(i["shape"])) for i in self.inputs] + [Input("seed", "i64", ())]

    def zeros(self, sizes: dict[str, int]) -> list[torch.Tensor]:
        """A batch of these sizes without content."""
        return [torch.zeros([sizes[d] if isinstance(d, str) else d for d in i.shape], dtype=DTYPES[i.dtype]) for i in self.signature()]

    def write(self, folder: Path, rehearsal: Rehearsal, phase: Callable[[str], AbstractContextManager]) -> dict[str, Gains]:
        """Writes the folder and returns what clean-up took away from each graph that was traced.

        rehearsal is the module's; phase surrounds each part of the work.
        """
        folder.mkdir(parents=True, exist_ok=True)
        example = self.zeros(self.small())
        gains = {}
        with phase("training graph"):
            training, gains["training_model.onnx"] = joint.export(
                self.module, self.signature(), example, self.outputs, folder / "training_model.onnx", rehearsal=rehearsal)
        if "bf16" in self.precisions:
            with phase("training graph in bf16"):
                _, gains[mixed.FILE] = joint.export(
                    self.module, self.signature(), example, self.outputs, folder / mixed.FILE, rehearsal=rehearsal, compute="bf16")
        if self.eval_graph:
            with phase("eval graph"):
                if joint.uses(training, "seed"):
                    _, gains["eval_model.onnx"] = joint.export(
                        self.module, self.signature()[:-1], example[:-1], self.outputs, folder / "eval_model.onnx", backward=False, rehearsal=rehearsal)
                else:
                    joint.part(training, self.outputs, "seed", folder / "eval_model.onnx")
        with phase("weights"):
            save_file(_arrays(self.module), folder / "params.safetensors")
        if self.tokenizer is not None:
            (folder / "tokenizer.json").write_text(self.tokenizer, encoding="utf-8")
        with phase("bundle.json"):
            (folder / "bundle.json").write_text(dump(self.document(folder)) + "\n", encoding="utf-8")
        return gains

    def small(self) -> dict[str, int]:
        """Unequal sizes above 1 for every symbol, so that tracing cannot take one for another or for a constant."""
        symbols = sorted({d for i in self.inputs for d in i["shape"] if isinstance(d, str)})
        return {d: 3 + 2 * i for i, d in enumerate(symbols)}

    def document(self, folder: Path) -> dict:
        graphs = [{"file": "training_model.onnx", "kind": "train", "precision": "f32"}]
        if "bf16" in self.precisions:
            graphs.append({"file": mixed.FILE, "kind": "train", "precision": "bf16"})
        if self.eval_graph:
            graphs.append({"file": "eval_model.onnx", "kind": "eval", "precision": "f32"})
        graphs = [{**graph, "nodes": cost.nodes(folder / graph["file"])} for graph in graphs]
        # The graph has decided which parameters it takes in bf16.
        compute = {name: {"compute": "bf16"} for name in _inputs(folder / mixed.FILE, onnx.TensorProto.BFLOAT16)} if "bf16" in self.precisions else {}
        files = [*(g["file"] for g in graphs), "params.safetensors", *([] if self.tokenizer is None else ["tokenizer.json"])]
        return {
            "version": 1,
            "name": self.name,
            "description": self.description,
            "license": self.license,
            "inputs": self.inputs,
            "outputs": [{"name": name, "dtype": "f32", "shape": []} for name in self.outputs],
            "parameters": [{**p, **compute.get(p["name"], {})} for p in arena(self.module)],
            "buckets": self.buckets,
            "features": self.features,
            **({} if self.tokenizer is None else {"tokenizer": {"file": "tokenizer.json"}}),
            "pipeline": self.pipeline,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "graphs": graphs,
            "accumulation": self.accumulation,
            "baselines": self.baselines,
            "cost": self.cost(folder / "training_model.onnx"),
            "files": {name: _sha256(folder / name) for name in files},
        }

    def cost(self, graph: Path) -> list[dict]:
        out = []
        feed = {name: p.detach().numpy() for name, p in self.module.named_parameters()}
        for i, bucket in enumerate(self.buckets):
            batch = self.zeros({**bucket, "B": COST_ROWS})
            feed |= {spec.name: x.numpy() for spec, x in zip(self.signature(), batch, strict=True)}
            flops, bytes_ = cost.count(graph, feed)
            out.append({"bucket": i, "batch_size": COST_ROWS, "flops": flops, "bytes": bytes_})
        return out


def arena(module: nn.Module) -> list[dict]:
    """The parameters in the order of the host's arena: what the optimizer decays (matrices), then the others (biases, norms), then what is frozen."""
    entries = []
    for name, p in module.named_parameters():
        frozen = {} if p.requires_grad else {"frozen": True}
        entries.append({"name": name, "shape": list(p.shape), "decay": p.dim() >= 2 and p.requires_grad, **frozen})
    return sorted(entries, key=lambda p: (p.get("frozen", False), not p["decay"]))


def weights(module: nn.Module) -> bytes:
    """A module's parameters as safetensors, f32, in the file's canonical order."""
    return safetensors(_arrays(module))


def _arrays(module: nn.Module) -> dict[str, np.ndarray]:
    """The parameters, without a copy of those that are f32 already."""
    return {name: np.ascontiguousarray(p.detach().numpy(), dtype=np.float32) for name, p in module.named_parameters()}


def _inputs(graph: Path, element: int) -> list[str]:
    """Those with elements of this type."""
    return [i.name for i in onnx.load(graph).graph.input if i.type.tensor_type.elem_type == element]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dump(document: dict) -> str:
    """JSON with one line for each entry of a list: short enough to read, long enough to compare."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n    ".join(json.dumps(v, ensure_ascii=False) for v in value)
            parts.append(f'  "{key}": [\n    {lines}\n  ]')
        else:
            parts.append(f'  "{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(parts) + "\n}"
