"""The files of a graph bundle (docs/bundle.md)."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from safetensors.numpy import save as safetensors
from safetensors.numpy import save_file
from torch import nn

from . import bf16, cost, inferencegraph, joint, progress, state
from .ahead import Ahead
from .cache import Cache
from .clean import Gains
from .evalgraph import EVAL
from .inputs import SEED, Input, zeros
from .module import METRIC, Export, Player, Step
from .progress import phase
from .refusal import Refusal
from .tensors import aliases
from .watch import DryRun

TRAIN, BF16, PARAMS, INDEX = "training_model.onnx", "training_model.bf16.onnx", "params.safetensors", "bundle.json"
PROBE = "probe_model.onnx"
TOKENIZER = "tokenizer.json"
COST_ROWS = 8
# What bundle.json says of the exporter (docs/bundle.md). It grows when graphs of before may have a fault, which the host then names.
EXPORTER = 2


def training_file(player: str, precision: str = "f32") -> str:
    """The file of a player's training graph; the one player of an export without players has no name."""
    return ".".join(["training_model", *filter(None, [player]), *([] if precision == "f32" else [precision]), "onnx"])


def training(export: Export, steps: dict[str, Step], dry: dict[str, DryRun], precisions: tuple[str, ...], folder: Path, cache: Cache,
             ahead: Ahead) -> tuple[onnx.ModelProto, dict[str, Gains]]:
    """Writes the training graphs into a folder. Returns the last player's in f32, and what clean-up took away from each.

    dry has the dry runs of steps, and ahead the training graph, if it is traced beside them.
    """
    held, sizes, gains = next(iter(steps.values())).state, next(iter(dry.values())).sizes, {}
    if held and not export.eval_graph:
        raise Refusal(f"eval_graph is False, but forward changes {held[0].name} in training", "state needs an eval graph: leave eval_graph out")
    inputs = [*export.inputs, SEED, *held]
    for player, step in steps.items():
        of = f" of {player}" if player else ""
        with step.alone():
            for precision in precisions:
                with phase(f"training graph{of}" + ("" if precision == "f32" else f" in {precision}"), export.module):
                    options = {"ahead": ahead.made} if precision == "f32" else {}
                    file = training_file(player, precision)
                    model, gains[file] = joint.export(step, inputs, zeros(inputs, sizes), step.returned(), folder / file, dry=dry[player],
                                                      compute=precision, buckets=export.sizes(), cache=cache, **options)
                # Not needed, where the cache has the graph.
                ahead.stop()
                if precision == "f32":
                    last = model
    if export.players and "bf16" in precisions:
        _unite([folder / training_file(player, "bf16") for player in steps])
    return last, gains


def weights_file(step: Step, folder: Path) -> None:
    with phase("weights"):
        progress.at(f"{len(list(step.parameters()))} tensors")
        save_file(_arrays(step, step.state), folder / PARAMS)


def write(export: Export, steps: dict[str, Step], precisions: tuple[str, ...], folder: Path, probes: Sequence[dict] = ()) -> None:
    """Writes all other files than weights and graphs of the loss and of probes, and the index of all. probes are the entries of these."""
    step = steps[export.turns()[-1]]
    # safetensors makes a file that only its owner reads.
    (folder / PARAMS).chmod((folder / training_file(next(iter(steps)))).stat().st_mode & 0o777)
    if export.tokenizer is not None:
        (folder / TOKENIZER).write_text(export.tokenizer, encoding="utf-8")
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for i in export.inputs:
        if i.vocabulary:
            (folder / i.vocabulary_file).write_text(json.dumps(i.vocabulary, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    graphs, state = [], {spec.name for spec in step.state}
    shared = {**dict(export.module.named_parameters()), **{name: x for name, x in export.module.named_buffers() if name in state}}
    for entry in export.inference:
        with phase(f"inference graph {entry.name}", entry.module):
            graphs.append(inferencegraph.write(entry, shared, folder))
    with phase(INDEX):
        (folder / INDEX).write_text(dump(_document(export, steps, precisions, graphs, folder, probes)) + "\n", encoding="utf-8")


def _unite(files: list[Path]) -> None:
    """Has the bf16 graphs of several players take each parameter in one type."""
    models = [onnx.load(file) for file in files]
    bf16.unite(models)
    for file, model in zip(files, models, strict=True):
        onnx.save(model, file)


def _player(name: str, player: Player) -> dict:
    return {"name": name, "optimizer": player.optimizer, **({} if player.schedule is None else {"schedule": player.schedule})}


def _document(export: Export, steps: dict[str, Step], precisions: tuple[str, ...], inference: list[dict], folder: Path,
              probes: Sequence[dict]) -> dict:
    step = steps[export.turns()[-1]]
    owned = lambda player: {"player": player} if player else {}
    graphs = [{"file": training_file(player, precision), "kind": "train", "precision": precision, **owned(player)} for player in steps for precision in precisions]
    outputs = {name: owned(player) if name.startswith(METRIC) else {} for player, s in steps.items() for name in s.outputs}
    if export.eval_graph:
        graphs.append({"file": EVAL, "kind": "eval", "precision": "f32"})
    if probes:
        graphs.append({"file": PROBE, "kind": "probe", "precision": "f32"})
    progress.at("nodes of the graphs")
    graphs = [{**graph, "nodes": cost.nodes(folder / graph["file"])} for graph in graphs]
    # The graph has decided which parameters it takes in bf16.
    compute = {name: {"compute": "bf16"} for g in graphs if g["precision"] == "bf16" for name in _inputs(folder / g["file"], onnx.TensorProto.BFLOAT16)}
    vocabularies = [i.vocabulary_file for i in export.inputs if i.vocabulary]
    own = [g[key] for g in inference for key in ("file", "weights") if key in g]
    files = [*(g["file"] for g in graphs), PARAMS, *([] if export.tokenizer is None else [TOKENIZER]), *vocabularies, *own, *export.files]
    scalars = [i.entry() for i in export.inputs if i.scalar]
    return {
        "version": 1,
        **({"exporter": EXPORTER} if export.numbered else {}),
        "name": export.name,
        "description": export.description,
        "license": export.license,
        "inputs": [i.entry() for i in export.inputs if not i.scalar],
        **({"scalars": scalars} if scalars else {}),
        "outputs": [{"name": name, "dtype": "f32", "shape": [], **own} for name, own in outputs.items()],
        **({"probes": list(probes)} if probes else {}),
        "parameters": [{**p, **compute.get(p["name"], {}), **owned(export.owner(p["name"]))} for p in arena(step)],
        **({} if not step.state else {"state": [{"name": spec.name, "shape": list(spec.shape), **owned(export.owner(spec.name, "buffer"))} for spec in step.state]}),
        **({} if not export.adapters else {"adapters": export.adapters}),
        "buckets": export.buckets,
        **({} if export.dynamic is None else {"dynamic": export.dynamic}),
        **({"strides": export.strides} if export.strides else {}),
        "features": export.features,
        **({} if export.tokenizer is None else {"tokenizer": {"file": TOKENIZER, **({} if export.tokenizer_prefix is None else {"prefix": export.tokenizer_prefix})}}),
        "pipeline": export.pipeline,
        **({"players": [_player(name, player) for name, player in export.players.items()]} if export.players else {"optimizer": export.optimizer}),
        "schedule": export.schedule,
        "graphs": graphs,
        **({"inference": inference} if inference else {}),
        **({"synthesis": export.synthesis} if inference and export.synthesis else {}),
        "accumulation": export.accumulation,
        "baselines": export.baselines,
        "cost": _cost(export, steps, folder),
        "files": {name: _sha256(folder / name, n, len(files)) for n, name in enumerate(files, start=1)},
    }


def _cost(export: Export, steps: dict[str, Step], folder: Path) -> list[dict]:
    return [{"bucket": i, "batch_size": COST_ROWS, "flops": c.flops, "bytes": c.bytes} for i, c in enumerate(costs(export, steps, folder))]


def costs(export: Export, steps: dict[str, Step], folder: Path) -> Iterator[cost.Cost]:
    """Of a step in each bucket, of all players together."""
    step = steps[export.turns()[-1]]
    feed = _arrays(step, step.state)
    inputs = [*export.inputs, SEED]
    for n, bucket in enumerate(export.buckets, start=1):
        progress.at("cost of a step in bucket", n, len(export.buckets))
        feed |= {spec.name: x.numpy() for spec, x in zip(inputs, zeros(inputs, {**bucket, "B": COST_ROWS}), strict=True)}
        yield cost.Cost(*map(sum, zip(*(cost.count(folder / training_file(player), feed) for player in steps), strict=True)))


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


def _sha256(path: Path, n: int, of: int) -> str:
    progress.at(f"hash of {path.name}", n, of)
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
