"""Text to waveform in one model: VITS (arXiv:2106.06103), which is trained as a GAN.

A posterior encoder draws latent frames from the spectrogram. An invertible flow maps them to the distribution that the text predicts, and
monotonic alignment search gives frames to tokens. The generator of HiFi-GAN makes the waveform of a random segment of the latent frames. The
losses and their weights are those of the paper. The duration predictor is the deterministic one of its ablations.

    xtts-export module scripts/examples/vits.py:build --out runs/vits
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fast_speech
import gan_vocoder
import vocoder
from common import FEATURES, HOP, LOGMEL, MELS, bucket, inside, mean
from xtts_export import Export, Player, monotonic_path, sequence, tokenizer
from gan_vocoder import Discriminator, fooled, heard, judged, weighed

# Half of the paper's rate, which is for batches of 64 rows. With 4 rows it is too large for the logarithms of quiet bands: the norm of the
# gradient is several times as large in one step as in the next, and training amplifies rounding to percents of the loss.
ADAMW = {**gan_vocoder.ADAMW, "lr": 1e-4}


@dataclass(frozen=True)
class Sizes:
    text: fast_speech.Sizes
    decoder: vocoder.Sizes
    posterior: int  # layers
    flows: int
    segment: int  # frames that become a waveform
    critics: dict


SMALL = Sizes(fast_speech.SMALL, replace(vocoder.SMALL, width=16), posterior=3, flows=2, segment=32,
              critics={"width": 8, "periods": (2, 8), "scales": (2,), "layers": 3})
LARGE = Sizes(fast_speech.Sizes(width=192, heads=2, layers=6, kernel=3, text=(128,), frames=(768,)), vocoder.LARGE, posterior=16, flows=4, segment=32,
              critics={"width": 32, "periods": (2, 4, 8, 16, 32), "scales": (1, 2, 4), "layers": 5})


class Gated(nn.Module):
    """Dilated convolutions with gates (WaveNet, arXiv:1609.03499) over x[B, C, T], where frames[B, 1, T] is 1."""

    def __init__(self, channels: int, width: int, layers: int, results: int):
        super().__init__()
        self.enter, self.leave = nn.Conv1d(channels, width, 1), nn.Conv1d(width, results, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, 2 * width, 5, padding=2 * (1 << i % 4), dilation=1 << i % 4) for i in range(layers))

    def forward(self, x: Tensor, frames: Tensor) -> Tensor:
        y = self.enter(x) * frames
        for layer in self.layers:
            a, b = layer(y).chunk(2, 1)
            y = (y + torch.tanh(a) * torch.sigmoid(b)) * frames
        return self.leave(y) * frames


class Vits(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        width, self.segment = s.text.width, s.segment
        self.embedding, self.stats = nn.Embedding(len(tokenizer.VOCABULARY), width), nn.Linear(width, 2 * MELS)
        self.encoder = nn.ModuleList(fast_speech.Block(s.text) for _ in range(s.text.layers))
        self.duration = fast_speech.Predictor(width, 1)
        self.posterior = Gated(MELS, width, s.posterior, 2 * MELS)
        self.flows = nn.ModuleList(Gated(MELS // 2, width, 4, MELS // 2) for _ in range(s.flows))
        for p in (p for flow in self.flows for p in flow.leave.parameters()):
            nn.init.zeros_(p)  # the flow begins as the identity
        self.decoder = vocoder.Vocoder(s.decoder)
        self.discriminator = Discriminator(**s.critics)

    def forward(self, text_sequences, text_lengths, mel_spectrograms, mel_lengths, waveform):
        tokens, seen = inside(text_lengths, text_sequences.shape[1]), inside(mel_lengths, mel_spectrograms.shape[1])
        frames = seen[:, None, :].float()
        x = self.embedding(text_sequences) * tokens[:, :, None]
        x = x + fast_speech.sinusoids(x)
        for block in self.encoder:
            x = block(x, tokens)
        text_means, text_scales = self.stats(x).chunk(2, -1)
        means, scales = self.posterior(mel_spectrograms.transpose(1, 2), frames).chunk(2, 1)
        latent = (means + torch.randn_like(means) * scales.exp()) * frames
        moved = latent
        for flow in self.flows:
            kept, changed = moved.chunk(2, 1)
            moved = torch.cat([changed + flow(kept, frames), kept], 1)
        path = monotonic_path(likelihood(text_means, text_scales, moved), text_lengths, mel_lengths)
        text_means, text_scales = ((path.transpose(1, 2) @ y).transpose(1, 2) for y in (text_means, text_scales))
        # Of the posterior from the prior, at the sample; a coupling that only adds has the determinant 1.
        divergence = text_scales - scales - 0.5 + 0.5 * (moved - text_means).square() * (-2 * text_scales).exp()
        start = (torch.rand(latent.shape[0]) * (mel_lengths - self.segment).clamp(min=1)).long()
        chosen = pieces(latent.transpose(1, 2), start, self.segment + 1)  # the decoder drops the last frame, whose centre is the end
        return {"fake": self.decoder(chosen), "real": pieces(waveform[:, :, None], start * HOP, self.segment * HOP).squeeze(2),
                "kl_loss": mean(divergence.sum(1), seen.float()),
                "duration_loss": mean((self.duration(x.detach()).squeeze(-1) - (path.sum(2) + 1).log()).square(), tokens.float())}


def likelihood(means: Tensor, scales: Tensor, moved: Tensor) -> Tensor:
    """f32[B, T_text, T_mel]: the logarithm of how likely a frame of moved[B, C, T_mel] is by a token's normal distribution."""
    weight = (-2 * scales).exp()
    constant = (-scales - 0.5 * means.square() * weight).sum(-1, keepdim=True)
    return constant + (means * weight) @ moved - 0.5 * weight @ moved.square()


def pieces(x: Tensor, start: Tensor, size: int) -> Tensor:
    """[B, size, C] of x[B, T, C], from each row's start."""
    places = (start[:, None] + torch.arange(size)).clamp(max=x.shape[1] - 1)
    return x.gather(1, places[:, :, None].expand(-1, -1, x.shape[2]))


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    model = Vits(sizes)

    def means(batch, terms):
        """The terms of each row as means over the rows that are not empty."""
        rows = (batch["mel_lengths"] > 0).float()
        return {"loss_weight": rows.sum().clamp(max=1), **{name: mean(x, rows) for name, x in terms.items()}}

    def judge(outputs, batch):
        return means(batch, judged(*(model.discriminator(x, sizes.segment) for x in (outputs["real"], outputs["fake"].detach()))))

    def make(outputs, batch):
        real, fake = outputs["real"], outputs["fake"]
        terms = means(batch, fooled(*(model.discriminator(x, sizes.segment) for x in (real, fake))) | {"mel_loss": heard(fake, real, sizes.segment)})
        weight = terms.pop("loss_weight")
        terms |= {name: outputs[name] for name in ("kl_loss", "duration_loss")}
        return {"loss": weighed(terms), "loss_weight": weight, **terms}

    return Export(
        name="vits", module=model, description="text to waveform, with discriminators of periods and scales", accumulation="mean",
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=len(tokenizer.VOCABULARY)),
                *sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
        players={"discriminator": Player("discriminator", judge, ADAMW), "generator": Player("*", make, ADAMW)},
        schedule={"name": "exponential", "warmup_steps": 0},
        buckets=[bucket(n, text) for n, text in zip(sizes.text.frames, sizes.text.text, strict=True)],
        features=FEATURES, pipeline=[LOGMEL], tokenizer=tokenizer.build())


def large() -> Export:
    return build(LARGE)
