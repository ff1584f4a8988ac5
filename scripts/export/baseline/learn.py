"""Does a model learn? Trains it in PyTorch on the embedded sample and compares with predictors that know no model."""

import io
import wave
import zipfile

import numpy as np
import torch
from scipy.signal import resample_poly

from .. import builtin, tokenizer
from ..bundle import Bundle
from ..model import huber
from . import reference
from .features import log_mel

SAMPLE = builtin.REPOSITORY / "host/dataset/sample/sample.zip"

LOSSES = {"huber": huber, "l1": lambda x, y: (x - y).abs(), "l2": lambda x, y: (x - y).square()}


def clips(bundle: Bundle, split: str) -> list[dict]:
    """The rows of metadata_SPLIT.csv, each with the values of the bundle's inputs by name. Lengths are left to batch."""
    rows = []
    with zipfile.ZipFile(SAMPLE) as sample:
        for line in sample.read(f"metadata_{split}.csv").decode().splitlines():
            name, text = line.split("|")
            waveform = _resampled(sample.read(f"wavs/{name}.wav"), bundle.features["sample_rate"])
            rows.append({"speaker": name.split("/")[0], "text_sequences": tokenizer.encode(text), "waveform": waveform, "language_ids": 0})
    speakers = sorted({r["speaker"] for r in rows})
    for i, r in enumerate(rows):
        r["speaker_ids"] = speakers.index(r["speaker"])
        # The start of the same speaker's next clip.
        others = [o for o in rows[i + 1:] + rows[:i] if o["speaker"] == r["speaker"]]
        r["reference_waveform"] = others[0]["waveform"][:bundle.buckets[0].get("T_ref")]
    for stage in bundle.pipeline:
        for r in rows:
            r[stage["outputs"]["mel_spectrograms"]] = log_mel(r[stage["inputs"]["waveform"]], bundle.features)
    return rows


def _resampled(wav: bytes, rate: int) -> np.ndarray:
    with wave.open(io.BytesIO(wav)) as f:
        samples = np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32) / 32768
        return samples if rate == f.getframerate() else resample_poly(samples, rate, f.getframerate()).astype(np.float32)


def batch(bundle: Bundle, rows: list[dict]) -> dict[str, torch.Tensor]:
    """The graph's inputs but for the seed, in order, padded to the longest row."""
    tensors = {}
    for spec in bundle.inputs:
        dtype = np.int32 if spec["dtype"] == "i32" else np.float32
        if values := [r[spec["name"]] for r in rows if spec["name"] in r]:
            sequence = "lengths" in spec
            array = np.zeros((len(rows), *([max(map(len, values))] if sequence else []), *np.shape(values[0])[1:]), dtype)
            for i, value in enumerate(values):
                array[i, :len(value)] = value
            tensors[spec["name"]] = torch.from_numpy(array)
            if sequence:
                tensors[spec["lengths"]] = torch.tensor([len(v) for v in values], dtype=torch.int32)
    return {spec["name"]: tensors[spec["name"]] for spec in bundle.inputs}
