"""Writes graph bundles (docs/bundle.md)."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save as safetensors
from torch import nn

from . import cost, joint
from .joint import Input

DTYPES = {"f32": torch.float32, "i32": torch.int32, "i64": torch.int64}
COST_ROWS = 8


@dataclass(frozen=True)
class Bundle:
    """All that a bundle's folder is made of.

    make builds the module, seeded, so that equal calls give equal weights. Its forward takes the tensors of `inputs` in that
    order and then the seed, which the evaluation graph leaves out, and returns the scalars of `outputs`, the loss first, the
    others detached.
    """

    name: str
    description: str
    make: Callable[[], nn.Module]
    inputs: list[dict]
    outputs: tuple[str, ...]
    buckets: list[dict]
    features: dict
    optimizer: dict
    schedule: dict
    pipeline: list[dict]
    baselines: list[dict]
    accumulation: str
    tokenizer: str
    license: str = "Apache-2.0"

    def signature(self) -> list[Input]:
        """The graph's inputs but for the parameters."""
        return [Input(i["name"], i["dtype"], tuple(i["shape"])) for i in self.inputs] + [Input("seed", "i64", ())]

    def parameters(self, module: nn.Module) -> list[dict]:
        """In arena order: what the optimizer decays (matrices), then the others (biases, norms)."""
        every = [{"name": name, "shape": list(p.shape), "decay": p.dim() >= 2} for name, p in module.named_parameters()]
        return sorted(every, key=lambda p: not p["decay"])

    def zeros(self, sizes: dict[str, int]) -> list[torch.Tensor]:
        """A batch of these sizes without content."""
        return [torch.zeros([sizes[d] if isinstance(d, str) else d for d in i.shape], dtype=DTYPES[i.dtype]) for i in self.signature()]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        module = self.make()
        (folder / "params.safetensors").write_bytes(weights(module))
        (folder / "tokenizer.json").write_text(self.tokenizer, encoding="utf-8")
        # Unequal sizes above 1, so that tracing cannot take one for another or for a constant.
        symbols = sorted({d for i in self.inputs for d in i["shape"] if isinstance(d, str)})
        example = self.zeros({d: 3 + 2 * i for i, d in enumerate(symbols)})
        joint.export(module, self.signature(), example, self.outputs, folder / "training_model.onnx")
        joint.export(module, self.signature()[:-1], example[:-1], self.outputs, folder / "eval_model.onnx", backward=False)
        document = self.document(module, folder)
        (folder / "bundle.json").write_text(dump(document) + "\n", encoding="utf-8")

    def document(self, module: nn.Module, folder: Path) -> dict:
        files = ["training_model.onnx", "eval_model.onnx", "params.safetensors", "tokenizer.json"]
        return {
            "version": 1,
            "name": self.name,
            "description": self.description,
            "license": self.license,
            "inputs": self.inputs,
            "outputs": [{"name": name, "dtype": "f32", "shape": []} for name in self.outputs],
            "parameters": self.parameters(module),
            "buckets": self.buckets,
            "features": self.features,
            "tokenizer": {"file": "tokenizer.json"},
            "pipeline": self.pipeline,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "graphs": [
                {"file": "training_model.onnx", "kind": "train", "precision": "f32"},
                {"file": "eval_model.onnx", "kind": "eval", "precision": "f32"},
            ],
            "accumulation": self.accumulation,
            "baselines": self.baselines,
            "cost": self.cost(module, folder / "training_model.onnx"),
            "files": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files},
        }

    def cost(self, module: nn.Module, graph: Path) -> list[dict]:
        out = []
        feed = {name: p.detach().numpy() for name, p in module.named_parameters()}
        for i, bucket in enumerate(self.buckets):
            batch = self.zeros({**bucket, "B": COST_ROWS})
            feed |= {spec.name: x.numpy() for spec, x in zip(self.signature(), batch, strict=True)}
            flops, bytes_ = cost.count(graph, feed)
            out.append({"bucket": i, "batch_size": COST_ROWS, "flops": flops, "bytes": bytes_})
        return out


def weights(module: nn.Module) -> bytes:
    """A module's parameters as safetensors, f32, in the file's canonical order."""
    return safetensors({name: np.ascontiguousarray(p.detach().numpy(), dtype=np.float32) for name, p in module.named_parameters()})


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
