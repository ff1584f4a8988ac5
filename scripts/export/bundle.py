"""The files of a graph bundle (docs/bundle.md)."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
from safetensors.numpy import save as safetensors
from safetensors.numpy import save_file
from torch import nn

from . import cost, joint, state
from .clean import Gains
from .inputs import SEED, Input, zeros
from .module import Export, Step
from .progress import phase
from .refusal import Refusal
from .tensors import aliases
from .watch import DryRun

TRAIN, BF16, EVAL, PARAMS, INDEX = "training_model.onnx", "training_model.bf16.onnx", "eval_model.onnx", "params.safetensors", "bundle.json"
TOKENIZER = "tokenizer.json"
COST_ROWS = 8


def write(export: Export, step: Step, dry: DryRun, precisions: tuple[str, ...], folder: Path) -> dict[str, Gains]:
    """Writes the files into a folder and returns what clean-up took away from each graph that was traced. dry is the dry run of step."""
    if step.state and not export.eval_graph:
        raise Refusal(f"eval_graph is False, but forward changes {step.state[0].name} in training", "state needs an eval graph: leave eval_graph out")
    gains = {}

    def graph(file: str, inputs: list, outputs: tuple[str, ...], **options) -> onnx.ModelProto:
        model, gains[file] = joint.export(step, inputs, zeros(inputs, dry.sizes), outputs, folder / file, buckets=export.sizes(), **{"dry": dry, **options})
        return model

    with phase("training graph"):
        training = graph(TRAIN, [*export.inputs, SEED, *step.state], step.returned())
    if "bf16" in precisions:
        with phase("training graph in bf16"):
            graph(BF16, [*export.inputs, SEED, *step.state], step.returned(), compute="bf16")
    if export.eval_graph:
        with phase("eval graph"):
            if step.state:
                with step.evaluating():
                    graph(EVAL, [*export.inputs, *step.state], step.outputs, backward=False, dry=None)
            elif joint.uses(training, SEED.name):
                graph(EVAL, export.inputs, step.outputs, backward=False)
            else:
                joint.part(training, step.outputs, SEED.name, folder / EVAL)
    with phase("weights"):
        save_file(_arrays(step, step.state), folder / PARAMS)
        # safetensors makes a file that only its owner reads.
        (folder / PARAMS).chmod((folder / TRAIN).stat().st_mode & 0o777)
    if export.tokenizer is not None:
        (folder / TOKENIZER).write_text(export.tokenizer, encoding="utf-8")
    for i in export.inputs:
        if i.vocabulary:
            (folder / i.vocabulary_file).write_text(json.dumps(i.vocabulary, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    with phase(INDEX):
        (folder / INDEX).write_text(dump(_document(export, step, precisions, folder)) + "\n", encoding="utf-8")
    return gains


def _document(export: Export, step: Step, precisions: tuple[str, ...], folder: Path) -> dict:
    graphs = [{"file": TRAIN, "kind": "train", "precision": "f32"}]
    if "bf16" in precisions:
        graphs.append({"file": BF16, "kind": "train", "precision": "bf16"})
    if export.eval_graph:
        graphs.append({"file": EVAL, "kind": "eval", "precision": "f32"})
    graphs = [{**graph, "nodes": cost.nodes(folder / graph["file"])} for graph in graphs]
    # The graph has decided which parameters it takes in bf16.
    compute = {name: {"compute": "bf16"} for name in _inputs(folder / BF16, onnx.TensorProto.BFLOAT16)} if "bf16" in precisions else {}
    vocabularies = [i.vocabulary_file for i in export.inputs if i.vocabulary]
    files = [*(g["file"] for g in graphs), PARAMS, *([] if export.tokenizer is None else [TOKENIZER]), *vocabularies]
    scalars = [i.entry() for i in export.inputs if i.scalar]
    return {
        "version": 1,
        "name": export.name,
        "description": export.description,
        "license": export.license,
        "inputs": [i.entry() for i in export.inputs if not i.scalar],
        **({"scalars": scalars} if scalars else {}),
        "outputs": [{"name": name, "dtype": "f32", "shape": []} for name in step.outputs],
        "parameters": [{**p, **compute.get(p["name"], {})} for p in arena(step)],
        **({} if not step.state else {"state": [{"name": spec.name, "shape": list(spec.shape)} for spec in step.state]}),
        **({} if not export.adapters else {"adapters": export.adapters}),
        "buckets": export.buckets,
        **({} if export.dynamic is None else {"dynamic": export.dynamic}),
        "features": export.features,
        **({} if export.tokenizer is None else {"tokenizer": {"file": TOKENIZER}}),
        "pipeline": export.pipeline,
        "optimizer": export.optimizer,
        "schedule": export.schedule,
        "graphs": graphs,
        "accumulation": export.accumulation,
        "baselines": export.baselines,
        "cost": _cost(export, step, folder / TRAIN),
        "files": {name: _sha256(folder / name) for name in files},
    }


def _cost(export: Export, step: Step, graph: Path) -> list[dict]:
    return [{"bucket": i, "batch_size": COST_ROWS, "flops": c.flops, "bytes": c.bytes} for i, c in enumerate(costs(export, step, graph))]


def costs(export: Export, step: Step, graph: Path) -> Iterator[cost.Cost]:
    """Of a step in each bucket."""
    feed = _arrays(step, step.state)
    inputs = [*export.inputs, SEED]
    for bucket in export.buckets:
        feed |= {spec.name: x.numpy() for spec, x in zip(inputs, zeros(inputs, {**bucket, "B": COST_ROWS}), strict=True)}
        yield cost.count(graph, feed)


def arena(module: nn.Module) -> list[dict]:
    """The parameters in the order of the host's arena: what the optimizer decays (matrices), then the others (biases, norms), then what is frozen."""
    entries, further = [], aliases(module)
    for name, p in module.named_parameters():
        frozen = {} if p.requires_grad else {"frozen": True}
        tied = {"aliases": further[name]} if name in further else {}
        entries.append({"name": name, "shape": list(p.shape), "decay": p.dim() >= 2 and p.requires_grad, **frozen, **tied})
    return sorted(entries, key=lambda p: (p.get("frozen", False), not p["decay"]))


def weights(module: nn.Module) -> bytes:
    """A module's parameters as safetensors, f32, in the file's canonical order."""
    return safetensors(_arrays(module))


def _arrays(module: nn.Module, held: Iterable[Input] = ()) -> dict[str, np.ndarray]:
    """The parameters, without a copy of those that are f32 already, and the state."""
    parameters = {name: np.asarray(p.detach().numpy(), dtype=np.float32, order="C") for name, p in module.named_parameters()}
    return parameters | {name: x.numpy() for name, x in state.values(module, held).items()}


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
