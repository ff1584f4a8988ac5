"""Golden numbers: what PyTorch eager makes of fixed batches. A test of the host repeats them through ONNX Runtime."""

from pathlib import Path

import torch
from safetensors.numpy import save as safetensors

from ..bundle import dump, weights
from ..module import Export, Step
from . import reference
from .counter import ROWS, Batch, concatenate

# The embedded bundle's run is the longest.
STEPS = {"myxtts-nano": 100, "myxtts-multispeaker": 50, "myxtts-pico": 50}
# Every fifth batch has an empty row.
EMPTY_EVERY = 5
# Batches of the accumulation golden, apart from those of the steps.
ACCUMULATION = (100, 101)
DROPOUT_OFF = -1
OPTIMIZERS = {
    "adamw": {"name": "adamw", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0},
    "sgd": {"name": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 0.01, "grad_clip": 0.5},
    "lion": {"name": "lion", "lr": 2e-4, "betas": [0.9, 0.99], "weight_decay": 0.1, "grad_clip": 1.0},
    "muon": {"name": "muon", "lr": 0.001, "momentum": 0.95, "betas": [0.9, 0.999], "eps": 1e-8, "adamw": ["*embedding*"],
             "weight_decay": 0.01, "grad_clip": 1.0},
    "adafactor": {"name": "adafactor", "lr": 0.01, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 1e-3, "d": 1.0,
                  "weight_decay": 0.01, "grad_clip": 1.0},
}
# The optimizers of which the smallest bundle has goldens besides its own. Groups name parameters as the host resolves patterns.
OPTIMIZERS["groups"] = {**OPTIMIZERS["adamw"], "groups": [
    {"match": ["text_encoder.embedding.weight", "decoder.norm.bias"], "lr_factor": 0.1},
    {"match": ["mel_head.weight", "mel_head.bias"], "lr_factor": 3.0, "weight_decay": 0.2},
    {"match": ["stop_head.weight"], "weight_decay": 0.0},
]}
OTHERS = ("lion", "muon", "adafactor", "groups")
# The first two tokens are padding and unknown.
SPECIAL_TOKENS = 2
FLOAT_SCALE = 2
# A shape that is no bucket's.
ODD = {"T_text": 11, "T_mel": 29, "T_ref_mel": 20}


def recipes(export: Export) -> list[dict]:
    """How a batch fills the inputs, in order."""
    of = {i.lengths: i.shape[1] for i in export.inputs if i.lengths}
    out = []
    for i in export.inputs:
        name = i.name
        if name in of:
            fill = {"fill": "lengths", "of": of[name]}
        elif i.dtype == "f32":
            fill = {"fill": "floats", "scale": FLOAT_SCALE}
        else:
            # Speakers and languages go beyond both ends of the table.
            low, count = (SPECIAL_TOKENS, i.below - SPECIAL_TOKENS) if name == "text_sequences" else (-1, i.below + 2)
            fill = {"fill": "integers", "low": low, "count": count}
        out.append({"name": name, "shape": list(i.shape), **fill})
    return out


def shapes(export: Export) -> list[dict]:
    """Two buckets and a shape that is none: values of the symbols that inputs have."""
    symbols = {d for i in export.inputs for d in i.shape if isinstance(d, str)}
    return [{s: n for s, n in sizes.items() if s in symbols} for sizes in (*export.buckets[:2], ODD)]


def schedule(export: Export) -> list[Batch]:
    """The batches of the training golden, in order."""
    sizes = shapes(export)
    return [
        Batch(i, sizes[i % len(sizes)], i // EMPTY_EVERY % ROWS if i % EMPTY_EVERY == EMPTY_EVERY - 1 else None)
        for i in range(STEPS[export.name])
    ]


def micro_batches(export: Export) -> list[Batch]:
    """The two micro-batches of the accumulation golden; an empty row makes their weights more unequal."""
    return [Batch(i, shapes(export)[0], row) for i, row in zip(ACCUMULATION, (None, 2), strict=True)]


def write(export: Export, folder: Path, name: str, kind: str = "") -> None:
    """Writes name.json with the training golden and name.final.safetensors with the weights after it. kind is an optimizer's name."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = OPTIMIZERS[kind or export.optimizer["name"]]
    module = Step(export)
    optimizer = reference.optimizer(module, spec)
    steps = []
    for batch in schedule(export):
        outputs, norm = reference.step(module, optimizer, batch.tensors(recipes(export)), torch.tensor(DROPOUT_OFF), spec["grad_clip"])
        steps.append({**_record(batch), "loss": outputs["loss"], "loss_weight": outputs["loss_weight"], "grad_norm": norm})
    (folder / f"{name}.final.safetensors").write_bytes(weights(module))
    document = {**_constants(export), "optimizer": spec, "steps": steps}
    (folder / f"{name}.json").write_text(dump(document) + "\n", encoding="utf-8")


def write_accumulation(export: Export, folder: Path, name: str) -> None:
    """Writes name.accumulation.json and .safetensors: what two micro-batches give as one step, without an optimizer's."""
    module = Step(export)
    batches = micro_batches(export)
    inputs = [b.tensors(recipes(export)) for b in batches]
    loss, weight = {"exact": _of_concatenation, "mean": _mean}[export.accumulation](module, inputs)
    loss.backward()
    gradients = {"grad." + key: p.grad.numpy() for key, p in module.named_parameters()}
    (folder / f"{name}.accumulation.safetensors").write_bytes(safetensors(gradients))
    document = {**_constants(export), "micro_batches": [_record(b) for b in batches], "loss": loss.item(), "loss_weight": weight.item()}
    (folder / f"{name}.accumulation.json").write_text(dump(document) + "\n", encoding="utf-8")


def _of_concatenation(module: Step, batches: list[list[torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and weight of all rows as one batch."""
    outputs = module(*concatenate(batches), torch.tensor(DROPOUT_OFF))
    return outputs["loss"], outputs["loss_weight"]


def _mean(module: Step, batches: list[list[torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean of the batches' losses, and the sum of their weights, which are 1."""
    outputs = [module(*b, torch.tensor(DROPOUT_OFF)) for b in batches]
    return sum(o["loss"] for o in outputs) / len(outputs), sum(o["loss_weight"] for o in outputs)


def _constants(export: Export) -> dict:
    return {"bundle": export.name, "rows": ROWS, "seed": DROPOUT_OFF, "inputs": recipes(export)}


def _record(batch: Batch) -> dict:
    return {"batch": batch.index, "sizes": batch.sizes, "empty_row": batch.empty_row}
