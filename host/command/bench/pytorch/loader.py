"""Batches from audio files, as a training loop in PyTorch makes them: a DataLoader whose workers decode the clips, and compute the stages of
the pipeline or leave them to the GPU. The stages compute what the first-party plugins compute (plugins/), with PyTorch's random numbers.

The file of clips, which xtts-host writes, has the rows of the data set, the tensors of a batch, and the instances of the pipeline.
"""

import functools
import json
import math
import multiprocessing
import os
import random
import wave
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import pad

AHEAD = 2  # batches that each worker prepares ahead
MOST_WORKERS = 16


class Clips(torch.utils.data.Dataset):
    """The rows of the data set. An item is a batch of one row without padding: what `keep` names, after the stages."""

    def __init__(self, file, features, keep, stages):
        self.rows, self.dataset, self.batch = file["rows"], file["dataset"], {t["name"]: t for t in file["tensors"]}
        self.features, self.keep, self.stages = features, keep, stages
        self.by_speaker = {}
        for row in self.rows:
            self.by_speaker.setdefault(row["speaker"], []).append(row)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        number = {"speaker_ids": row["speaker"], "language_ids": row["language"]}
        tensors = {name: torch.tensor([x], dtype=torch.int32) for name, x in number.items()}
        tensors |= sequence("text_sequences", "text_lengths", torch.tensor(row["tokens"], dtype=torch.int32))
        if "waveform" in self.dataset:
            tensors |= sequence("waveform", "waveform_lengths", self.read(row, 0, row["frames"]))
        if "reference_waveform" in self.dataset:
            other = random.choice(self.by_speaker[row["speaker"]])
            size = min(other["frames"], self.batch["reference_waveform"]["shape"][1])
            tensors |= sequence("reference_waveform", "reference_lengths", self.read(other, random.randint(0, other["frames"] - size), size))
        return {name: x for name, x in run(self.stages, tensors, self.batch, self.features).items() if name in self.keep}

    def read(self, row, start, count):
        """Samples of a clip."""
        with wave.open(row["path"]) as file:
            form = file.getsampwidth(), file.getnchannels(), file.getframerate()
            if form != (2, 1, self.features["sample_rate"]):
                raise ValueError(f"{row['path']}: only WAV of 16 bits and one channel at {self.features['sample_rate']} Hz is read in Python")
            file.setpos(row["offset"] + start)
            samples = np.frombuffer(file.readframes(count), np.int16)
        return torch.from_numpy(samples.astype(np.float32) / 32768)

    def collate(self, rows):
        """The batch in the shapes of the bucket, so nothing is compiled again for another length."""
        batch = {}
        for name in rows[0]:
            shape, fill = self.batch[name]["shape"], self.batch[name]["pad"]
            padded = [x if x.dim() < 2 else pad(x, (0, 0) * (x.dim() - 2) + (0, shape[1] - x.shape[1]), value=fill) for x in (row[name] for row in rows)]
            batch[name] = torch.cat(padded)
        return batch


class Order(torch.utils.data.Sampler):
    """Batches of row numbers without end. Each epoch is shuffled, and has no incomplete batch."""

    def __init__(self, rows, batch):
        self.rows, self.batch = rows, batch

    def __iter__(self):
        left, draw = [], random.Random(1)
        while True:
            while len(left) < self.batch:
                left += draw.sample(range(self.rows), self.rows)
            yield left[:self.batch]
            left = left[self.batch:]


class Feed:
    """Batches on the device, without end. With on_device, the stages run there, otherwise in the workers."""

    def __init__(self, path, features, inputs, device, on_device):
        file = json.loads(Path(path).read_text(encoding="utf-8"))
        gpu = device != "cpu"
        self.device, self.features, self.inputs = device, features, inputs
        self.stages = file["stages"] if on_device else []
        clips = Clips(file, features, *((file["dataset"], []) if on_device else (inputs, file["stages"])))
        self.batch = clips.batch
        # Beside a GPU all cores are free. On the CPU the model computes on some.
        cores = len(os.sched_getaffinity(0))
        self.workers = min(MOST_WORKERS, cores if gpu else max(2, cores - torch.get_num_threads()))
        # Not forked from this process, which has threads and a CUDA context.
        multiprocessing.set_forkserver_preload(["torch"])
        self.batches = iter(torch.utils.data.DataLoader(
            clips, batch_sampler=Order(len(clips), self.batch[inputs[0]]["shape"][0]), collate_fn=clips.collate, num_workers=self.workers,
            prefetch_factor=AHEAD, pin_memory=gpu, persistent_workers=True, multiprocessing_context="forkserver"))

    def ahead(self):
        """How many batches may have been prepared while no one took any."""
        return self.workers * AHEAD + 2

    def next(self):
        batch = {name: x.to(self.device, non_blocking=True) for name, x in next(self.batches).items()}
        with torch.no_grad():
            batch = run(self.stages, batch, self.batch, self.features)
        # In the layout of the batches that the model was compiled for: for another one it would be compiled again.
        return {name: batch[name].contiguous() for name in self.inputs}


def sequence(name, lengths, values):
    """A row of a varying length as a batch of one."""
    return {name: values[None], lengths: torch.tensor([len(values)], dtype=torch.int32)}


def run(stages, tensors, batch, features):
    """The tensors and what the stages make of them."""
    for instance in stages:
        given = {port: tensors[name] for port, name in instance["inputs"].items()}
        pads = {port: batch[name]["pad"] for port, name in instance["outputs"].items()}
        made = STAGES[instance["stage"]](given, pads, instance["config"], features)
        tensors = tensors | {instance["outputs"][port]: x for port, x in made.items()}
    return tensors


def inside(lengths, size):
    return torch.arange(size, device=lengths.device)[None, :] < lengths[:, None]


def uniform(low, high, like, count):
    return low + (high - low) * torch.rand(count, device=like.device)


def waveaug(given, _pads, config, _features):
    """Level, noise and polarity (plugins/augment/waveaug)."""
    wave, lengths, rows = given["waveform"], given["waveform_lengths"], len(given["waveform"])
    chance = lambda name: torch.rand(rows, device=wave.device) < config[name]
    decibel = lambda low, high: uniform(config[low], config[high], wave, rows)
    factor = torch.where(chance("gain_probability"), 10 ** (decibel("gain_db_min", "gain_db_max") / 20), 1.0)
    factor = torch.where(chance("polarity_probability"), -factor, factor)
    noisy, ratio = chance("noise_probability"), 10 ** (decibel("snr_db_min", "snr_db_max") / 10)
    if wave.device.type != "cpu" or noisy.any():  # asking a GPU would wait for it
        noise = torch.randn_like(wave) * inside(lengths, wave.shape[1])
        scale = torch.sqrt(wave.square().sum(1) / (noise.square().sum(1).clamp_min(1e-20) * ratio)) * noisy
        wave = wave + scale[:, None] * noise
    return {"waveform": wave * factor[:, None]}


def logmel(given, pads, _config, features):
    """Log-mel spectrograms by the feature contract (docs/bundle.md)."""
    wave, lengths = given["waveform"], given["waveform_lengths"]
    window, bank = tables(json.dumps(features), wave.device)
    half = features["n_fft"] // 2 if features["center"] else 0
    if half and features["pad_mode"] == "reflect":
        wave = reflected(wave, lengths, half)
    elif half:
        wave = pad(wave, (half, half))
    spectrum = torch.stft(wave, features["n_fft"], features["hop_length"], features["win_length"], window, center=False, return_complex=True).abs()
    if features["power"] == 2:
        spectrum = spectrum.square()
    mel = (bank @ spectrum).clamp_min(features["log_floor"])
    mel = (mel.log() if features["log"] == "ln" else mel.log10()).transpose(1, 2)
    if features.get("normalization"):
        mel = (mel - features["normalization"]["mean"]) / features["normalization"]["std"]
    first = 0 if features["center"] else features["n_fft"]
    frames = torch.where(lengths > 0, 1 + (lengths - first) // features["hop_length"], 0).to(torch.int32)
    return {"mel_spectrograms": torch.where(inside(frames, mel.shape[1])[:, :, None], mel, pads["mel_spectrograms"]), "mel_lengths": frames}


def reflected(wave, lengths, half):
    """Each row with its reflections at both of its ends, repeated where it is shorter than them."""
    last = (lengths[:, None].to(torch.int64) - 1).clamp_min(0)
    period = (2 * last).clamp_min(1)
    at = torch.arange(-half, wave.shape[1] + half, device=wave.device)[None, :] % period
    return wave.gather(1, torch.minimum(at, period - at))


@functools.cache
def tables(features, device):
    """The window and the mel filters of a feature contract."""
    features = json.loads(features)
    frequencies = torch.arange(features["n_fft"] // 2 + 1, device="cpu", dtype=torch.float64) * features["sample_rate"] / features["n_fft"]
    low, high = (to_mel(features[name], features["mel_scale"]) for name in ("f_min", "f_max"))
    bands = features["n_mels"]
    edges = torch.tensor([to_hz(low + (high - low) * i / (bands + 1), features["mel_scale"]) for i in range(bands + 2)], dtype=torch.float64, device="cpu")
    lower, centre, upper = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bank = torch.minimum((frequencies - lower) / (centre - lower), (upper - frequencies) / (upper - centre)).clamp_min(0)
    if features["mel_norm"] == "slaney":
        bank = bank * 2 / (upper - lower)
    return torch.hann_window(features["win_length"], device=device), bank.float().to(device)


SLANEY_HZ, SLANEY_BREAK, SLANEY_STEP = 200 / 3, 1000, math.log(6.4) / 27


def to_mel(hz, scale):
    if scale == "htk":
        return 2595 * math.log10(1 + hz / 700)
    return hz / SLANEY_HZ if hz < SLANEY_BREAK else SLANEY_BREAK / SLANEY_HZ + math.log(hz / SLANEY_BREAK) / SLANEY_STEP


def to_hz(mel, scale):
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return mel * SLANEY_HZ if mel < SLANEY_BREAK / SLANEY_HZ else SLANEY_BREAK * math.exp((mel - SLANEY_BREAK / SLANEY_HZ) * SLANEY_STEP)


def specaugment(given, pads, config, _features):
    """Masks of bands and frames (plugins/augment/specaugment)."""
    mel, lengths = given["mel_spectrograms"], given["mel_lengths"]
    rows, frames, bands = mel.shape
    chosen = torch.rand(rows, device=mel.device) < config["probability"]
    widest = torch.minimum((lengths * config["time_mask_share"]).floor(), torch.full_like(lengths, config["time_mask_width"]))
    masked = masks(config["freq_masks"], torch.full_like(lengths, config["freq_mask_width"]), torch.full_like(lengths, bands), bands)[:, None, :]
    masked = masked | (masks(config["time_masks"], widest, lengths, frames))[:, :, None]
    masked = masked & chosen[:, None, None] & inside(lengths, frames)[:, :, None]
    return {"mel_spectrograms": torch.where(masked, pads["mel_spectrograms"], mel)}


def masks(count, widest, lengths, size):
    """Where each row's masks are, along an axis."""
    width = (torch.rand(count, len(lengths), device=lengths.device) * (widest + 1)).floor()
    first = (torch.rand(count, len(lengths), device=lengths.device) * (lengths - width + 1)).floor()
    at = torch.arange(size, device=lengths.device)
    return ((at >= first[:, :, None]) & (at < (first + width)[:, :, None])).any(0)


STAGES = {"augment/waveaug": waveaug, "features/logmel": logmel, "augment/specaugment": specaugment}  # by plugin and stage
