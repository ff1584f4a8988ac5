"""What speaks with MyXTTS, one frame at a time (docs/synthesize.md, graphs of frames): three modules that share its parameters.

Conditioning makes the voice of a clip. Prefill reads the text and predicts the first frame, and Step one further frame of the one before it.
What Step takes of Prefill alone, the text's keys and values among it, stays what it is; the keys and values of the frames grow.
"""

import torch
from torch import Tensor, nn

from . import large, model
from .inference import Inference
from .inputs import Input

# A frame is the last one if the sigmoid of its logit is above this. Of the loss, with its weight and its smoothing (model.py), this is a
# frame that is the last one with a probability above 0.13.
STOP = 0.5
# Fast Griffin-Lim.
ITERATIONS, MOMENTUM = 60, 0.99
# In seconds: what is heard of the clips of a voice, and the shortest part that makes one.
HEARD, LEAST = 12, 0.2
# Of a text and a clip to trace with.
_TOKENS, _FRAMES = 7, 11

Model = model.MyXTTS | large.MyXTTS
Pair = tuple[Tensor, Tensor]


class Conditioning(nn.Module):
    def __init__(self, of: Model):
        super().__init__()
        self.model = of

    def forward(self, mel: Tensor, lengths: Tensor) -> tuple[Tensor]:
        return (self.model.voice(mel, lengths),)


class Prefill(nn.Module):
    def __init__(self, of: Model, n_mels: int):
        super().__init__()
        self.model, self.n_mels = of, n_mels

    def forward(self, voice: Tensor, text: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        memory, mask, offset = self.model.read(text, lengths, voice)
        seen = [block.cross.keys_values(memory) for block in self.model.frame_blocks]
        silence = torch.zeros_like(mask[:, 0, :, :1]).expand(-1, -1, self.n_mels)
        made = _advance(self.model, silence, torch.zeros_like(lengths), offset, mask, seen, None)
        return *made, offset, mask, *(x for pair in seen for x in pair)


class Step(nn.Module):
    """position counts the frames of the text: that of Prefill is at 0."""

    def __init__(self, of: Model):
        super().__init__()
        self.model = of

    def forward(self, previous: Tensor, position: Tensor, *cache: Tensor) -> tuple[Tensor, ...]:
        grown = 2 * len(self.model.frame_blocks)
        past, (offset, mask), seen = cache[:grown], cache[grown:grown + 2], cache[grown + 2:]
        return _advance(self.model, previous, position, offset, mask, _pairs(seen), _pairs(past))


def _pairs(x: tuple[Tensor, ...]) -> list[Pair]:
    return list(zip(x[::2], x[1::2], strict=True))


def _advance(of: Model, previous: Tensor, position: Tensor, offset: Tensor, mask: Tensor, memory: list[Pair], past: list[Pair] | None) -> tuple[Tensor, ...]:
    """The next frame f32[B, 1, n_mels], its logit f32[B], and the keys and values of all frames up to it in each block."""
    x, cache = of.enter(previous, position) + offset, []
    for i, (block, seen) in enumerate(zip(of.frame_blocks, memory, strict=True)):
        y = block.attention_norm(x)
        pair = block.attention.keys_values(y)
        if past is not None:
            pair = tuple(torch.cat(both, 2) for both in zip(past[i], pair, strict=True))
        x = x + block.attention.mix(block.attention.queries(y), *pair, 0.0)
        x = x + block.cross.mix(block.cross.queries(block.cross_norm(x)), *seen, mask)
        x = x + block.feed(x)
        cache += pair
    frames, stop = of.leave(x)
    return frames, stop[:, 0], *cache


def entries(of: Model, n_mels: int, vocab: int, positions: int) -> list[Inference]:
    """The three as inference graphs of a bundle with the parameters of a model. positions bounds the frames of a text."""
    with torch.no_grad():
        example = of.voice(torch.zeros(1, _FRAMES, n_mels), torch.tensor([_FRAMES]))
        *_, offset = of.read(torch.zeros(1, _TOKENS, dtype=torch.int32), torch.tensor([_TOKENS]), example)
        heads, half = (of.frame_blocks[0].attention.queries(offset).shape[i] for i in (1, 3))
    rows = lambda name, *shape: Input(name, "f32", ("B", *shape))
    number = lambda name, below: Input(name, "i32", ("B",), below=below)
    pairs = lambda before, size: [rows(f"{before}{part}_{i}", heads, size, half) for i in range(len(of.frame_blocks)) for part in ("keys", "values")]
    voice, frames, stop = rows("voice", *example.shape[1:]), rows("frames", 1, n_mels), rows("stop")
    kept = [rows("offset", *offset.shape[1:]), rows("text_mask", 1, 1, "T_text"), *pairs("text_", "T_text")]
    grown = pairs("", "T_next")
    return [
        Inference("conditioning", "decode", Conditioning(of),
                  [Input("conditioning_mel", "f32", ("B", "T_cond", n_mels), lengths="conditioning_lengths"), Input("conditioning_lengths", "i32", ("B",))],
                  [voice], {"B": 3, "T_cond": _FRAMES}),
        # Rows of a batch have caches of one length, so the tokens are not declared to be padded.
        Inference("prefill", "decode", Prefill(of, n_mels), [voice, Input("tokens", "i32", ("B", "T_text"), below=vocab), number("token_lengths", _TOKENS + 1)],
                  [frames, stop, *pairs("", 1), *kept], {"B": 3, "T_text": _TOKENS}),
        Inference("step", "decode", Step(of), [rows("previous", 1, n_mels), number("position", positions), *pairs("past_", "T_past"), *kept],
                  [frames, stop, *grown], {"B": 3, "T_past": _FRAMES, "T_text": _TOKENS}, feeds={"frames": "previous"} | {i.name: f"past_{i.name}" for i in grown}),
    ]


def numbers(longest: int, chunk: float) -> dict:
    """`synthesis` of the bundle: texts of at most so many frames, and a voice of chunks of so many seconds."""
    return {"longest": longest, "reference": {"speaker": HEARD, "voice": HEARD, "chunk": chunk, "least": LEAST},
            "frames": {"stop": STOP, "griffin_lim": {"iterations": ITERATIONS, "momentum": MOMENTUM}}}
