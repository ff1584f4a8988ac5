"""Does a model learn? Trains it in PyTorch on the embedded sample and compares with predictors that know no model."""

import inspect
import io
import wave
import zipfile

import librosa
import numpy as np
import torch

from .. import builtin, tokenizer, convert
from ..model import huber
from ..module import Export, Step
from . import reference
from .features import log_mel, prosody

SAMPLE = builtin.REPOSITORY / "host/data/dataset/sample/sample.zip"

LOSSES = {"huber": huber, "l1": lambda x, y: (x - y).abs(), "l2": lambda x, y: (x - y).square()}


def clips(export: Export, split: str) -> list[dict]:
    """The rows of metadata_SPLIT.csv, each with the values of the inputs by name. Lengths are left to batch."""
    rows = []
    with zipfile.ZipFile(SAMPLE) as sample:
        for line in sample.read(f"metadata_{split}.csv").decode().splitlines():
            name, text = line.split("|")
            waveform = _resampled(sample.read(f"wavs/{name}.wav"), export.features["sample_rate"])
            rows.append({"speaker": name.split("/")[0], "text_sequences": tokenizer.encode(text), "waveform": waveform, "language_ids": 0})
    speakers = sorted({r["speaker"] for r in rows})
    for i, r in enumerate(rows):
        r["speaker_ids"] = speakers.index(r["speaker"])
        # The start of the same speaker's next clip.
        others = [o for o in rows[i + 1:] + rows[:i] if o["speaker"] == r["speaker"]]
        r["reference_waveform"] = others[0]["waveform"][:export.buckets[0].get("T_ref")]
    for stage in export.pipeline:
        make = {"logmel": log_mel, "prosody": prosody}[stage["stage"]]
        for r in rows:
            made = make(r[stage["inputs"]["waveform"]], export.features)
            r |= {stage["outputs"][port]: x for port, x in made.items()}
    return rows


def _resampled(wav: bytes, rate: int) -> np.ndarray:
    with wave.open(io.BytesIO(wav)) as f:
        samples = np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32) / 32768
        return librosa.resample(samples, orig_sr=f.getframerate(), target_sr=rate, res_type="polyphase")


def batch(export: Export, rows: list[dict]) -> dict[str, torch.Tensor]:
    """The graph's inputs but for the seed, in order, padded to the longest row."""
    tensors = {}
    for i in export.inputs:
        dtype = np.int32 if i.dtype == "i32" else np.float32
        values = [r.get(i.name) for r in rows]
        if i.lengths:
            longest = max(map(len, values))
            padded = [np.pad(v, [(0, longest - len(v))] + [(0, 0)] * (np.ndim(v) - 1)) for v in values]
            tensors[i.name] = torch.from_numpy(np.stack(padded).astype(dtype))
            tensors[i.lengths] = torch.tensor([len(v) for v in values], dtype=torch.int32)
        elif i.name not in tensors:
            tensors[i.name] = torch.from_numpy(np.array(values, dtype))
    return {i.name: tensors[i.name] for i in export.inputs}


def baselines(export: Export, train: list[dict], rows: list[dict]) -> tuple[float, float]:
    """Losses of the mean training frame and of the previous frame (zero before the first), as the bundle's first baseline has them."""
    spec = export.baselines[0]
    loss = LOSSES[spec["loss"]]
    constant = torch.from_numpy(np.concatenate([r[spec["target"]] for r in train]).mean(0))
    mel = [torch.from_numpy(r[spec["target"]]) for r in rows]
    previous = torch.cat([torch.cat([torch.zeros_like(m[:1]), m[:-1]]) for m in mel])
    mel = torch.cat(mel)
    return loss(constant, mel).mean().item(), loss(previous, mel).mean().item()


def learning_rate(export: Export, step: int, steps: int) -> float:
    """As a run of the bundle's defaults has it."""
    warmup = export.schedule.get("warmup_steps", 0)
    course = {"name": export.schedule["name"], "base_lr": export.optimizer["lr"], "warmup_steps": warmup, "decay_start": warmup, "total_steps": steps}
    return convert.learning_rate(course, step)


def run(export: Export, steps: int = 240, rows: int = 8, seed: int = 0) -> None:
    """Trains with the bundle's defaults and prints the figures."""
    train, held_out = clips(export, "train"), clips(export, "eval")
    spec = export.baselines[0]
    metric = "metric." + spec["metric"]
    frames = np.concatenate([r[spec["target"]] for r in train])
    module = Step(export)
    print(f"{export.name}: {sum(p.numel() for p in module.parameters())} parameters, {len(train)} clips of {len(frames) / len(train):.0f} frames, "
          f"{spec['target']} of mean {frames.mean():.2f} and deviation {frames.std():.2f}")
    optimizer = reference.optimizer(module, export.optimizer)
    random = np.random.default_rng(seed)
    per_epoch = len(train) // rows
    history = []
    for step in range(steps):
        if step % per_epoch == 0:
            order = random.permutation(len(train))
        at = step % per_epoch * rows
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(export, step, steps)
        inputs = batch(export, [train[i] for i in order[at:at + rows]])
        outputs, norm = reference.step(module, optimizer, inputs.values(), torch.tensor(step), export.optimizer["grad_clip"])
        history.append({**outputs, "grad_norm": norm})
        if step == 0:
            _print_gradients(module)
        if step % 20 == 19 or step == 0:
            print(f"steps to {step + 1}: " + ", ".join(f"{name.removeprefix('metric.')} {_recent(history, name):.4f}" for name in history[0]))
    _print_verdict("training", baselines(export, train, train), _recent(history, metric))
    inputs, off = batch(export, held_out), torch.tensor(-1)
    with torch.no_grad():
        evaluate = lambda tensors: module(*tensors.values(), off)[metric].item()
        _print_verdict("held out", baselines(export, train, held_out), evaluate(inputs))
        conditions = conditioning(export)
        # Half of the rows are the other speaker's.
        swapped = {"text": ("text_", 1), "speaker": (("speaker_", "reference_"), len(held_out) // 2)}
        for what, (prefixes, by) in swapped.items():
            others = {name: x.roll(by, 0) if name in conditions and name.startswith(prefixes) else x for name, x in inputs.items()}
            print(f"held out with another {what}: {evaluate(others):.4f}")


def _recent(history: list[dict[str, float]], name: str) -> float:
    return float(np.mean([figures[name] for figures in history[-20:]]))


def conditioning(export: Export) -> set[str]:
    """The inputs that the target is predicted from: those that the module takes, but for the target."""
    target = next(i for i in export.inputs if i.name == export.baselines[0]["target"])
    return {i.name for i in export.inputs}.intersection(inspect.signature(export.module.forward).parameters) - {target.name, target.lengths}


def _print_gradients(module: torch.nn.Module) -> None:
    for name, child in module.named_children():
        gradient = torch.cat([p.grad.flatten() for p in child.parameters()])
        print(f"gradient of {name}: rms {gradient.square().mean().sqrt().item():.1e}")


def _print_verdict(what: str, baseline: tuple[float, float], loss: float) -> None:
    constant, previous = baseline
    print(f"{what}: constant {constant:.4f}, previous frame {previous:.4f}, model {loss:.4f} = {loss / constant:.3f} of constant")
