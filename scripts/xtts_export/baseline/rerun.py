"""Trains in PyTorch what a run of xtts-host trained, from the same weights and on the same batches, and compares the losses.

    mkdir -p debug/batches
    bin/xtts-host --plugins ./plugins --graph BUNDLE --precision bf16 --max-steps 100 --run-dir RUN --debug-dir debug
    cd scripts && python -m xtts_export.baseline.rerun ../RUN --bundle ../BUNDLE --batches ../debug/batches --precision bf16

It needs PyTorch and NumPy only. The learning rate of each step is the run's, and so is the seed of each step's dropout. With --precision bf16
the forward pass is under torch.autocast. The result is one JSON document; the exit status is 1 when a loss, or the mean of the last 20,
is farther from the run's than --limit.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .. import multispeaker, presets
from ..module import Export, Step
from . import reference

DTYPES = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "BOOL": np.bool_, "U8": np.uint8}
# Steps whose time is not counted: PyTorch chooses kernels and fills its memory pool.
WARM_UP = 10
LAST = 20


class Autocast(Step):
    """A Step whose forward pass computes as torch.autocast decides."""

    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        with torch.autocast(tensors[0].device.type, torch.bfloat16):
            return super().forward(*tensors)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    result = compare(options)
    print(json.dumps(result))
    return 0 if result["within"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m xtts_export.baseline.rerun", description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the run's folder")
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR", help="the bundle that the run trained: myxtts-nano, -tiny, -base, ...")
    parser.add_argument("--batches", type=Path, required=True, metavar="DIR", help="the folder batches of the run's --debug-dir")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="bf16: under torch.autocast (default: f32)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="where PyTorch trains (default: cuda, if there is one)")
    parser.add_argument("--limit", type=float, default=0.01, help="the largest relative difference of losses (default: 0.01)")
    return parser


def compare(options: argparse.Namespace) -> dict:
    document = json.loads((options.bundle / "bundle.json").read_text(encoding="utf-8"))
    steps = [json.loads(line) for line in (options.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    host = [step["loss"] for step in steps]
    if None in host:
        sys.exit(f"error: step {1 + host.index(None)} of the run was skipped, so there is no loss to compare")
    # Modules make their constants where tensors are made by default.
    with torch.device(options.device):
        losses, seconds = train(document, options, steps)
    relative = [abs(ours - theirs) / abs(theirs) for ours, theirs in zip(host, losses, strict=True)]
    mean = lambda values: float(np.mean(values[-LAST:]))
    last = abs(mean(host) - mean(losses)) / abs(mean(losses))
    return {
        "bundle": document["name"], "precision": options.precision, "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.device(options.device).type == "cuda" else options.device,
        "steps": len(steps), "limit": options.limit, "within": max(*relative, last) <= options.limit,
        "worst": max(relative), "worst_step": 1 + int(np.argmax(relative)), f"mean_of_last_{LAST}": last,
        "step_ms": {"pytorch": _median(seconds) * 1e3, "host": _median([step["step_ms"] for step in steps])},
        "losses": {"host": host, "pytorch": losses},
    }


def train(document: dict, options: argparse.Namespace, steps: list[dict]) -> tuple[list[float], list[float]]:
    """The loss of each step before its update, and how many seconds each step took without the copy of its batch."""
    export = _export(document["name"])
    weights, _ = read(options.bundle / "params.safetensors")
    export.module.load_state_dict(weights)
    module = (Autocast if options.precision == "bf16" else Step)(export)
    spec = document["optimizer"]
    optimizer = reference.optimizer(module, spec)
    factors = [group["lr"] / spec["lr"] for group in optimizer.param_groups]
    losses, seconds = [], []
    for step, (tensors, seed) in zip(steps, batches(export, options.batches, len(steps)), strict=True):
        for group, factor in zip(optimizer.param_groups, factors, strict=True):
            group["lr"] = step["lr"] * factor
        began = time.perf_counter()
        # It ends by reading the loss, which waits for the device.
        outputs, _ = reference.step(module, optimizer, tensors, seed, spec["grad_clip"])
        losses.append(outputs["loss"])
        seconds.append(time.perf_counter() - began)
    return losses, seconds


def batches(export: Export, folder: Path, count: int) -> Iterator[tuple[list[Tensor], Tensor]]:
    """The graph's inputs of each step in order, on PyTorch's device, and the seed."""
    files = sorted(folder.glob("*.safetensors"))
    if [file.stem for file in files] != [f"{step:06}-00" for step in range(1, count + 1)]:
        sys.exit(f"error: {folder} does not have one batch for each of {count} steps\nhint: create it before the run, and train without --accumulate")
    for file in files:
        tensors, metadata = read(file)
        yield [tensors[i.name] for i in export.inputs], torch.tensor(int(metadata["seed"]))


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors, on PyTorch's device, and metadata of a safetensors file. The package of this name may not be installed where this runs."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[start + begin:start + end], DTYPES[entry["dtype"]])
        tensors[name] = torch.tensor(values).reshape(entry["shape"])
    return tensors, metadata


def _export(name: str) -> Export:
    known = {"myxtts-multispeaker": multispeaker.build, "myxtts-pico": presets.pico}
    return known[name]() if name in known else presets.build(name.removeprefix("myxtts-"))


def _median(values: list[float]) -> float:
    return float(np.median(values[WARM_UP:] or values))


if __name__ == "__main__":
    sys.exit(main())
