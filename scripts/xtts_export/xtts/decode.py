"""What speaks with the GPT of XTTS v2, one code at a time: three modules that share its parameters.

Conditioning makes the voice of a clip. Prefill reads the voice, the text and the start code, and Step one further code. Both return the
logits of the next code, the latent that the decoder to waveforms takes, and a cache: which places may be attended to, and the keys and
values of each block. The cache that Step takes is the one that the run before it returned.

As in coqui's inference, the stop token of the text is attended to. In training it is not.
"""

import torch
from torch import Tensor, nn

from ..inference import Inference
from ..inputs import Input
from .conditioning import LATENTS, MELS, masked
from .gpt2 import Past
from .model import XTTS, between, inside

# What a text has beside its tokens: a start and a stop token.
TEXT_MORE = 2
# Of a text to trace with.
_TOKENS = 7


class Conditioning(nn.Module):
    """Of spectrograms; returns the voice f32[B, LATENTS, width]."""

    def __init__(self, model: XTTS):
        super().__init__()
        self.gpt = model.gpt

    def forward(self, mel: Tensor, lengths: Tensor) -> tuple[Tensor]:
        return (self.gpt.voice(mel, inside(lengths, mel.shape[1])),)


class Prefill(nn.Module):
    """Texts are padded with their stop tokens."""

    def __init__(self, model: XTTS):
        super().__init__()
        self.gpt, self.sizes = model.gpt, model.sizes

    def forward(self, voice: Tensor, text: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        s = self.sizes
        text = between(text, s.start_text, s.stop_text, 1)
        start = torch.full_like(text[:, :1], s.start_audio)
        first = torch.ones_like(voice[:, :, 0])
        places = torch.cat([first, inside(lengths + TEXT_MORE, text.shape[1]), first[:, :1]], 1)
        y, past = self.gpt.hidden(voice, text, start, places)
        return _returned(self.gpt, y[:, -1], places, past)


class Step(nn.Module):
    """code is the last one that was chosen, and position its place among all codes: the first one that was chosen is at 1, after the start code."""

    def __init__(self, model: XTTS):
        super().__init__()
        self.gpt = model.gpt

    def forward(self, code: Tensor, position: Tensor, places: Tensor, *cache: Tensor) -> tuple[Tensor, ...]:
        x = self.gpt.mel_embedding(code) + self.gpt.mel_pos_embedding.emb(position)
        places = torch.cat([places, torch.ones_like(places[:, :1])], 1)
        y, past = self.gpt.gpt(x[:, None], masked(places[:, None, None, :]), list(zip(cache[::2], cache[1::2], strict=True)))
        return _returned(self.gpt, self.gpt.final_norm(y)[:, 0], places, past)


def _returned(gpt: nn.Module, latent: Tensor, places: Tensor, past: list[Past]) -> tuple[Tensor, ...]:
    return gpt.mel_head(latent), latent, places, *(x for pair in past for x in pair)


def entries(model: XTTS) -> list[Inference]:
    """The three as inference graphs of a bundle with the parameters of model."""
    s = model.sizes
    half, parts = s.width // s.heads, [f"{part}_{i}" for i in range(s.layers) for part in ("keys", "values")]
    number, voice = lambda name, below: Input(name, "i32", ("B",), below=below), Input("voice", "f32", ("B", LATENTS, s.width))
    cache = lambda size, before="": [Input(f"{before}places", "f32", ("B", size)), *(Input(before + name, "f32", ("B", s.heads, size, half)) for name in parts)]
    made = lambda size: [Input("logits", "f32", ("B", s.audio_tokens)), Input("latent", "f32", ("B", s.width)), *cache(size)]
    return [
        Inference("conditioning", "decode", Conditioning(model),
                  [Input("conditioning_mel", "f32", ("B", "T_cond", MELS), lengths="conditioning_lengths"), Input("conditioning_lengths", "i32", ("B",))],
                  [voice], {"B": 3, "T_cond": 11}),
        # Rows of a batch have caches of one length, so the tokens are not declared to be padded.
        Inference("prefill", "decode", Prefill(model), [voice, Input("tokens", "i32", ("B", "T_text"), below=s.text_tokens), number("token_lengths", _TOKENS + 1)],
                  made("T_next"), {"B": 3, "T_text": _TOKENS}),
        Inference("step", "decode", Step(model), [number("code", s.audio_tokens), number("position", s.audio_positions), *cache("T_past", "past_")],
                  made("T_next"), {"B": 3, "T_past": 11}, feeds={i.name: f"past_{i.name}" for i in cache("T_next")}),
    ]
