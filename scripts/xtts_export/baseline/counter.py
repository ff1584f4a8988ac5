"""Batches made from a counter, so that any language can make the same ones (README.md has the recipe and test vectors)."""

from dataclasses import dataclass

import numpy as np
import torch

ROWS = 4


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

    def tensors(self, recipes: list[dict]) -> list[torch.Tensor]:
        """One tensor for each recipe, in order. The content after a row's length is not padding: graphs must not use it."""
        return [self._tensor(len(recipes) * self.index + place, recipe) for place, recipe in enumerate(recipes)]

    def _tensor(self, stream: int, recipe: dict) -> torch.Tensor:
        shape = [{**self.sizes, "B": ROWS}.get(d, d) for d in recipe["shape"]]
        match recipe["fill"]:
            case "lengths":
                values = 1 + (integers(stream, *shape) % np.uint64(self.sizes[recipe["of"]])).astype(np.int32)
                if self.empty_row is not None:
                    values[self.empty_row] = 0
            case "integers":
                low, count = recipe["low"], recipe["count"]
                values = low + (integers(stream, *shape) % np.uint64(count)).astype(np.int32)
            case "floats":
                values = np.float32(recipe["scale"]) * floats(stream, *shape)
        return torch.from_numpy(values)


def concatenate(batches: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """One batch of all rows; the batches have equal sizes."""
    return [torch.cat(tensors) for tensors in zip(*batches, strict=True)]
