"""The bundles that this repository keeps.

`myxtts-nano` is the embedded default and `pico` the same model, small enough for unit tests. `myxtts-multispeaker` differs from them
wherever a bundle may differ: architecture, inputs, features, optimizer, kind of accumulation.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from . import tokenizer
from .bundle import Bundle
from .model import MyXTTS, Sizes
from .multispeaker import MultiSpeaker
from .multispeaker import Sizes as MultiSpeakerSizes

REPOSITORY = Path(__file__).resolve().parents[2]

NANO = Sizes(vocab=len(tokenizer.VOCABULARY))
PICO = Sizes(vocab=len(tokenizer.VOCABULARY), n_mels=20, width=16, feed_forward=32, decoder_layers=1)
MULTISPEAKER = MultiSpeakerSizes(vocab=len(tokenizer.VOCABULARY))


def _make(module: type[nn.Module], sizes) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return module(sizes)
    return make


def _sequence(name: str, dtype: str, shape: list, lengths: str, origin: str) -> list[dict]:
    return [
        {"name": name, "dtype": dtype, "shape": ["B", *shape], "pad": 0, "lengths": lengths, "origin": origin},
        {"name": lengths, "dtype": "i32", "shape": ["B"], "origin": origin},
    ]


TEXT = _sequence("text_sequences", "i32", ["T_text"], "text_lengths", "dataset")


def _logmel(name: str, waveform: str, lengths: str, mel: str, mel_lengths: str) -> dict:
    """A pipeline instance that makes mel from waveform."""
    return {"name": name, "stage": "logmel",
            "inputs": {"waveform": waveform, "waveform_lengths": lengths},
            "outputs": {"mel_spectrograms": mel, "mel_lengths": mel_lengths}}


def _bucket(text: int, samples: int, reference: int, hop: int) -> dict:
    """Centred features have one frame more than whole hops."""
    return {"T_text": text, "T_wav": samples, "T_mel": 1 + samples // hop, "T_ref": reference, "T_ref_mel": 1 + reference // hop}


# NumPy features of MyXTTS; mean and std make the mels of synthetic English speech roughly standard.
FEATURES = {
    "sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "constant",
    "power": 1, "n_mels": 80, "mel_scale": "slaney", "mel_norm": "slaney", "f_min": 0, "f_max": 11025, "log": "ln", "log_floor": 1e-5,
    "normalization": {"mean": -5.6, "std": 2.8},
}


def _myxtts(name: str, description: str, sizes: Sizes, features: dict, buckets: list[dict]) -> Bundle:
    return Bundle(
        name=name, description=description, make=_make(MyXTTS, sizes), outputs=MyXTTS.OUTPUTS, buckets=buckets, features=features,
        inputs=[
            *TEXT,
            *_sequence("mel_spectrograms", "f32", ["T_mel", sizes.n_mels], "mel_lengths", "stage"),
            *_sequence("reference_mel_spectrograms", "f32", ["T_ref_mel", sizes.n_mels], "reference_mel_lengths", "stage"),
        ],
        tokenizer=tokenizer.build(),
        pipeline=[
            _logmel("target", "waveform", "waveform_lengths", "mel_spectrograms", "mel_lengths"),
            _logmel("reference", "reference_waveform", "reference_lengths", "reference_mel_spectrograms", "reference_mel_lengths"),
        ],
        accumulation="exact",
        optimizer={"name": "adamw", "lr": 0.003, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0},
        schedule={"name": "cosine", "warmup_steps": 20},
        baselines=[{"metric": "mel_loss", "target": "mel_spectrograms", "loss": "huber", "delta": 1.0}],
    )


# Text lengths leave room for 24 characters a second; English speech has about 16.
MYXTTS_NANO = _myxtts(
    "myxtts-nano", "text encoder, speaker encoder, autoregressive mel decoder", NANO, FEATURES,
    [_bucket(text, samples, 33024, 256) for text, samples in ((48, 44032), (72, 66048), (96, 88064), (124, 112640))],
)

MYXTTS_PICO = _myxtts(
    "myxtts-pico", "myxtts-nano in miniature, for tests", PICO,
    {**FEATURES, "n_fft": 512, "win_length": 512, "n_mels": 20, "normalization": {"mean": -6.4, "std": 2.8}},
    [_bucket(text, samples, 8192, 256) for text, samples in ((16, 11008), (32, 22016), (48, 44032))],
)

MYXTTS_MULTISPEAKER = Bundle(
    name="myxtts-multispeaker", description="speakers by number, text spread over the frames by durations, mels in parallel",
    make=_make(MultiSpeaker, MULTISPEAKER), outputs=MultiSpeaker.OUTPUTS,
    inputs=[
        *TEXT,
        {"name": "speaker_ids", "dtype": "i32", "shape": ["B"], "origin": "dataset"},
        {"name": "language_ids", "dtype": "i32", "shape": ["B"], "origin": "dataset"},
        *_sequence("target_mels", "f32", ["T_mel", MULTISPEAKER.n_mels], "target_mel_lengths", "stage"),
    ],
    buckets=[{"T_text": text, "T_wav": 256 * hops, "T_mel": 1 + hops} for text, hops in ((48, 125), (62, 160), (96, 250))],
    features={
        "sample_rate": 16000, "n_fft": 512, "win_length": 400, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "reflect",
        "power": 2, "n_mels": MULTISPEAKER.n_mels, "mel_scale": "htk", "mel_norm": "none", "f_min": 60, "f_max": 7600,
        "log": "log10", "log_floor": 1e-4,
    },
    tokenizer=tokenizer.build(),
    pipeline=[_logmel("target", "waveform", "waveform_lengths", "target_mels", "target_mel_lengths")],
    accumulation="mean",
    optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-5, "grad_clip": 0.25},
    schedule={"name": "constant", "warmup_steps": 10},
    baselines=[{"metric": "spectrum_loss", "target": "target_mels", "loss": "l1"}],
)

FOLDERS = {
    REPOSITORY / "ortgraphs/builtin/myxtts-nano": MYXTTS_NANO,
    REPOSITORY / "ortgraphs/builtin/myxtts-multispeaker": MYXTTS_MULTISPEAKER,
    REPOSITORY / "ortgraphs/testdata/pico": MYXTTS_PICO,
}
