"""Runs a bundle's graphs in ONNX Runtime as the host does: arenas, accumulation, norm, update in place. For tests and checks."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch

from . import optimizer, updates
from .bundle import TRAIN, arena
from .inputs import Input
from .module import Export

# The largest chunk of a flat vector that one optimizer call updates; the host's choice on a CPU.
CHUNK = 1 << 18


def load(path: Path | bytes, threads: int = 1) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return ort.InferenceSession(path if isinstance(path, bytes) else str(path), options, providers=["CPUExecutionProvider"])


def run(session: ort.InferenceSession, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All outputs by name; entries of feed that the graph does not have are left out."""
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {i.name: np.asarray(feed[i.name]) for i in session.get_inputs()}), strict=True))


def batch_feed(inputs: list[Input], tensors: Iterable[torch.Tensor], seed: int) -> dict[str, np.ndarray]:
    return {**{i.name: t.numpy() for i, t in zip(inputs, tensors, strict=True)}, "seed": np.array(seed, np.int64)}


class Trainer:
    """Parameters, gradients and the optimizer's state of an Export in flat vectors; the first two have views by name."""

    def __init__(self, export: Export, graphs: Path, optimizer_graphs: Path, spec: dict):
        values = {name: p.detach().numpy() for name, p in export.module.named_parameters()}
        self.inputs, self.spec = export.inputs, spec
        self.order = arena(export.module)
        sizes = [int(np.prod(p["shape"])) for p in self.order]
        self.decayed = sum(n for n, p in zip(sizes, self.order, strict=True) if p["decay"])
        self.vectors = {name: np.zeros(sum(sizes), np.float32) for name in ("param", *updates.STATE[spec["name"]])}
        self.grad = np.zeros(sum(sizes), np.float32)
        ends = np.cumsum(sizes)
        self.parameters, self.gradients = (
            {p["name"]: vector[end - n:end].reshape(p["shape"]) for p, n, end in zip(self.order, sizes, ends, strict=True)}
            for vector in (self.vectors["param"], self.grad)
        )
        for name, view in self.parameters.items():
            view[...] = values[name]
        self.train = load(graphs / TRAIN)
        self.norm = load(optimizer_graphs / "norm.onnx")
        self.update = load(optimizer_graphs / f"{spec['name']}.onnx")
        self.updates = 0

    def backward(self, tensors: list, seed: int = -1) -> dict[str, np.ndarray]:
        out = run(self.train, {**self.parameters, **batch_feed(self.inputs, tensors, seed)})
        for name, view in self.gradients.items():
            view[...] = out["grad." + name]
        return out

    def step(self, tensors: list) -> tuple[float, float]:
        """Loss and gradient norm of one step."""
        out = self.backward(tensors)
        norm, scale, finite = run(self.norm, {"grads": self.grad, "others": np.float32(0), "loss": out["loss"], "loss_weight": out["loss_weight"], "summed": False}).values()
        self.updates += int(finite)
        scalars = {name: np.float64(x) for name, x in optimizer.scalars(self.spec).items()}
        scalars |= {"step": np.int64(self.updates), "grad_scale": scale, "grad_norm": norm, "finite": finite}
        for start, stop, decay in ((0, self.decayed, self.spec["weight_decay"]), (self.decayed, len(self.grad), 0.0)):
            for at in range(start, stop, CHUNK):
                part = slice(at, min(at + CHUNK, stop))
                vectors = {name: x[part] for name, x in self.vectors.items()}
                in_place(self.update, {**scalars, "weight_decay": np.float64(decay), "grad": self.grad[part]}, vectors)
        return float(out["loss"]), float(norm)


def in_place(session: ort.InferenceSession, feed: dict[str, np.ndarray], vectors: dict[str, np.ndarray]) -> None:
    """Runs with the output NAME_out bound onto the memory of the input NAME, for each of vectors."""
    run_into(session, {**feed, **vectors}, {name + "_out": x for name, x in vectors.items()})


def run_into(session: ort.InferenceSession, feed: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> None:
    """Runs on feed's own memory, into that of outputs. Entries of feed that the graph does not have are left out."""
    binding = session.io_binding()
    known = {i.name for i in session.get_inputs()}
    # ONNX Runtime does not keep arrays alive: kept holds them until the run is over. asarray keeps what is an array already.
    kept = {name: np.asarray(x, order="C") for name, x in feed.items() if name in known}
    for name, x in kept.items():
        binding.bind_input(name, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
    for name, x in outputs.items():
        binding.bind_output(name, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
    session.run_with_iobinding(binding)
