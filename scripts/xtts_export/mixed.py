"""The bf16 graph of a written bundle against PyTorch: under the same policy, which it must follow, and in f32, which it approximates."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from torch import Tensor

from . import bf16, lowering, precision, progress, reference, state, verify
from .inputs import batch, lengths
from .module import Export, Step
from .refusal import Refusal

# Parts of the loss, and of the norm of all gradients together. Right graphs are within 1e-3 and 1e-2 of the same policy in PyTorch
# (sums in another order), and within 1e-2 and a few percent of f32; docs/export.md has what was measured. A loss with an edge, such as
# L1, turns parts of its gradient round where predictions come near the target: 0.15 was measured on a batch of a few frames. Two right
# computations in bf16 may then be twice as far from each other as each is from f32, so the first limit of gradients grows with PyTorch's own
# rounding. Deep networks of norms behind ReLU with that loss are 0.3 from f32, and so are they by torch.autocast, as people train them: the second limit
# of gradients grows with its distance, of which 1.3 times was measured, until what is wrong is as long as half of what is right.
SAME = 1e-2, 5e-2
F32 = 5e-2, 2.5e-1
_AS_AUTOCAST, _MOST = 1.5, 0.5


_UNLIKE = ("leave bf16 out of --precision: in f32 the graph is PyTorch's. Two computations of this module in bf16 differ so much that none can be checked by the other")
_UNFIT = ("leave bf16 out of --precision: what this module computes needs f32. If it takes a sine or cosine of large numbers, such as a moment times 1000, compute "
          "these numbers from an input: inputs are f32, and the result of a matrix product has 8 bits")

# Of the trained parameters: the graph's gradients, PyTorch's, and what the emulation casts to bf16 and back.
COPIES = 4


@dataclass(frozen=True)
class Distance:
    """How far a graph is from PyTorch: the loss, all gradients as one vector, and the tensor of the state that is farthest, relative to PyTorch's."""

    loss: float
    gradients: float
    state: float = 0.0
    farthest: str = ""
    """The parameter whose gradient has the largest part of the distance of gradients."""

    def __str__(self) -> str:
        return f"{self.loss:.1e} in the loss and {self.gradients:.1e} in the gradients" + (f", {self.state:.1e} in the state" if self.state else "")


def check(export: Export, step: Step, sizes: dict[str, int], path: Path) -> tuple[Distance, Distance]:
    """The distances from PyTorch in bf16 and in f32 on a batch with an empty row. Raises Refusal when they, or empty rows, break a promise."""
    progress.at("the graph as a CPU runs it")
    session = load(path)
    random = np.random.default_rng(1)
    empty = 1
    tensors = batch(export.inputs, sizes, random, empty)
    got = run(session, step, tensors)
    same, f32 = (distance(step, tensors, got, compute) for compute in ("bf16", "f32"))
    limits = SAME if same.gradients <= SAME[1] else (SAME[0], max(SAME[1], min(2 * rounding(step, tensors), F32[1])))
    _refuse(path.name, same, limits, "bf16", _UNLIKE)
    limits = F32 if f32.gradients <= F32[1] else (F32[0], max(F32[1], min(_AS_AUTOCAST * of_autocast(step, tensors), _MOST)))
    _refuse(path.name, f32, limits, "f32", _UNFIT)
    soiled = run(session, step, verify.soiled(export, tensors, empty))
    if bad := [name for name, x in got.items() if x.tobytes() != soiled[name].tobytes()]:
        raise Refusal(f"{path.name}: {bad[0]} depends on the content of an empty row", "forward gets zeros there, so this is an error of the exporter: report it with the module")
    nothing = run(session, step, {name: torch.zeros_like(x) if name in lengths(export.inputs) else x for name, x in tensors.items()})
    if bad := [name for name, x in nothing.items() if not np.isfinite(x).all()]:
        raise Refusal(f"{path.name}: with every row empty, {bad[0]} is not finite", "divide by count.clamp(min=1)")
    return same, f32


def load(path: Path) -> ort.InferenceSession:
    """The graph as the CPU can run it (bf16.emulated), in f32 outside."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4
    return ort.InferenceSession(bf16.emulated(onnx.load(path)).SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: ort.InferenceSession, step: Step, tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """All outputs by name, with dropout off."""
    progress.at("the graph in ONNX Runtime")
    feed = {name: p.detach() for name, p in step.named_parameters()} | state.values(step, step.state) | tensors | {"seed": torch.tensor(-1)}
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {i.name: feed[i.name].numpy() for i in session.get_inputs()}), strict=True))


def distance(step: Step, tensors: dict[str, Tensor], got: dict[str, np.ndarray], compute: str) -> Distance:
    """The distance from PyTorch with matrix products in the type compute."""
    outputs, gradients = _computed(step, tensors, compute)
    loss = outputs[0].item()
    left = reference.distances(reference.state_of(got), reference.state_of(dict(zip(step.returned(), outputs, strict=True))))
    ours = {name: got["grad." + name] for name in gradients}
    farthest = max(gradients, key=lambda name: np.linalg.norm(ours[name] - gradients[name]), default="")
    return Distance(abs(float(got["loss"]) - loss) / max(abs(loss), 1e-6), _apart(ours, gradients), float(np.max([0.0, *left.values()])), farthest)


def rounding(step: Step, tensors: dict[str, Tensor]) -> float:
    """How far right gradients in bf16 are from others: those of the policy and of torch.autocast from f32, and those of the policy from what they are when
    every number of the batch differs in the last place of f32, so that some results are rounded to another number of bf16."""
    want, got = (_computed(step, tensors, compute)[1] for compute in ("f32", "bf16"))
    random = torch.Generator().manual_seed(0)
    near = {name: reference.near(x, random) for name, x in tensors.items()}
    return max(_apart(got, want), of_autocast(step, tensors), _apart(_computed(step, near, "bf16")[1], got))


def of_autocast(step: Step, tensors: dict[str, Tensor]) -> float:
    """How far the gradients of torch.autocast are from those in f32."""
    want = _computed(step, tensors, "f32")[1]
    with torch.autocast("cpu", precision.LOW):
        return _apart(_computed(step, tensors, "f32")[1], want)


def _computed(step: Step, tensors: dict[str, Tensor], compute: str) -> tuple[tuple[Tensor, ...], dict[str, np.ndarray]]:
    """What the step returns, and the gradients of what it trains, with matrix products in the type compute."""
    progress.at(f"PyTorch in {compute}")
    trained = {name: p for name, p in step.named_parameters() if p.requires_grad}
    with lowering.functions(), precision.applied(step, compute):
        outputs = step(*tensors.values(), torch.tensor(-1))
    return outputs, {name: x.numpy() for name, x in zip(trained, torch.autograd.grad(outputs[0], trained.values()), strict=True)}


def _apart(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> float:
    """The distance of two sets of gradients, each as one vector, relative to the second."""
    error, norm = np.linalg.norm([(np.linalg.norm(got[name] - x), np.linalg.norm(x)) for name, x in want.items()], axis=0)
    return float(error / max(norm, np.finfo(np.float32).tiny))


def _refuse(file: str, found: Distance, limits: tuple[float, float], compute: str, hint: str) -> None:
    if not (found.loss <= limits[0] and found.gradients <= limits[1] and found.state <= limits[1]):
        most = f", most of them in that of {found.farthest}" if found.farthest and not found.gradients <= limits[1] else ""
        raise Refusal(f"{file} differs from PyTorch in {compute} by {found}{most}, where {limits[0]:.0e} and {limits[1]:.1e} are allowed", hint)
