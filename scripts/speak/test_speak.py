"""python -m speak.test_speak RUN: compares NumPy's model with the host's last evaluation of a run of myxtts-nano, and its
tokenizer with the Hugging Face library.

The run has LJSpeech data with a metadata_eval.csv of 16-bit WAV files. So this test covers recordings, features, tokenizer,
references, weights and model at once.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np

from . import files
from .features import Features
from .model import Model
from .text import Tokenizer

TOLERANCE = 1e-3  # of the loss: the host computes features in f64 and the model in f32 in another order


def reference_of(row: str, rows: dict[str, np.ndarray], seed: int, size: int) -> np.ndarray:
    """The reference of a row in an evaluation, as docs/data-plan.md specifies it."""
    fields = [b"reference", str(seed).encode(), b"0", row.encode()]
    digest = hashlib.sha256(b"".join(len(f).to_bytes(4, "big") + f for f in fields)).digest()
    u, v = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")
    speaker = lambda name: name.rpartition("/")[0]
    others = [name for name in rows if name != row and speaker(name) == speaker(row)] or [row]
    clip = rows[others[u * len(others) >> 64]]
    length = min(size, len(clip))
    start = v * (len(clip) - length + 1) >> 64
    return clip[start:start + length]


def mel_loss(run: Path) -> float:
    checkpoint = files.checkpoint(run)
    folder, document = files.bundle(checkpoint)
    features, model = Features(document["features"]), Model(files.weights(checkpoint))
    tokenizer = Tokenizer(folder / "tokenizer.json")
    config = (run / "config.yaml").read_text(encoding="utf-8")
    data = Path(json.loads(re.search(r"^train_data: (\"[^\n]*\")  #", config, re.MULTILINE)[1]))
    seed = int(re.search(r"^seed: (-?\d+)", config, re.MULTILINE)[1])
    lines = [line.split("|") for line in (data / "metadata_eval.csv").read_text(encoding="utf-8").splitlines()]
    clips = {line[0]: files.read_wav(data / "wavs" / f"{line[0]}.wav", features.rate) for line in lines}
    total = frames = 0.0
    for row, *_, text in lines:
        mel = features.mel(clips[row])
        reference = features.mel(reference_of(row, clips, seed, document["buckets"][0]["T_ref"]))
        previous = np.concatenate([np.zeros_like(mel[:1]), mel[:-1]])
        prediction, _ = model.decode(previous, model.voice(reference), model.text(tokenizer.encode(text)))
        error = np.abs(prediction - mel)
        total += float(np.where(error < 1, error**2 / 2, error - 0.5).mean(1).sum())
        frames += len(mel)
    return total / frames


def step_error(run: Path) -> float:
    """The largest difference between frames that are predicted one by one and at once."""
    model = Model(files.weights(files.checkpoint(run)))
    rng = np.random.default_rng(1)
    mel, reference = (rng.normal(size=(frames, model.n_mels)).astype(np.float32) for frames in (12, 7))
    memory, voice, past = model.text([5, 9, 7]), model.voice(reference), {}
    single = np.concatenate([model.decode(mel[i:i + 1], voice, memory, past)[0] for i in range(len(mel))])
    return float(np.abs(single - model.decode(mel, voice, memory)[0]).max())


def copy_error(run: Path) -> float:
    """The mean difference between a recording's mel bands and those of its copy, in standard deviations."""
    _, document = files.bundle(files.checkpoint(run))
    features = Features(document["features"])
    time = np.arange(features.rate) / features.rate
    samples = 0.1 * sum(np.sin(2 * np.pi * 150 * k * time) / k for k in range(1, 20))
    mel = features.mel(samples)
    again = features.mel(features.waveform(mel))
    return float(np.abs(mel - again)[4:-4].mean())


def wrong_texts() -> list[str]:
    """Texts for which the embedded tokenizer gives other ids than the Hugging Face library."""
    tokenizer = Tokenizer(files.BUILTIN / "myxtts-nano/tokenizer.json")
    golden = json.loads((files.BUILTIN.parents[1] / "host/data/dataset/testdata/tokenizer_parity.json").read_text(encoding="utf-8"))
    return [case["text"] for case in golden["embedded"] if tokenizer.encode(case["text"]) != case["ids"]]


def main() -> None:
    run = Path(sys.argv[1])
    host = json.loads((run / "eval.jsonl").read_text().splitlines()[-1])
    step = json.loads((files.checkpoint(run) / "state.json").read_text())["step"]
    if host["step"] != step:
        sys.exit(f"error: the last evaluation is of step {host['step']}, the newest checkpoint of step {step}")
    try:
        ours = mel_loss(run)
    except files.Refused as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
    except FileNotFoundError as error:
        sys.exit(f"error: {error.filename} is missing\nhint: the comparison reads data sets with metadata_eval.csv and WAV files in wavs, as the guide makes one")
    print(f"mel_loss: the host {host['mel_loss']:.6f}, NumPy {ours:.6f}")
    if not abs(ours - host["mel_loss"]) <= TOLERANCE * host["mel_loss"]:
        sys.exit("error: scripts/speak/model.py is not the model of xtts_export/model.py, or reads other inputs")
    if wrong := wrong_texts():
        sys.exit(f"error: scripts/speak/text.py gives other ids than the Hugging Face library for {len(wrong)} texts, such as {wrong[0]!r}")
    error = step_error(run)
    print(f"frame by frame: predictions differ by at most {error:.1e}")
    if not error < 1e-4:
        sys.exit("error: frames that are predicted one by one differ from those predicted at once")
    error = copy_error(run)
    print(f"copy: mel bands differ by {error:.3f} standard deviations")
    if not error < 0.25:
        sys.exit("error: the sound of a mel spectrogram has another mel spectrogram")


main()
