"""What the loss counts, by a training graph that the check has compared with PyTorch (docs/export.md, "What the loss counts").

An empty row counts as none. Where rows do not depend on each other, their order does not matter, and a batch in two parts gives, put together as the
trainer accumulates micro-batches, the loss and the gradients of the whole. Rows depend on each other in batch norm and contrastive losses, by design:
whether they do is asked of the loss itself, as the mixed difference of the contents of two rows.
"""

import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from . import progress, refusal, state, watch
from .inputs import batch, lengths
from .module import Export, Step
from .refusal import Refusal

# Errors of the loss, and of the gradients as a part of their norm. Sums in another order change the last digits; what is counted wrongly, whole percents.
_LOSS, _GRADIENTS = 1e-4, 1e-3
# Up to so much of a loss, a sum of four is rounding.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
# Of a gradient, so many elements are compared: what is counted wrongly changes all of them.
_ELEMENTS = 1 << 16
_ROWS = 4
# Of the graph, if all is checked.
_RUNS = 13
# A gradient may be so many times as far off as rounding makes it.
_ROUNDINGS = 16

_MEAN = "weight rows and frames by masks, (errors * mask).sum() / mask.sum().clamp(min=1) with mask = (torch.arange(n)[None, :] < lengths[:, None]).float(), in place of .mean() and .std()"

_DEPEND = ("the rows of a batch depend on each other, as in batch norm and contrastive losses, so that micro-batches are not "
           "the same as one batch")

Run = Callable[..., dict[str, np.ndarray]]
Results = dict[str, np.ndarray]


def check(export: Export, step: Step, run: Run, sizes: dict[str, int]) -> str | None:
    """Raises Refusal if something is counted wrongly. run gives the graph's outputs for a batch, without dropout. Returns why less was checked, or None.

    What is not finite is left to the comparison with PyTorch, which names the operation.
    """
    run, tensors = _told(run), _batch(export, sizes)
    whole = _kept(run(tensors))
    if not _finite(whole):
        return None
    rounding = _gradients_apart(_kept(run(_near(tensors))), whole)
    if _random(run, tensors, whole):
        return "random numbers of forward differ with the rows, so that what the loss counts is not checked"
    place = lambda: _line(step, tensors)
    for row in (1, _ROWS - 1):
        emptied = _emptied(export, tensors, row)
        if not _finite(counted := _kept(run(emptied))):
            return None
        _refuse_empty_rows(counted, _kept(run(_rows(export, emptied, [r for r in range(_ROWS) if r != row]))), rounding, place)
    if export.accumulation != "exact" and whole["loss_weight"][0] != 1:
        raise Refusal(f"loss_weight is {float(whole['loss_weight'][0]):.6g}, where accumulation is {export.accumulation!r}",
                      'return 1 as loss_weight, and 0 if all rows are empty: (lengths > 0).any().float(); or leave accumulation out, if loss_weight is what the loss is divided by', place())
    if not _apart(export, run, tensors, sizes, whole, (0, 2)):
        return _DEPEND
    try:
        turned = _kept(run(_rows(export, tensors, [2, 0, 3, 1])))
        if far := _difference(turned, whole, rounding):
            raise Refusal(f"with the same rows in another order, {far}",
                          "rows have no order: take what belongs to a row from its own tensors, and not from its number in the batch", place())
        if export.accumulation != "mean":
            _refuse_parts(export, whole, [_kept(run(_rows(export, tensors, part))) for part in ([0], [1, 2, 3])], place)
    except Refusal:
        # One row alone may decide about the others, as the one with the largest number of the batch.
        if _apart(export, run, tensors, sizes, whole, (1, 3)):
            raise
        return _DEPEND
    return None


def _told(run: Run) -> Run:
    """It says which one of all runs it is."""
    runs = itertools.count(1)

    def told(*args, **kwargs):
        progress.at("what the loss counts, run", next(runs), _RUNS)
        return run(*args, **kwargs)

    return told


def _batch(export: Export, sizes: dict[str, int]) -> dict[str, Tensor]:
    """Rows of lengths that differ, so that rows, frames and tokens are other numbers."""
    tensors = batch(export.inputs, {**sizes, "B": _ROWS}, np.random.default_rng(6))
    axis = {i.lengths: i.shape[1] for i in export.inputs if i.lengths}
    for n, name in enumerate(sorted(axis)):
        most = sizes[axis[name]]
        # No two tensors have lengths of the same proportions.
        parts = np.roll([1.0, 0.35, 0.8, 0.55], n)
        tensors[name] = torch.tensor([max(1, round(most * part)) for part in parts], dtype=torch.int32)
    return tensors


def _kept(outputs: dict[str, np.ndarray]) -> Results:
    """A copy of what is compared."""
    return {name: np.array(x.reshape(-1)[::1 + x.size // _ELEMENTS]) for name, x in outputs.items() if not name.startswith(state.PREFIX)}


def _finite(results: Results) -> bool:
    return all(np.isfinite(x).all() for x in results.values())


def _rows(export: Export, tensors: dict[str, Tensor], rows: list[int]) -> dict[str, Tensor]:
    return {i.name: tensors[i.name][rows] if i.shape[:1] == ("B",) else tensors[i.name] for i in export.inputs}


def _emptied(export: Export, tensors: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    emptied = {name: x.clone() for name, x in tensors.items()}
    for name in lengths(export.inputs):
        emptied[name][row] = 0
    return emptied


def _random(run: Run, tensors: dict[str, Tensor], whole: Results) -> bool:
    """Whether forward draws noise, whose numbers are other ones when a row is elsewhere."""
    return _difference(_kept(run(tensors, seed=-2)), whole) is not None


def _apart(export: Export, run: Run, tensors: dict[str, Tensor], sizes: dict[str, int], whole: Results,
           rows: tuple[int, int]) -> bool:
    """Whether neither row changes what another one adds to the loss: then the effects of two changes add up."""
    other = batch(export.inputs, {**sizes, "B": _ROWS}, np.random.default_rng(7))

    def changed(*rows: int) -> Results:
        mixed = {name: x.clone() for name, x in tensors.items()}
        for i in export.inputs:
            if i.shape[:1] == ("B",) and i.name not in lengths(export.inputs):
                mixed[i.name][list(rows)] = other[i.name][list(rows)]
        return _kept(run(mixed))

    first, second, both = changed(rows[0]), changed(rows[1]), changed(*rows)
    for name in ("loss", "loss_weight"):
        a, b, c, d = (float(x[name][0]) for x in (whole, first, second, both))
        if abs(a - b - c + d) > max(_LOSS * max(abs(a - b), abs(a - c)), _ROUNDING * abs(a)):
            return False
    # Contents that choose what counts, as voiced frames, make a denominator of their own.
    return whole["loss_weight"] == both["loss_weight"]


def _near(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The batch with every number moved by a unit in the last place."""
    return {name: torch.nextafter(x, torch.full_like(x, torch.inf)) if x.dim() and x.is_floating_point() else x for name, x in tensors.items()}


def _gradients_apart(got: Results, want: Results) -> float:
    """The norm of the difference of all gradients together."""
    return float(np.sqrt(sum(_squares(got, want).values())))


def _squares(got: Results, want: Results) -> dict[str, float]:
    """The square of the norm of each gradient's difference."""
    return {name: np.square(x - want[name], dtype=np.float64).sum() for name, x in got.items() if name.startswith("grad.")}


def _difference(got: Results, want: Results, rounding: float = 0.0) -> str | None:
    """What differs, or None. rounding is how far apart gradients are when the batch is rounded otherwise: some are nothing else."""
    for name in ("loss", "loss_weight"):
        a, b = float(got[name][0]), float(want[name][0])
        if not abs(a - b) <= _LOSS * max(abs(b), 1e-6):
            return f"{name} is {a:.6g} instead of {b:.6g}"
    squares = _squares(got, want)
    norm = np.sqrt(sum(np.square(want[name], dtype=np.float64).sum() for name in squares))
    if squares and not (far := np.sqrt(sum(squares.values()))) <= max(_GRADIENTS * max(norm, 1e-12), _ROUNDINGS * rounding):
        return f"{max(squares, key=squares.get)} differs, and all gradients by {far / max(norm, 1e-12):.1e} of their norm"
    return None


def _refuse_empty_rows(counted: Results, without: Results, rounding: float, place: Callable[[], str | None]) -> None:
    if far := _difference(counted, without, rounding):
        raise Refusal(f"an empty row counts: with it, {far}", _MEAN, place())


def _refuse_parts(export: Export, whole: Results, parts: list[Results], place: Callable[[], str | None]) -> None:
    weights = [float(part["loss_weight"][0]) if export.accumulation == "exact" else 1.0 for part in parts]
    total = sum(weights) if export.accumulation == "exact" else 1.0
    # The gradients follow, but for those that a hook clamps.
    joined = {"loss": sum(w * part["loss"].astype(np.float64) for w, part in zip(weights, parts, strict=True)) / total}
    joined["loss_weight"] = np.array([total]) if export.accumulation == "exact" else whole["loss_weight"]
    if not (far := _difference(joined, whole)):
        return
    if export.accumulation == "exact":
        raise Refusal(f"loss_weight does not count what the loss is a mean over: of a batch in two parts, weighted by it, {far}",
                      "return as loss_weight the number that the loss is divided by; if terms are divided by several numbers, accumulation='weighted' and window() inputs, or accumulation='mean'", place())
    raise Refusal(f"a term of the loss is not divided by a window() input: of a batch in two parts, added up, {far}",
                  "divide the sum of each term by its window() input, not by what this batch has; or accumulation='mean'", place())


def _line(step: Step, tensors: dict[str, Tensor]) -> str | None:
    """The user's line that makes the loss."""
    # Anomaly mode remarks that it is slow.
    with watch.quiet(), torch.autograd.detect_anomaly(check_nan=False):
        node = step.named(*tensors.values(), torch.tensor(-1))["loss"].grad_fn
    return node and refusal.from_text("".join(node.metadata.get("traceback_", [])))
