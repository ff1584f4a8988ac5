"""A FastSpeech whose phonemes and durations come from the data set: nothing is aligned during training.

A line of the list has phonemes (a string of symbols), the speaker, and the file with the number of frames of each phoneme.
aligned_data.py makes such a list of the sample:

    .cache/venv-mine/bin/python scripts/examples/aligned_data.py host/data/dataset/sample/sample.zip runs/aligned-data
    .cache/venv-mine/bin/xtts-export module scripts/examples/aligned_speech.py:build --out runs/aligned-speech-bundle
    bin/xtts-host --plugins ./plugins --graph runs/aligned-speech-bundle --train-data runs/aligned-data --run-dir runs/aligned-speech
"""

import string

import torch
from torch import Tensor, nn

from common import FEATURES, HOP, LOGMEL, MELS, inside, mean
from xtts_export import Export, Input, sequence
from fast_speech import Block, Predictor, Sizes, sinusoids

PHONEMES = {symbol: i for i, symbol in enumerate([*string.ascii_lowercase, "sil"])}
SPEAKERS = {"A": 0, "B": 1}
LONGEST = 200  # frames of one phoneme
FRAMES, SYMBOLS = (160, 320, 512), 160

SMALL = Sizes(width=32, heads=2, layers=1, kernel=5, text=(), frames=FRAMES)


class AlignedSpeech(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.phoneme, self.speaker = nn.Embedding(len(PHONEMES), s.width), nn.Embedding(len(SPEAKERS), s.width)
        self.encoder, self.decoder = (nn.ModuleList(Block(s) for _ in range(s.layers)) for _ in range(2))
        self.duration, self.head = Predictor(s.width, 1), nn.Linear(s.width, MELS)

    def forward(self, phonemes, phoneme_lengths, durations, speaker, mel_spectrograms, mel_lengths):
        tokens, frames = inside(phoneme_lengths, phonemes.shape[1]), inside(mel_lengths, mel_spectrograms.shape[1])
        x = (self.phoneme(phonemes) + self.speaker(speaker)[:, None, :]) * tokens[:, :, None]
        x = x + sinusoids(x)
        for block in self.encoder:
            x = block(x, tokens)
        logarithms = self.duration(x.detach()).squeeze(-1)
        y = alignment(durations, mel_spectrograms.shape[1]) @ x
        y = (y + sinusoids(y)) * frames[:, :, None]
        for block in self.decoder:
            y = block(y, frames)
        return self.head(y), logarithms


def alignment(durations: Tensor, frames: int) -> Tensor:
    """f32[B, frames, T_phone]: 1 where a frame belongs to a phoneme. Times a matrix of phonemes it repeats each over its frames."""
    ends = durations.cumsum(1)
    at = torch.arange(frames)[None, :, None]
    return ((at >= (ends - durations)[:, None, :]) & (at < ends[:, None, :])).float()


def loss(outputs, batch):
    mel, logarithms = outputs
    frames = inside(batch["mel_lengths"], mel.shape[1]).float()
    tokens = inside(batch["phoneme_lengths"], logarithms.shape[1]).float()
    target = (batch["durations"].float() + 1).log()
    parts = {"mel_loss": mean((mel - batch["mel_spectrograms"]).abs().mean(-1), frames),
             "duration_loss": mean((logarithms - target).square(), tokens)}
    return {"loss": sum(parts.values()) * (frames.sum() > 0), "loss_weight": (frames.sum() > 0).float(), **parts}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    buckets = [{"T_phone": SYMBOLS, "T_wav": HOP * (n - 1), "T_mel": n} for n in sizes.frames]
    return Export(
        name="aligned-speech", module=AlignedSpeech(sizes), loss=loss, accumulation="mean",
        inputs=[*sequence("phonemes", "i32", "T_phone", lengths="phoneme_lengths", origin="column", column="phonemes", vocabulary=PHONEMES, split="space"),
                Input("durations", "i32", ("B", "T_phone"), lengths="phoneme_lengths", origin="file", column="durations", below=LONGEST),
                Input("speaker", "i32", ("B",), origin="column", column="speaker", vocabulary=SPEAKERS),
                *sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage")],
        buckets=buckets, dynamic={"T_wav": buckets[-1]["T_wav"], "T_phone": SYMBOLS}, features=FEATURES, pipeline=[LOGMEL])
