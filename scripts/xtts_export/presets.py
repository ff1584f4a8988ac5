"""MyXTTS in its sizes, for `xtts-export myxtts --preset NAME`, each as an Export.

`nano` is the embedded default bundle, and `pico` the same model, small enough for unit tests (model.py). `base` is the size that the
host is measured with; widths and depths of `tiny`, `small`, `normal` and `big` are those of MyXTTSModel's presets of these names, at
commit 7e78353 (large.py; docs/export.md compares the counts of parameters).
"""

from dataclasses import replace

import torch

from . import large, model, speaking, tokenizer
from .inputs import Input, sequence
from .module import Export

# Of the longest clip, 12 seconds.
HOPS = 1034
# Some more than the longest clip has frames: PyTorch traces a slice that leaves one row of the table, or none, in another way.
POSITIONS = HOPS + 6
SIZES = {
    "tiny": large.Sizes((256, 4), (256, 4), (768, 8)),
    "small": large.Sizes((384, 6), (512, 6), (1024, 12)),
    "normal": large.Sizes((512, 8), (768, 8), (1536, 16)),
    "big": large.Sizes((768, 10), (1024, 10), (2048, 20)),
    "base": large.Sizes((512, 6), (512, 4), (512, 8), vocab=len(tokenizer.VOCABULARY), positions=POSITIONS, prosody=False),
}
NAMES = ("nano", *SIZES)
NANO = model.Sizes(vocab=len(tokenizer.VOCABULARY), prosody=True)
# The tests of unknown characters need a vocabulary without bytes.
PICO = model.Sizes(vocab=len(tokenizer.ENGLISH), n_mels=20, width=16, feed_forward=32, decoder_layers=1)

# NumPy features of MyXTTS; mean and std make the mels of synthetic English speech roughly standard.
FEATURES = {
    "sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "constant",
    "power": 1, "n_mels": 80, "mel_scale": "slaney", "mel_norm": "slaney", "f_min": 0, "f_max": 11025, "log": "ln", "log_floor": 1e-5,
    "normalization": {"mean": -5.6, "std": 2.8},
}


def logmel(name: str, waveform: str, lengths: str, mel: str, mel_lengths: str) -> dict:
    """A pipeline instance that makes mel from waveform."""
    return {"name": name, "stage": "logmel",
            "inputs": {"waveform": waveform, "waveform_lengths": lengths},
            "outputs": {"mel_spectrograms": mel, "mel_lengths": mel_lengths}}


TARGET = logmel("target", "waveform", "waveform_lengths", "mel_spectrograms", "mel_lengths")
REFERENCE = logmel("reference", "reference_waveform", "reference_lengths", "reference_mel_spectrograms", "reference_mel_lengths")
PROSODY = {"name": "prosody", "stage": "prosody", "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
           "outputs": {"pitch": "pitch", "energy": "energy", "prosody_lengths": "prosody_lengths"}}
ADAMW = {"name": "adamw", "lr": 0.003, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0}
# Text lengths leave room for 24 characters a second; English speech has about 16.
LENGTHS = ((48, 44032), (72, 66048), (96, 88064), (124, 112640))
# 12 seconds of speech are about 170 letters. 512 tokens are enough also for scripts of three bytes a letter.
DYNAMIC = {"T_text": 512, "T_wav": HOPS * FEATURES["hop_length"]}


def build(name: str) -> Export:
    """The preset of NAMES, with weights from a fixed seed."""
    torch.manual_seed(0)
    if name == "nano":
        # Letters of other scripts are drawn after all other weights, so that English text trains as it did without them.
        module = model.MyXTTS(replace(NANO, vocab=len(tokenizer.ENGLISH)))
        module.text_encoder.add_tokens(NANO.vocab - len(tokenizer.ENGLISH))
        return _small("myxtts-nano", "text encoder, speaker encoder, autoregressive mel decoder", module, NANO, FEATURES, LENGTHS, 33024,
                      tokenizer=tokenizer.build(), dynamic=DYNAMIC, **_speaking(module, NANO, 33024))
    module = large.MyXTTS(SIZES[name])
    return Export(
        name=f"myxtts-{name}", description="text encoder, mel encoder, autoregressive mel decoder", module=module,
        inputs=_inputs(SIZES[name]), buckets=[_bucket(*lengths) for lengths in LENGTHS], dynamic=DYNAMIC, features=FEATURES,
        tokenizer=tokenizer.build(), pipeline=_pipeline(SIZES[name], TARGET), optimizer={**ADAMW, "lr": 8e-5, "grad_clip": 0.5},
        schedule={"name": "cosine", "warmup_steps": 1500}, **_COMMON, **_speaking(module, SIZES[name], DYNAMIC["T_wav"]))


def pico() -> Export:
    """nano in miniature, with weights from a fixed seed."""
    torch.manual_seed(0)
    features = {**FEATURES, "n_fft": 512, "win_length": 512, "n_mels": 20, "normalization": {"mean": -6.4, "std": 2.8}}
    return _small("myxtts-pico", "myxtts-nano in miniature, for tests", model.MyXTTS(PICO), PICO, features,
                  ((16, 11008), (32, 22016), (48, 44032)), 8192, tokenizer=tokenizer.build(tokenizer.ENGLISH))


def _small(name: str, description: str, module: model.MyXTTS, sizes: model.Sizes, features: dict, lengths: tuple, reference: int,
           **rest) -> Export:
    return Export(
        name=name, description=description, module=module,
        inputs=[*_inputs(sizes),
                *sequence("reference_mel_spectrograms", "f32", "T_ref_mel", sizes.n_mels, lengths="reference_mel_lengths", origin="stage")],
        buckets=[{**_bucket(*n), "T_ref": reference, "T_ref_mel": _frames(reference)} for n in lengths], features=features,
        pipeline=_pipeline(sizes, TARGET, REFERENCE), optimizer=ADAMW, schedule={"name": "cosine", "warmup_steps": 20}, **_COMMON, **rest)


def _speaking(module: speaking.Model, sizes: model.Sizes | large.Sizes, reference: int) -> dict:
    """What makes a bundle speak, with voices of parts of so many samples."""
    longest = _frames(DYNAMIC["T_wav"])
    return {"inference": speaking.entries(module, sizes.n_mels, sizes.vocab, longest),
            "synthesis": speaking.numbers(longest, round(reference / FEATURES["sample_rate"], 1))}


def _inputs(sizes: model.Sizes | large.Sizes) -> list[Input]:
    text = sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=sizes.vocab)
    mel = sequence("mel_spectrograms", "f32", "T_mel", sizes.n_mels, lengths="mel_lengths", origin="stage")
    prosody = [Input(name, "f32", ("B", "T_mel"), lengths="mel_lengths", origin="stage") for name in ("pitch", "energy") if sizes.prosody]
    return [*text, *mel, *prosody]


def _pipeline(sizes: model.Sizes | large.Sizes, *mels: dict) -> list[dict]:
    return [*mels, *([PROSODY] if sizes.prosody else [])]


def _bucket(text: int, samples: int) -> dict[str, int]:
    return {"T_text": text, "T_wav": samples, "T_mel": _frames(samples)}


def _frames(samples: int) -> int:
    """Centred features have one frame more than whole hops."""
    return 1 + samples // FEATURES["hop_length"]


_COMMON = {
    "loss": model.loss, "accumulation": "exact",
    "baselines": [{"metric": "mel_loss", "target": "mel_spectrograms", "loss": "huber", "delta": 1.0}],
}
