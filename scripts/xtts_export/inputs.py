"""The tensors of a batch: their description, and batches of given sizes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

DTYPES = {"f32": torch.float32, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool}
LISTED = ("column", "file")


@dataclass(frozen=True)
class Input:
    """A tensor of the batch, as `inputs` of bundle.json has it (docs/bundle.md).

    shape has numbers and symbols, the rows' symbol "B" first. lengths names the input that counts the valid part of axis 1, and
    pad fills what follows it. origin is "dataset" for what the host makes, "stage" for what a stage of the pipeline makes.
    A scalar has the shape () and the origin "schedule", with points, or "window", with the lengths that it counts: schedule() and
    window() make one. below bounds integers: the size of the table that they index.

    The origin "column" takes the value of the data set's key `column`, "file" the array in the file that it names. vocabulary has the ids of
    a column's symbols; split says how a string becomes symbols: "space" or "character".
    """

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    lengths: str | None = None
    pad: float = 0
    origin: str = "dataset"
    below: int | None = None
    points: tuple[tuple[float, float], ...] = ()
    counts: str | None = None
    per_row: int = 0
    column: str | None = None
    vocabulary: dict[str, int] | None = None
    split: str | None = None

    @property
    def scalar(self) -> bool:
        """Whether the host computes it for each batch."""
        return self.origin in ("schedule", "window")

    @property
    def table(self) -> int:
        """The bound of the integers of synthetic batches."""
        return self.below or (1 + max(self.vocabulary.values()) if self.vocabulary else 2)

    @property
    def vocabulary_file(self) -> str:
        """The name of the bundle's file with the vocabulary."""
        return f"{self.name}.vocabulary.json"

    def entry(self) -> dict:
        if self.scalar:
            own = {"points": [list(p) for p in self.points]} if self.origin == "schedule" else {"lengths": self.counts, **({"per_row": self.per_row} if self.per_row else {})}
            return {"name": self.name, "origin": self.origin, **own}
        entry = {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}
        if self.lengths:
            entry |= {"pad": self.pad, "lengths": self.lengths}
        own = {"column": self.column, "vocabulary": self.vocabulary_file if self.vocabulary else None, "split": self.split, "below": self.below}
        return entry | {"origin": self.origin} | {key: x for key, x in own.items() if x is not None and self.origin in LISTED}


def schedule(name: str, *points: tuple[float, float]) -> Input:
    """A number that changes with the step: points are (step, value), with straight lines between them."""
    return Input(name, "f32", (), origin="schedule", points=points)


def window(name: str, counts: str, per_row: int = 0) -> Input:
    """The sum of the lengths input `counts` over all micro-batches of a step, at least 1: the denominator of a term of the loss.

    per_row is what the module adds to each row that is not empty, such as 1 for a token at its end.
    """
    return Input(name, "f32", (), origin="window", counts=counts, per_row=per_row)


# The last input of every training graph.
SEED = Input("seed", "i64", ())


def sequence(name: str, dtype: str, *shape: str | int, lengths: str, **rest) -> list[Input]:
    """The input `name` of rows of a varying length, and the input that has their lengths."""
    return [Input(name, dtype, ("B", *shape), lengths=lengths, **rest), Input(lengths, "i32", ("B",), origin=rest.get("origin", "dataset"))]


def lengths(inputs: list[Input]) -> set[str]:
    """The names of the inputs that have lengths."""
    return {i.lengths for i in inputs if i.lengths}


def occupied(inputs: list[Input], batch: dict[str, Tensor]) -> Tensor | None:
    """Which rows are not empty; None if no input has lengths."""
    rows = None
    for name in sorted(lengths(inputs)):
        rows = batch[name] > 0 if rows is None else rows | (batch[name] > 0)
    return rows


def without(inputs: list[Input], batch: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """The batch without one of its rows."""
    return {i.name: torch.cat([batch[i.name][:row], batch[i.name][row + 1:]]) if i.shape[:1] == ("B",) else batch[i.name] for i in inputs}


def unequal(inputs: list[Input]) -> dict[str, int]:
    """Unequal sizes above 1 for every symbol, so that tracing cannot take one for another or for a constant."""
    symbols = sorted({d for i in inputs for d in i.shape if isinstance(d, str)})
    return {d: 3 + 2 * i for i, d in enumerate(symbols)}


def zeros(inputs: list[Input], sizes: dict[str, int]) -> list[Tensor]:
    """A batch of these sizes without content."""
    return [torch.zeros([sizes[d] if isinstance(d, str) else d for d in i.shape], dtype=DTYPES[i.dtype]) for i in inputs]


def batch(inputs: list[Input], sizes: dict[str, int], random: np.random.Generator, empty_row: int | None = None) -> dict[str, Tensor]:
    """Random content for inputs in order: floats are normal, integers below their bound, lengths from 1 to their axis, which the first row fills.

    A batch of a training loop is as long as its longest row, and a module may rely on it.
    """
    axis = {i.lengths: i.shape[1] for i in inputs if i.lengths}
    made = {}
    for i in inputs:
        shape = [sizes[d] if isinstance(d, str) else d for d in i.shape]
        if i.name in axis:
            counts = random.integers(1, sizes[axis[i.name]] + 1, shape)
            counts[0] = sizes[axis[i.name]]
            if empty_row is not None:
                counts[empty_row] = 0
            made[i.name] = torch.from_numpy(counts.astype(np.int32))
        elif i.scalar:
            made[i.name] = torch.tensor(float(random.uniform(0.5, 2)))
        elif i.dtype in ("f32", "bf16", "f16"):
            made[i.name] = torch.from_numpy(random.standard_normal(shape).astype(np.float32))
        else:
            made[i.name] = torch.from_numpy(random.integers(0, i.table, shape)).to(DTYPES[i.dtype])
    return made


def clean(inputs: list[Input], batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The batch with padding after each row's length, and with zeros in an empty row of what has no lengths, as the id of a speaker.

    A mask would not do: NaN times 0 is NaN, and a random id has no row in a table.
    """
    cleaned, counts = dict(batch), lengths(inputs)
    whole = [i for i in inputs if counts and not i.lengths and i.name not in counts and i.shape[:1] == ("B",)]
    rows = occupied(inputs, batch) if whole else None
    for i in inputs:
        x = batch[i.name]
        if i.lengths:
            inside = torch.arange(x.shape[1])[None, :] < batch[i.lengths][:, None]
            inside = inside.view(*inside.shape, *[1] * (x.dim() - 2))
            cleaned[i.name] = torch.where(inside, x, torch.full_like(x, i.pad) if i.pad else torch.zeros_like(x))
        elif i in whole:
            cleaned[i.name] = torch.where(rows.view(-1, *[1] * (x.dim() - 1)), x, torch.zeros_like(x))
    return cleaned
