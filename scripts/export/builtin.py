"""The bundles that this repository keeps: `nano`, the embedded default, and `pico`, which is small enough for unit tests."""

from pathlib import Path

import torch

from . import tokenizer
from .bundle import Bundle
from .model import MyXTTS, Sizes

REPOSITORY = Path(__file__).resolve().parents[2]

NANO = Sizes(vocab=len(tokenizer.VOCABULARY))
PICO = Sizes(vocab=len(tokenizer.VOCABULARY), n_mels=20, width=16, feed_forward=32, decoder_layers=1)


def _make(sizes: Sizes):
    def make() -> MyXTTS:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return MyXTTS(sizes)
    return make


def _inputs(n_mels: int) -> list[dict]:
    def sequence(name: str, dtype: str, shape: list, lengths: str, origin: str) -> list[dict]:
        return [
            {"name": name, "dtype": dtype, "shape": ["B", *shape], "pad": 0, "lengths": lengths, "origin": origin},
            {"name": lengths, "dtype": "i32", "shape": ["B"], "origin": origin},
        ]
    return [
        *sequence("text_sequences", "i32", ["T_text"], "text_lengths", "dataset"),
        *sequence("mel_spectrograms", "f32", ["T_mel", n_mels], "mel_lengths", "stage"),
        *sequence("reference_mel_spectrograms", "f32", ["T_ref_mel", n_mels], "reference_mel_lengths", "stage"),
    ]


def _bucket(text: int, samples: int, reference: int, hop: int) -> dict:
    """Centred features have one frame more than whole hops."""
    return {"T_text": text, "T_wav": samples, "T_mel": 1 + samples // hop, "T_ref": reference, "T_ref_mel": 1 + reference // hop}


PIPELINE = [
    {"name": "target", "stage": "logmel",
     "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
     "outputs": {"mel_spectrograms": "mel_spectrograms", "mel_lengths": "mel_lengths"}},
    {"name": "reference", "stage": "logmel",
     "inputs": {"waveform": "reference_waveform", "waveform_lengths": "reference_lengths"},
     "outputs": {"mel_spectrograms": "reference_mel_spectrograms", "mel_lengths": "reference_mel_lengths"}},
]

# NumPy features of the founding model; mean and std make the mels of synthetic English speech roughly standard.
FEATURES = {
    "sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "constant",
    "power": 1, "n_mels": 80, "mel_scale": "slaney", "mel_norm": "slaney", "f_min": 0, "f_max": 11025, "log": "ln", "log_floor": 1e-5,
    "normalization": {"mean": -5.6, "std": 2.8},
}


def _bundle(name: str, description: str, sizes: Sizes, features: dict, buckets: list[dict]) -> Bundle:
    return Bundle(
        name=name, description=description, make=_make(sizes), inputs=_inputs(sizes.n_mels), outputs=MyXTTS.OUTPUTS, buckets=buckets,
        features=features, tokenizer=tokenizer.build(), pipeline=PIPELINE, accumulation="exact",
        optimizer={"name": "adamw", "lr": 0.003, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0},
        schedule={"name": "cosine", "warmup_steps": 20},
        baselines=[{"metric": "mel_loss", "target": "mel_spectrograms", "loss": "huber", "delta": 1.0}],
    )


# Text lengths leave room for 24 characters a second; English speech has about 16.
MYXTTS_NANO = _bundle(
    "myxtts-nano", "text encoder, speaker encoder, autoregressive mel decoder", NANO, FEATURES,
    [_bucket(text, samples, 33024, 256) for text, samples in ((48, 44032), (72, 66048), (96, 88064), (124, 112640))],
)

MYXTTS_PICO = _bundle(
    "myxtts-pico", "myxtts-nano in miniature, for tests", PICO,
    {**FEATURES, "n_fft": 512, "win_length": 512, "n_mels": 20, "normalization": {"mean": -6.4, "std": 2.8}},
    [_bucket(text, samples, 8192, 256) for text, samples in ((16, 11008), (32, 22016), (48, 44032))],
)

FOLDERS = {
    REPOSITORY / "ortgraphs/builtin/myxtts-nano": MYXTTS_NANO,
    REPOSITORY / "ortgraphs/testdata/pico": MYXTTS_PICO,
}
