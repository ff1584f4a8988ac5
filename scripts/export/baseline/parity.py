"""Golden numbers: what PyTorch eager makes of fixed batches. A test of the host repeats them through ONNX Runtime."""

from pathlib import Path

import torch
from safetensors.numpy import save as safetensors

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
OPTIMIZER = {"name": "adamw", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0}


def shapes(bundle: Bundle) -> list[dict]:
    """Two buckets and a shape that is none."""
    symbols = ("T_text", "T_mel", "T_ref_mel")
    return [{s: bucket[s] for s in symbols} for bucket in bundle.buckets[:2]] + [{"T_text": 11, "T_mel": 29, "T_ref_mel": 20}]


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
    module = bundle.make()
    adamw = reference.optimizer(module, OPTIMIZER)
    steps = []
    for batch in schedule(bundle):
        outputs, norm = reference.step(module, adamw, tensors(bundle, batch), torch.tensor(DROPOUT_OFF), OPTIMIZER["grad_clip"])
        steps.append({**_recipe(batch), "loss": outputs[0], "loss_weight": outputs[1], "grad_norm": norm})
    (folder / f"{name}.final.safetensors").write_bytes(weights(module))
    document = {**_constants(bundle), "optimizer": OPTIMIZER, "steps": steps}
    (folder / f"{name}.json").write_text(dump(document) + "\n", encoding="utf-8")


def write_accumulation(bundle: Bundle, folder: Path, name: str) -> None:
    """Writes name.accumulation.json and .safetensors: loss and gradients of the two micro-batches' concatenated rows."""
    module = bundle.make()
    batches = micro_batches(bundle)
    loss, weight, *_ = module(*concatenate([tensors(bundle, b) for b in batches]), torch.tensor(DROPOUT_OFF))
    loss.backward()
    gradients = {"grad." + key: p.grad.numpy() for key, p in module.named_parameters()}
    (folder / f"{name}.accumulation.safetensors").write_bytes(safetensors(gradients))
    document = {**_constants(bundle), "micro_batches": [_recipe(b) for b in batches], "loss": loss.item(), "loss_weight": weight.item()}
    (folder / f"{name}.accumulation.json").write_text(dump(document) + "\n", encoding="utf-8")


def tensors(bundle: Bundle, batch: Batch) -> list[torch.Tensor]:
    return batch.tensors(len(VOCABULARY), bundle.features["n_mels"])


def _constants(bundle: Bundle) -> dict:
    return {"bundle": bundle.name, "rows": ROWS, "vocab": len(VOCABULARY), "n_mels": bundle.features["n_mels"], "seed": DROPOUT_OFF}


def _recipe(batch: Batch) -> dict:
    return {"batch": batch.index, **batch.sizes, "empty_row": batch.empty_row}
