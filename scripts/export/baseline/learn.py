"""Does the model learn? Trains it in PyTorch on a few synthetic clips and compares with predictors that know no model."""

import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np
import torch

from .. import tokenizer
from ..bundle import Bundle
from ..model import huber
from . import reference
from .features import log_mel

VOICES = ("en-us", "en-us+f3")

TRAIN = (
    "the boat drifted past the old stone bridge", "seven children were waiting by the garden gate",
    "please close the window before it rains", "a small lamp was burning in the kitchen",
    "nobody heard the train leave the station", "he folded the letter and put it away",
    "the market opens early on friday morning", "two gray horses stood under the tree",
    "she counted every coin in the wooden box", "our neighbour plays the violin at night",
    "the road climbs slowly to the village", "cold water ran over the smooth rocks",
)
HELD_OUT = (
    "the baker sold the last loaf of bread", "we walked home along the quiet river",
    "a green light was blinking on the shore", "they painted the door blue last summer",
)


def speak(text: str, voice: str, folder: Path) -> np.ndarray:
    """f32 samples at 22.05 kHz, from espeak-ng."""
    path = folder / "clip.wav"
    subprocess.run(["espeak-ng", "-v", voice, "-w", path, text], check=True)
    with wave.open(str(path)) as f:
        return np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32) / 32768


def clips(texts: tuple[str, ...], features: dict, reference_samples: int) -> list[dict]:
    """One clip per voice and text; the reference is the start of the same voice's next clip."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for voice in VOICES:
            waves = [speak(text, voice, Path(folder)) for text in texts]
            for i, text in enumerate(texts):
                other = waves[(i + 1) % len(waves)][:reference_samples]
                rows.append({"text": tokenizer.encode(text), "mel": log_mel(waves[i], features), "reference": log_mel(other, features)})
    return rows


def batch(rows: list[dict]) -> list[torch.Tensor]:
    """The graph's inputs but for the seed, padded to the longest row."""
    tensors = []
    for key, dtype in (("text", np.int32), ("mel", np.float32), ("reference", np.float32)):
        padded = np.zeros((len(rows), max(len(r[key]) for r in rows), *np.shape(rows[0][key])[1:]), dtype)
        for i, r in enumerate(rows):
            padded[i, :len(r[key])] = r[key]
        tensors += [torch.from_numpy(padded), torch.tensor([len(r[key]) for r in rows], dtype=torch.int32)]
    return tensors


def baselines(train: list[dict], rows: list[dict]) -> tuple[float, float]:
    """Huber losses of the mean training frame and of the previous frame (zero before the first)."""
    constant = torch.from_numpy(np.concatenate([r["mel"] for r in train]).mean(0))
    mel = [torch.from_numpy(r["mel"]) for r in rows]
    previous = torch.cat([torch.cat([torch.zeros_like(m[:1]), m[:-1]]) for m in mel])
    mel = torch.cat(mel)
    return huber(constant, mel).mean().item(), huber(previous, mel).mean().item()


def learning_rate(bundle: Bundle, step: int, steps: int) -> float:
    """As the host computes it: linear warm-up, then constant or cosine to zero."""
    warmup = min(1.0, (step + 1) / max(bundle.schedule["warmup_steps"], 1))
    shape = 0.5 * (1 + np.cos(np.pi * step / steps)) if bundle.schedule["name"] == "cosine" else 1.0
    return bundle.optimizer["lr"] * warmup * shape


def run(bundle: Bundle, steps: int = 240, rows: int = 8, seed: int = 0) -> None:
    """Trains with the bundle's defaults and prints the figures."""
    train = clips(TRAIN, bundle.features, bundle.buckets[0]["T_ref"])
    held_out = clips(HELD_OUT, bundle.features, bundle.buckets[0]["T_ref"])
    module = bundle.make()
    print(f"{sum(p.numel() for p in module.parameters())} parameters, {len(train)} clips of {np.mean([len(r['mel']) for r in train]):.0f} frames")
    adamw = reference.optimizer(module, bundle.optimizer)
    random = np.random.default_rng(seed)
    per_epoch = len(train) // rows
    history = []
    for step in range(steps):
        if step % per_epoch == 0:
            order = random.permutation(len(train))
        at = step % per_epoch * rows
        for group in adamw.param_groups:
            group["lr"] = learning_rate(bundle, step, steps)
        outputs, _ = reference.step(module, adamw, batch([train[i] for i in order[at:at + rows]]), torch.tensor(step), bundle.optimizer["grad_clip"])
        history.append(outputs)
        if step == 0:
            _print_gradients(module)
        if step % 20 == 19:
            loss, _, mel_loss, stop_loss = np.mean(history[-20:], 0)
            print(f"steps to {step + 1}: loss {loss:.4f}, mel_loss {mel_loss:.4f}, stop_loss {stop_loss:.4f}")
    _print_verdict("training", baselines(train, train), np.mean(history[-20:], 0)[2])
    inputs, off = batch(held_out), torch.tensor(-1)
    with torch.no_grad():
        _print_verdict("held out", baselines(train, held_out), module(*inputs, off)[2].item())
        other_text = [x.roll(1, 0) for x in inputs[:2]] + inputs[2:]
        other_speaker = inputs[:4] + [x.roll(len(HELD_OUT), 0) for x in inputs[4:]]
        print(f"held out with another text {module(*other_text, off)[2].item():.4f}, speaker {module(*other_speaker, off)[2].item():.4f}")


def _print_gradients(module: torch.nn.Module) -> None:
    for name, child in module.named_children():
        gradient = torch.cat([p.grad.flatten() for p in child.parameters()])
        print(f"gradient of {name}: rms {gradient.square().mean().sqrt().item():.1e}")


def _print_verdict(what: str, baseline: tuple[float, float], loss: float) -> None:
    constant, previous = baseline
    print(f"{what}: constant {constant:.4f}, previous frame {previous:.4f}, model {loss:.4f} = {loss / constant:.3f} of constant")
