"""XTTS v2 as an Export."""

from pathlib import Path

import torch

from .. import tokenizer, voicebpe
from ..inputs import sequence, window
from ..module import Export
from ..refusal import Refusal
from . import decode, extend, frozen, mels, settings, speaking, weights
from .conditioning import MELS
from .model import CODES_MORE, TEXT_MORE, XTTS

# Of coqui's trainer: the longest clip, 11.6 seconds, the longest text, and the six seconds of its conditioning clips.
_TEXT, _SAMPLES, _REFERENCE = 200, 255995, 6 * mels.RATE
# Rows that stay in a position table: PyTorch traces a slice that leaves one row, or none, in another way.
_SPARE = 2
# The spectrogram of coqui's DVAE, without its division of each band.
FEATURES = {
    "sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "reflect",
    "power": 2, "n_mels": MELS, "mel_scale": "htk", "mel_norm": "slaney", "f_min": 0, "f_max": 8000, "log": "ln", "log_floor": 1e-5,
}
# Those of coqui's recipe for fine-tuning. It decays no embeddings, no norms and no biases.
OPTIMIZER = {
    "name": "adamw", "lr": 5e-6, "betas": [0.9, 0.96], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 0.0,
    "groups": [{"match": ["gpt.*_embedding"], "weight_decay": 0}],
}


def build(checkpoint: Path | None = None, vocabulary: Path | None = None, config: Path | None = None, dvae: Path | None = None,
          norms: Path | None = None, more: Path | None = None) -> Export:
    """With the weights of the checkpoint, or random ones. The vocabulary gets tokens for the texts of the list more. Raises Refusal."""
    if more is not None and vocabulary is None:
        raise Refusal("--extend-tokenizer without --vocab", "name the vocab.json that is to be extended")
    if checkpoint is not None and vocabulary is None:
        raise Refusal("--checkpoint without --vocab", "the ids of a text follow from the vocab.json of the checkpoint")
    if checkpoint is not None and dvae is None:
        raise Refusal("--checkpoint without --dvae", "the codes of a clip follow from the dvae.pth of the checkpoint")
    words = None if vocabulary is None else settings.text_of(vocabulary)
    if more is not None:
        words, new = extend.extend(words, extend.read(more))
        print(f"{more}: {len(new)} new tokens: {' '.join(new)}")
    sizes = settings.read(config, vocabulary, words)
    synthesis = speaking.numbers(sizes, config)
    model = {} if checkpoint is None else weights.read(checkpoint)
    sizes = weights.fit(sizes, model)
    torch.manual_seed(0)
    module = XTTS(sizes)
    if checkpoint is not None:
        for line in weights.load(module, model, checkpoint):
            print(line)
    parts, left = frozen.build(model, sizes, dvae, norms)
    for line in left:
        print(f"{checkpoint}: {line}")
    spoken = any(part.kind == "vocoder" for part in parts)
    text = {"tokenizer": tokenizer.build()} if words is None else {
        "tokenizer": voicebpe.convert(words), "tokenizer_prefix": voicebpe.PREFIX, "files": {"vocab.json": words}}
    limits = {"T_text": sizes.text_positions - TEXT_MORE - _SPARE, "T_code": sizes.audio_positions - CODES_MORE - _SPARE}
    codes = min(-(-_SAMPLES // frozen.STRIDE), limits["T_code"])
    dynamic = {"T_text": limits["T_text"], "T_wav": limits["T_code"] * frozen.STRIDE}
    bucket = {"T_text": min(_TEXT, limits["T_text"]), "T_wav": min(_SAMPLES, codes * frozen.STRIDE), "T_code": codes,
              "T_ref": _REFERENCE, "T_cond": 1 + _REFERENCE // mels.HOP}
    return Export(
        name="xtts-v2", description="the GPT of XTTS v2: text, audio codes and a conditioning spectrogram to the next code",
        license="LicenseRef-CPML" if checkpoint else "Apache-2.0", module=module,
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=sizes.text_tokens, pad=sizes.stop_text),
                *sequence("audio_codes", "i32", "T_code", lengths="code_lengths", below=sizes.audio_tokens - 2, pad=sizes.stop_audio,
                          origin="stage"),
                *sequence("conditioning_mel", "f32", "T_cond", MELS, lengths="conditioning_lengths", origin="stage"),
                window("text_count", "text_lengths", TEXT_MORE), window("code_count", "code_lengths", CODES_MORE)],
        buckets=[bucket], dynamic=dynamic, strides={"T_code": frozen.STRIDE}, features=FEATURES, pipeline=frozen.PIPELINE, optimizer=dict(OPTIMIZER),
        schedule={"name": "constant"}, accumulation="weighted",
        inference=[*parts, *(decode.entries(module) if spoken else [])], synthesis=synthesis if spoken else None, **text)
