"""Batches made from a counter, so that any language can make the same ones (README.md has the recipe and test vectors)."""

from dataclasses import dataclass

import numpy as np
import torch

ROWS = 4
# The first two ids are padding and unknown.
FIRST_TOKEN = 2


def splitmix64(x: np.ndarray) -> np.ndarray:
    """u64 of u64: the output function of SplitMix64 (Steele, Lea, Flood 2014), applied to the counter x itself."""
    with np.errstate(over="ignore"):
        z = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def integers(stream: int, *shape: int) -> np.ndarray:
    """u64 values number 0, 1, ... of a stream, in row-major order."""
    count = int(np.prod(shape))
    return splitmix64(np.uint64(stream << 32) + np.arange(count, dtype=np.uint64)).reshape(shape)


def floats(stream: int, *shape: int) -> np.ndarray:
    """f32 values in [-1, 1)."""
    return (integers(stream, *shape) >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)


@dataclass(frozen=True)
class Batch:
    """Batch number `index`: its sizes and, if any, the row that is empty."""

    index: int
    sizes: dict[str, int]
    empty_row: int | None = None

    def tensors(self, vocab: int, n_mels: int) -> list[torch.Tensor]:
        """The graph's inputs but for the seed. What stands behind a row's length is not padding: graphs must not look at it."""
        t_text, t_mel, t_ref = self.sizes["T_text"], self.sizes["T_mel"], self.sizes["T_ref_mel"]
        stream = 4 * self.index
        lengths = integers(stream, ROWS, 3) % np.array([t_text, t_mel, t_ref], dtype=np.uint64) + np.uint64(1)
        if self.empty_row is not None:
            lengths[self.empty_row] = 0
        text = FIRST_TOKEN + integers(stream + 1, ROWS, t_text) % np.uint64(vocab - FIRST_TOKEN)
        arrays = [
            text.astype(np.int32), lengths[:, 0].astype(np.int32),
            2 * floats(stream + 2, ROWS, t_mel, n_mels), lengths[:, 1].astype(np.int32),
            2 * floats(stream + 3, ROWS, t_ref, n_mels), lengths[:, 2].astype(np.int32),
        ]
        return [torch.from_numpy(a) for a in arrays]


def concatenate(batches: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """One batch of all rows; the batches have equal sizes."""
    return [torch.cat(tensors) for tensors in zip(*batches, strict=True)]
