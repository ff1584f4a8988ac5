"""Golden numbers: what PyTorch eager makes of fixed batches. A test of the host repeats them through ONNX Runtime."""

from pathlib import Path

import torch
from safetensors.numpy import save as safetensors
from torch import nn

from ..bundle import Bundle, dump, weights
from ..tokenizer import VOCABULARY
from . import reference
from .counter import ROWS, Batch, concatenate

STEPS = 50
# Every fifth batch has an empty row.
EMPTY_EVERY = 5
# Batches of the accumulation golden, apart from those of the steps.
ACCUMULATION = (100, 101)
DROPOUT_OFF = -1
OPTIMIZERS = {
    "adamw": {"name": "adamw", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0},
    "sgd": {"name": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 0.01, "grad_clip": 0.5},
}
# The lowest value and the number of values of each integer input. The first two tokens are padding and unknown. Speakers and
# languages go beyond both ends of what a table holds.
INTEGERS = {"text_sequences": (2, len(VOCABULARY) - 2), "speaker_ids": (-1, 10), "language_ids": (-1, 6)}
FLOAT_SCALE = 2
# A shape that is no bucket's.
ODD = {"T_text": 11, "T_mel": 29, "T_ref_mel": 20}


def recipes(bundle: Bundle) -> list[dict]:
    """How a batch fills the bundle's inputs, in order."""
    of = {i["lengths"]: i["shape"][1] for i in bundle.inputs if "lengths" in i}
    out = []
    for spec in bundle.inputs:
        name = spec["name"]
        if name in of:
            fill = {"fill": "lengths", "of": of[name]}
        elif spec["dtype"] == "f32":
            fill = {"fill": "floats", "scale": FLOAT_SCALE}
        else:
            low, count = INTEGERS[name]
            fill = {"fill": "integers", "low": low, "count": count}
        out.append({"name": name, "shape": spec["shape"], **fill})
    return out


def shapes(bundle: Bundle) -> list[dict]:
    """Two buckets and a shape that is none: values of the symbols that inputs have."""
    symbols = {d for i in bundle.inputs for d in i["shape"] if isinstance(d, str)}
    return [{s: n for s, n in sizes.items() if s in symbols} for sizes in (*bundle.buckets[:2], ODD)]


def schedule(bundle: Bundle) -> list[Batch]:
    """The batches of the training golden, in order."""
    sizes = shapes(bundle)
    return [
        Batch(i, sizes[i % len(sizes)], i // EMPTY_EVERY % ROWS if i % EMPTY_EVERY == EMPTY_EVERY - 1 else None)
        for i in range(STEPS)
    ]


def micro_batches(bundle: Bundle) -> list[Batch]:
    """The two micro-batches of the accumulation golden; an empty row makes their weights more unequal."""
    return [Batch(i, shapes(bundle)[0], row) for i, row in zip(ACCUMULATION, (None, 2), strict=True)]


def write(bundle: Bundle, folder: Path, name: str) -> None:
    """Writes name.json with the training golden and name.final.safetensors with the weights after it."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = OPTIMIZERS[bundle.optimizer["name"]]
    module = bundle.make()
    optimizer = reference.optimizer(module, spec)
    steps = []
    for batch in schedule(bundle):
        outputs, norm = reference.step(module, optimizer, batch.tensors(recipes(bundle)), torch.tensor(DROPOUT_OFF), spec["grad_clip"])
        steps.append({**_record(batch), "loss": outputs[0], "loss_weight": outputs[1], "grad_norm": norm})
    (folder / f"{name}.final.safetensors").write_bytes(weights(module))
    document = {**_constants(bundle), "optimizer": spec, "steps": steps}
    (folder / f"{name}.json").write_text(dump(document) + "\n", encoding="utf-8")


def write_accumulation(bundle: Bundle, folder: Path, name: str) -> None:
    """Writes name.accumulation.json and .safetensors: what two micro-batches give as one step, without an optimizer's."""
    module = bundle.make()
    batches = micro_batches(bundle)
    inputs = [b.tensors(recipes(bundle)) for b in batches]
    loss, weight = {"exact": _of_concatenation, "mean": _mean}[bundle.accumulation](module, inputs)
    loss.backward()
    gradients = {"grad." + key: p.grad.numpy() for key, p in module.named_parameters()}
    (folder / f"{name}.accumulation.safetensors").write_bytes(safetensors(gradients))
    document = {**_constants(bundle), "micro_batches": [_record(b) for b in batches], "loss": loss.item(), "loss_weight": weight.item()}
    (folder / f"{name}.accumulation.json").write_text(dump(document) + "\n", encoding="utf-8")


def _of_concatenation(module: nn.Module, batches: list[list[torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and weight of all rows as one batch."""
    return module(*concatenate(batches), torch.tensor(DROPOUT_OFF))[:2]


def _mean(module: nn.Module, batches: list[list[torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean of the batches' losses, and the sum of their weights, which are 1."""
    losses, counts = zip(*(module(*b, torch.tensor(DROPOUT_OFF))[:2] for b in batches), strict=True)
    return sum(losses) / len(losses), sum(counts)


def _constants(bundle: Bundle) -> dict:
    return {"bundle": bundle.name, "rows": ROWS, "seed": DROPOUT_OFF, "inputs": recipes(bundle)}


def _record(batch: Batch) -> dict:
    return {"batch": batch.index, "sizes": batch.sizes, "empty_row": batch.empty_row}
