"""MyXTTS: a small autoregressive mel model with a text and a speaker encoder.

Sizes aside, `nano` (the embedded default bundle) and `pico` (the bundle of the tests) are the same model. It is written for
export: every size is symbolic, masks are arithmetic on lengths, positions are computed, no operator draws random numbers.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .dropout import Dropout


@dataclass(frozen=True)
class Sizes:
    vocab: int
    n_mels: int = 80
    width: int = 96
    heads: int = 2
    feed_forward: int = 192
    text_layers: int = 1
    decoder_layers: int = 2
    prenet_dropout: float = 0.1
    # Mel frames per text token at usual speaking rate. Text positions are counted in frames, so that cross-attention starts
    # out near the diagonal (the position rate of Deep Voice 3, arXiv:1710.07654, section 3.4).
    frames_per_token: float = 5.5
    # Heads of pitch and energy.
    prosody: bool = False


# Mel Huber, stop cross-entropy, pitch and energy Huber, with the weights of MyXTTS.
MEL_WEIGHT = 2.5
PITCH_WEIGHT = ENERGY_WEIGHT = 0.12
STOP_WEIGHT = 1.0
STOP_POSITIVE_WEIGHT = 5.0
STOP_SMOOTHING = 0.1
# What the prosody heads predict is about standard: ln(F0 / 200 Hz), and the logarithm of the loudness about its middle.
PITCH_MIDDLE = math.log(200.0)
ENERGY_MIDDLE, ENERGY_SCALE = -4.0, 2.0

_MASKED = 1e9


def valid(lengths: Tensor, size: int) -> Tensor:
    """bool[B, size]: the positions before each row's length."""
    return torch.arange(size, device=lengths.device)[None, :] < lengths[:, None]


def sinusoids(size: int, width: int, rate: float, like: Tensor) -> Tensor:
    """f32[size, width] positions, computed so that no table bounds the length."""
    return waves(torch.arange(size, device=like.device).to(like.dtype)[:, None] * rate, width)


def waves(at: Tensor, width: int) -> Tensor:
    """f32[..., width] of positions f32[..., 1]."""
    frequency = torch.exp(torch.arange(width // 2, device=at.device).to(at.dtype) * (-math.log(10000.0) / (width // 2)))
    angle = at * frequency[None, :]
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x), smooth so that rounding cannot switch a unit off, as with ReLU. F.silu's backward formula has no ONNX form."""
    return x * torch.sigmoid(x)


class Attention(nn.Module):
    """Multi-head attention without biases: a bias of the keys has no gradient, and one of the values or the output repeats."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        return self.mix(self.queries(x), *self.keys_values(memory), mask)

    def queries(self, x: Tensor) -> Tensor:
        return self._split(self.query(x))

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self._split(self.key(memory)), self._split(self.value(memory))

    def mix(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | float) -> Tensor:
        """Where the queries look, of f32[B, heads, T, half] each."""
        batch, heads, time, half = queries.shape
        scores = torch.matmul(queries * (1 / math.sqrt(half)), keys.transpose(-1, -2)) + mask
        y = torch.matmul(torch.softmax(scores, dim=-1), values)
        return self.out(y.transpose(1, 2).reshape(batch, time, heads * half))

    def _split(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        return x.view(batch, time, self.heads, width // self.heads).transpose(1, 2)


class Block(nn.Module):
    """Pre-norm transformer block, with cross-attention when it has a memory."""

    def __init__(self, sizes: Sizes, cross: bool):
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.width)
        self.attention = Attention(sizes.width, sizes.heads)
        if cross:
            self.cross_norm = nn.LayerNorm(sizes.width)
            self.cross = Attention(sizes.width, sizes.heads)
        self.feed_norm = nn.LayerNorm(sizes.width)
        self.feed_in = nn.Linear(sizes.width, sizes.feed_forward)
        self.feed_out = nn.Linear(sizes.feed_forward, sizes.width, bias=False)

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.attention(y, y, mask)
        if memory is not None:
            x = x + self.cross(self.cross_norm(x), memory, memory_mask)
        return x + self.feed(x)

    def feed(self, x: Tensor) -> Tensor:
        return self.feed_out(silu(self.feed_in(self.feed_norm(x))))


class TextEncoder(nn.Module):
    """text_sequences -> memory[B, T_text, width], and its additive mask."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.rate = sizes.frames_per_token
        self.embedding = nn.Embedding(sizes.vocab, sizes.width)
        nn.init.normal_(self.embedding.weight, std=1.0)
        self.blocks = nn.ModuleList(Block(sizes, cross=False) for _ in range(sizes.text_layers))
        self.norm = nn.LayerNorm(sizes.width)

    def add_tokens(self, n: int) -> None:
        """Adds rows to the table, which change no other weight."""
        weight = self.embedding.weight.detach()
        self.embedding = nn.Embedding.from_pretrained(torch.cat([weight, torch.randn(n, weight.shape[1])]), freeze=False)

    def forward(self, text: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        weight = self.embedding.weight
        inside = valid(lengths, text.shape[1]).to(weight.dtype)
        # One-hot times table: its gradient is a matrix product, where a gather's is a scatter in no fixed order.
        vocabulary = torch.arange(weight.shape[0], device=text.device, dtype=text.dtype)
        one_hot = (text[:, :, None] == vocabulary).to(weight.dtype) * inside[:, :, None]
        position = sinusoids(text.shape[1], weight.shape[1], self.rate, weight)
        x = torch.matmul(one_hot, weight) + position
        mask = ((inside - 1) * _MASKED)[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask)
        # The position once more, so that the decoder can look for it.
        return self.norm(x) + position, mask


class SpeakerEncoder(nn.Module):
    """reference_mel_spectrograms -> speaker[B, width]; zero for an empty reference."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.frame_in = nn.Linear(sizes.n_mels, sizes.width)
        self.frame_out = nn.Linear(sizes.width, sizes.width)
        self.out = nn.Linear(sizes.width, sizes.width, bias=False)

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        weight = valid(lengths, mel.shape[1])[:, :, None].to(mel.dtype)
        frames = silu(self.frame_out(silu(self.frame_in(mel)))) * weight
        return self.out(frames.sum(1) / weight.sum(1).clamp(min=1.0))


class Decoder(nn.Module):
    """Predicts frame t from the frames before it, the text and the speaker."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.prenet_in = nn.Linear(sizes.n_mels, 2 * sizes.width)
        self.prenet_out = nn.Linear(2 * sizes.width, sizes.width)
        self.dropout = Dropout(sizes.prenet_dropout, site=0)
        self.blocks = nn.ModuleList(Block(sizes, cross=True) for _ in range(sizes.decoder_layers))
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, mel: Tensor, speaker: Tensor, memory: Tensor, memory_mask: Tensor, seed: Tensor | None) -> Tensor:
        frames = mel.shape[1]
        # Not F.pad: tracing it bakes in the example's sizes.
        previous = torch.cat([torch.zeros_like(mel[:, :1]), mel[:, :-1]], dim=1)
        x = self.prenet(previous, seed)
        x = x + sinusoids(frames, x.shape[2], 1.0, x) + speaker[:, None, :]
        at = torch.arange(frames, device=mel.device)
        # The causal mask covers the padding too, which comes after every valid frame.
        mask = ((at[None, :] <= at[:, None]).to(x.dtype) - 1) * _MASKED
        for block in self.blocks:
            x = block(x, mask, memory, memory_mask)
        return self.norm(x)

    def prenet(self, previous: Tensor, seed: Tensor | None) -> Tensor:
        x = silu(self.prenet_in(previous))
        if seed is not None:
            x = self.dropout(x, seed)
        return self.prenet_out(x)


class MyXTTS(nn.Module):
    """The model of teacher forcing: each frame is predicted from those before it.

    forward takes text_sequences i32[B, T_text], text_lengths i32[B], mel_spectrograms f32[B, T_mel, n_mels],
    reference_mel_spectrograms f32[B, T_ref_mel, n_mels], reference_mel_lengths i32[B] and seed i64[] (None: no dropout). It returns the
    predicted mels f32[B, T_mel, n_mels], the logits of the last frame f32[B, T_mel] and, of sizes with prosody, pitch and energy, both
    f32[B, T_mel], as prosody_losses has them.
    """

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.text_encoder = TextEncoder(sizes)
        self.speaker_encoder = SpeakerEncoder(sizes)
        self.decoder = Decoder(sizes)
        self.mel_head = nn.Linear(sizes.width, sizes.n_mels)
        self.stop_head = nn.Linear(sizes.width, 1)
        if sizes.prosody:
            self.pitch_head, self.energy_head = nn.Linear(sizes.width, 1), nn.Linear(sizes.width, 1)
        self.prosody = sizes.prosody

    def forward(self, text_sequences, text_lengths, mel_spectrograms, reference_mel_spectrograms, reference_mel_lengths, seed=None):
        memory, memory_mask = self.text_encoder(text_sequences, text_lengths)
        speaker = self.speaker_encoder(reference_mel_spectrograms, reference_mel_lengths)
        state = self.decoder(mel_spectrograms, speaker, memory, memory_mask, seed)
        heads = (self.stop_head, self.pitch_head, self.energy_head) if self.prosody else (self.stop_head,)
        return self.mel_head(state), *(head(state).squeeze(-1) for head in heads)

    # The parts of forward from which speaking.py makes one frame after the other.

    @property
    def frame_blocks(self) -> nn.ModuleList:
        return self.decoder.blocks

    def voice(self, mel: Tensor, lengths: Tensor) -> Tensor:
        return self.speaker_encoder(mel, lengths)

    def read(self, text: Tensor, lengths: Tensor, voice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The memory of a text, its additive mask, and what the voice adds to each frame that the decoder takes."""
        return *self.text_encoder(text, lengths), voice[:, None, :]

    def enter(self, previous: Tensor, position: Tensor) -> Tensor:
        """The frames before those at position i32[B], f32[B, 1, n_mels], as the decoder takes them."""
        x = self.decoder.prenet(previous, None)
        return x + waves(position.to(x.dtype)[:, None, None], x.shape[2])

    def leave(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Frames, and the logits of the last one."""
        state = self.decoder.norm(x)
        return self.mel_head(state), self.stop_head(state).squeeze(-1)


def loss(outputs: tuple[Tensor, ...], batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The loss of MyXTTS in any size: means over the valid frames."""
    prediction, logits, *prosody = outputs
    mel, lengths = batch["mel_spectrograms"], batch["mel_lengths"]
    weight = valid(lengths, mel.shape[1]).to(mel.dtype)
    count = weight.sum()
    total = count.clamp(min=1.0)
    mel_loss = (huber(prediction, mel).mean(-1) * weight).sum() / total
    last = (torch.arange(mel.shape[1], device=mel.device)[None, :] == lengths[:, None] - 1).to(mel.dtype)
    stop_loss = (stop_cross_entropy(logits, last) * weight).sum() / total
    losses = {"loss": MEL_WEIGHT * mel_loss + STOP_WEIGHT * stop_loss, "loss_weight": count, "mel_loss": mel_loss, "stop_loss": stop_loss}
    if prosody:
        losses["pitch_loss"], losses["energy_loss"] = prosody_losses(*prosody, batch, weight / total)
        losses["loss"] = losses["loss"] + PITCH_WEIGHT * losses["pitch_loss"] + ENERGY_WEIGHT * losses["energy_loss"]
    return losses


def prosody_losses(pitch: Tensor, energy: Tensor, batch: dict[str, Tensor], share: Tensor) -> tuple[Tensor, Tensor]:
    """Of pitch, ln(F0 / 200 Hz), in voiced frames, and of energy, (ln(RMS) + 4) / 2. share f32[B, T_mel] is each frame's in the whole.

    Pitch is divided by all valid frames as well, not by the voiced ones: with one denominator, losses of micro-batches add up
    exactly, and a batch with few voiced frames does not weigh them more.
    """
    voiced = (batch["pitch"] > 0).to(share.dtype)
    pitch_loss = (huber(pitch, batch["pitch"] - PITCH_MIDDLE) * voiced * share).sum()
    energy_loss = (huber(energy, (batch["energy"] - ENERGY_MIDDLE) / ENERGY_SCALE) * share).sum()
    return pitch_loss, energy_loss


def huber(prediction: Tensor, target: Tensor) -> Tensor:
    """Huber loss with delta 1, element by element."""
    error = prediction - target
    near = error.clamp(-1.0, 1.0)
    return near * (error - 0.5 * near)


def stop_cross_entropy(logits: Tensor, last: Tensor) -> Tensor:
    """Binary cross-entropy with a weight for the one positive frame of a clip and with label smoothing."""
    target = last * (1 - STOP_SMOOTHING) + 0.5 * STOP_SMOOTHING
    softplus = torch.clamp(-logits, min=0.0) + torch.log(1 + torch.exp(-logits.abs()))
    return (1 - target) * logits + (1 + (STOP_POSITIVE_WEIGHT - 1) * target) * softplus

