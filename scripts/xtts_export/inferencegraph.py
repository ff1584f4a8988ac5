"""Writes an inference graph and its weights (inference.py), compared with PyTorch."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.func import functional_call

from . import clean, progress, refusal, watch
from .inference import Inference
from .inputs import DTYPES, Input
from .inputs import batch as random_batch
from .joint import PARTS, plain
from .refusal import Refusal

# The largest error of a float output, as a part of its norm, and the part of the integers that may differ: the nearest of two equally near ones.
TOLERANCE, MOST_UNEQUAL = 1e-4, 1e-3


class _Stateless(nn.Module):
    """A module whose tensors come after its inputs."""

    def __init__(self, module: nn.Module, count: int, names: list[str]):
        super().__init__()
        # A tuple hides the module, so that its tensors are not also this one's.
        self._of, self._count, self._names = (module,), count, names

    def forward(self, *tensors: Tensor):
        [module] = self._of
        made = functional_call(module, dict(zip(self._names, tensors[self._count:], strict=True)), tensors[:self._count])
        return made if isinstance(made, tuple) else (made,)


def write(entry: Inference, shared: dict[str, Tensor], folder: Path) -> dict:
    """Writes the graph and its weights, compared with PyTorch, and returns its entry of bundle.json. shared are the bundle's parameters and state. Raises Refusal."""
    listed = [i.name for i in (*entry.inputs, *entry.outputs)]
    if twice := sorted({name for name in listed if listed.count(name) > 1}):
        raise Refusal(f"the inference graph {entry.name} has two inputs or outputs {twice[0]}", "give each a name of its own; feeds says which output an input takes next")
    names = {id(x): name for name, x in shared.items()}
    # A batch norm counts its batches, which nothing reads.
    counts = lambda name: name.rpartition(".")[2] == "num_batches_tracked"
    tensors = {**dict(entry.module.named_parameters()), **{name: x for name, x in entry.module.named_buffers() if not counts(name)}}
    given = {name: names.get(id(x), name) for name, x in tensors.items()}
    own = {name: x for name, x in tensors.items() if id(x) not in names}
    if both := sorted(own.keys() & {*shared, *listed}):
        raise Refusal(f"{both[0]} is a tensor of the inference graph {entry.name}, and the name of another one", "give it a name of its own")
    with torch.no_grad(), _evaluated(entry.module):
        model = _trace(entry, tensors, given, own.keys())
        onnx.save(model, folder / entry.file)
        taken = {i.name for i in model.graph.input}
        if own:
            arrays = {name: np.array(x.detach().numpy(), order="C") for name, x in own.items()}
            save_file(arrays, folder / entry.weights_file)
            (folder / entry.weights_file).chmod((folder / entry.file).stat().st_mode & 0o777)
        _verify(entry, {given[name]: x.detach().numpy() for name, x in tensors.items() if given[name] in taken}, folder)
    return entry.entry(bool(own))


@contextmanager
def _evaluated(module: nn.Module) -> Iterator[None]:
    """In evaluation mode, and then as it was: parts of it are trained."""
    training = [part for part in module.modules() if part.training]
    try:
        module.eval()
        yield
    finally:
        for part in training:
            part.training = True


def _trace(entry: Inference, tensors: dict[str, Tensor], given: dict[str, str], own: Set[str]) -> onnx.ModelProto:
    """The graph, without the parameters of the bundle that it does not need. Of tensors of its own, it needs all."""
    example = _example(entry, entry.sizes)
    dims = {name: torch.export.Dim(name) for name in entry.sizes}
    shapes = [{axis: dims[d] for axis, d in enumerate(i.shape) if isinstance(d, str)} for i in entry.inputs] + [None] * len(tensors)
    wrapped = _Stateless(entry.module, len(entry.inputs), list(tensors)).eval()
    progress.at("traced")
    try:
        with watch.quiet(), progress.tracing():
            program = torch.onnx.export(
                wrapped, (*example.values(), *(x.detach() for x in tensors.values())), dynamo=True, dynamic_shapes=(tuple(shapes),), opset_version=20, verbose=False,
                input_names=[*(i.name for i in entry.inputs), *given.values()], output_names=[o.name for o in entry.outputs])
    except Exception as error:
        raise Refusal(f"the inference graph {entry.name} cannot be traced: {watch.summary(error)}", PARTS, refusal.within(error)) from error
    model = program.model_proto
    clean.clean(model)
    used = {name for node in model.graph.node for name in node.input}
    idle = [i for i in model.graph.input if i.name not in used and i.name in given.values()]
    if unused := [i.name for i in idle if i.name in own]:
        raise Refusal(f"{unused[0]} of the inference graph {entry.name} is not used", "leave out what the graph does not need")
    for i in idle:
        model.graph.input.remove(i)
    return plain(model)


def _example(entry: Inference, sizes: dict[str, int]) -> dict[str, Tensor]:
    return random_batch(entry.inputs, sizes, np.random.default_rng(4))


def _verify(entry: Inference, weights: dict[str, np.ndarray], folder: Path) -> None:
    """Compares the graph with PyTorch, for two sizes, and each row with the same one alone."""
    progress.at("compared with PyTorch")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(folder / entry.file), options, providers=["CPUExecutionProvider"])
    def run(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        made = session.run([o.name for o in entry.outputs], {**weights, **{name: x.numpy() for name, x in tensors.items()}})
        return {o.name: torch.from_numpy(x) for o, x in zip(entry.outputs, made, strict=True)}
    for grow in (lambda n: n, lambda n: 2 * n - 1):
        tensors = _example(entry, {name: grow(n) for name, n in entry.sizes.items()})
        want = _Stateless(entry.module, len(tensors), [])(*tensors.values())
        _compare(entry, run(tensors), dict(zip((o.name for o in entry.outputs), want, strict=True)), "PyTorch")
    if not any(i.lengths for i in entry.inputs):
        return
    together = run(tensors)
    for row in range(len(next(iter(tensors.values())))):
        alone = _row(entry.inputs, tensors, row)
        _compare(entry, _row(entry.outputs, {**alone, **run(alone)}, 0), _row(entry.outputs, {**tensors, **together}, row), "the row in a batch")


def _row(specs: list[Input], tensors: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """A row without its padding."""
    return {i.name: tensors[i.name][row:row + 1] if not i.lengths else tensors[i.name][row:row + 1, :int(tensors[i.lengths][row])] for i in specs}


def _compare(entry: Inference, got: dict[str, Tensor], want: dict[str, Tensor], other: str) -> None:
    counts = {i.lengths: None for i in (*entry.inputs, *entry.outputs) if i.lengths}
    for spec in entry.outputs:
        x, y = got[spec.name], want[spec.name]
        if x.dtype != DTYPES[spec.dtype] or x.shape != y.shape:
            raise Refusal(f"{spec.name} of the inference graph {entry.name} is {x.dtype}{list(x.shape)}, where {other} has {list(y.shape)}", "give outputs the type of their Input")
        if spec.lengths and spec.lengths in got:
            inside = torch.arange(x.shape[1])[None] < got[spec.lengths][:, None]
            x, y = x[inside], y[inside]
        if x.is_floating_point():
            error = float((x - y).double().norm() / max(float(y.double().norm()), 1e-12))
            wrong = not error <= TOLERANCE
        else:
            error = float((x != y).double().mean()) if x.numel() else 0.0
            wrong = error > (0.0 if spec.name in counts else MOST_UNEQUAL)
        if wrong:
            raise Refusal(f"{spec.name} of the inference graph {entry.name} differs from {other} by {error:.1e}", "what follows the length of a row must not count")
