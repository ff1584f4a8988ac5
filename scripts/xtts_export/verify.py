"""Compares a written bundle with its module in eager PyTorch (eager.py): gradients, and the promises about empty rows (docs/bundle.md).

An empty row counts in PyTorch as any other, so PyTorch gets the batch without it. Noise has other places then, so a module that draws it is compared on
full batches, and with an empty row by the functions that the graph was made of.

It must fit large models, so it keeps the weights and one copy of the gradients: the graph writes its gradients to the same arrays in
every run, those of PyTorch are compared and freed one by one, and runs are compared by digests.
"""

import hashlib
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from . import counting, extremes, forked, nonfinite, progress, session, state, ties, watch
from .inputs import SEED, batch, lengths, without
from .module import Export, Step
from .reference import TOLERANCE, Reference, distances, dropped_row, largest, limits, refuse_difference, state_of, trained
from .refusal import Refusal

# Of the state with and without an empty row: sums have another order.
TOLERANCE_OF_ROWS = 1e-4
_BATCHES = 3
# Of check, as the output counts them.
_PARTS = 6
# Besides the gradients: activations of small batches, and the session.
_WORKING_MEMORY = 1 << 30


def lacks_memory(step: Step, copies: int = 1) -> str | None:
    """Why check would not fit into this machine, or None. copies is how many it makes of the trained parameters: check makes one, of gradients."""
    needed = copies * sum(4 * p.numel() for p in step.parameters() if p.requires_grad) + _WORKING_MEMORY
    free = available()
    return None if free is None or free >= needed else f"the check needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"


def available() -> int | None:
    """Bytes that are available without swapping, or None if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def check(export: Export, step: Step, sizes: dict[str, int], path: Path) -> tuple[float, str]:
    """The largest error among outputs and gradients, relative to their norm, and the name of that tensor. Raises Refusal when it is above TOLERANCE.

    sizes has two rows or more.
    """
    if not lengths(export.inputs):
        raise Refusal("no input has lengths, so that the empty rows of a batch would count", "give a tensor of the rows its lengths, as xtts_export.sequence does")
    # Without a second core, or if two copies of the gradients do not fit, nothing runs apart.
    beside = forked.gradients_possible() and not lacks_memory(step, 2)
    # A fork has no threads, and with two processes each has one core.
    graph = Graph(export, path, threads=1 if beside else None)
    apart = forked.Forked(partial(_apart, export, step, graph, sizes), export.module) if beside else None
    try:
        return _checked(export, step, graph, sizes, apart)
    finally:
        if apart:
            apart.stop()


def _apart(export: Export, step: Step, graph: "Graph", sizes: dict[str, int]) -> tuple[tuple[float, str], list[str]]:
    """The part of the check that runs in a process of its own, with its remarks."""
    remarks = []
    with mock.patch.object(progress, "remark", remarks.append):
        return _random_and_extreme(export, step, graph, sizes), remarks


def _random_and_extreme(export: Export, step: Step, graph: "Graph", sizes: dict[str, int]) -> tuple[float, str]:
    worst = _full(export, step, graph, sizes)
    extremes.check(export, step, sizes, graph.run, graph.chosen)
    return worst


def _checked(export: Export, step: Step, graph: "Graph", sizes: dict[str, int], apart: forked.Forked | None) -> tuple[float, str]:
    """What check returns. apart runs a part of it."""
    random = np.random.default_rng(1)
    worst = 0.0, "loss"
    for rows, empty in ((1, None), (sizes["B"], 1)):
        if empty is not None:
            progress.at("an empty row", 2, _PARTS)
            if step.state:
                _refuse_counted_rows(export, step, graph, sizes)
            if remark := counting.check(export, step, graph.run, sizes):
                progress.remark(f"  {remark}")
        progress.at("one row" if empty is None else "a batch", 1 if empty is None else 3, _PARTS)
        tensors = batch(export.inputs, {**sizes, "B": rows}, random, empty)
        reference = Reference(step, tensors, empty)
        worst = max(worst, reference.compare(_run(graph, reference, tensors), graph.chosen))
    progress.at("nothing but empty rows", 4, _PARTS)
    clean = _digests(graph.outputs)
    _refuse_dependence_on_nothing(clean, _digests(graph.run(soiled(export, tensors, empty))))
    nothing = {name: x if name not in lengths(export.inputs) else torch.zeros_like(x) for name, x in tensors.items()}
    _refuse_weight_of_nothing(step, nothing, graph.run(nothing))
    progress.at("state", 5, _PARTS)
    if step.state:
        worst = max(worst, _check_state(export, step, graph, sizes, nothing))
    progress.at("random numbers, equal elements and large numbers", 6, _PARTS)
    # If it fails there, this process has the error.
    further, remarks = (apart and apart.result()) or (_random_and_extreme(export, step, graph, sizes), ())
    for remark in remarks:
        progress.remark(remark)
    return max(worst, further)


def left_by_batches(export: Export, step: Step, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """The state that some batches leave. Before the first one, it may be such as no evaluation meets: a spectral norm that has not begun to converge."""
    progress.at("batches before it")
    random, left = np.random.default_rng(2), state.values(step.module, step.state)
    with torch.no_grad():
        for _ in range(_BATCHES if step.state else 0):
            left |= state_of(step.plain(*batch(export.inputs, sizes, random).values(), torch.tensor(-1), *left.values()))
    return {name: x.numpy() for name, x in left.items()}


def check_evaluation(export: Export, step: Step, sizes: dict[str, int], path: Path, held: dict[str, np.ndarray]) -> tuple[float, str]:
    """The largest error of what the eval graph returns, on a batch with an empty row. Raises Refusal when it is above TOLERANCE.

    held is the state. The module is in evaluation mode.
    """
    progress.at("a batch in evaluation mode")
    given_state = [torch.from_numpy(x) for x in held.values()]
    tensors = batch(export.inputs, sizes, np.random.default_rng(3), empty_row=1)
    with torch.no_grad(), watch.quiet():
        step.named(*tensors.values(), *given_state)
    call, seen = (step.named, tensors) if step.draws_noise else (step.plain, without(export.inputs, tensors, 1))
    graph = Graph(export, path)
    got = graph.run(tensors, state=held)

    def run(given: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.no_grad(), watch.quiet():
            return {name: x.detach().clone() for name, x in call(*given.values(), *given_state).items()}

    def measured(decided: ties.Decided) -> dict[str, float]:
        want = run(seen)
        scales = {name: max(abs(want[name].item()), 1e-6) for name in got}
        errors = {name: abs(float(x) - want[name].item()) for name, x in got.items()}
        if wrong := [name for name, error in errors.items() if error > TOLERANCE * scales[name]]:
            by_rounding = limits(run, step.parameters(), seen, decided)
            errors |= {name: 0.0 for name in wrong if errors[name] <= by_rounding[name]}
        return {name: error / scales[name] for name, error in errors.items()}

    dropped = dropped_row(export, tensors, None if seen is tensors else 1)
    worst = largest(ties.alike(measured, partial(limits, run, step.parameters(), seen), graph.chosen, dropped, TOLERANCE))
    if not worst[0] <= TOLERANCE:
        raise Refusal(f"{worst[1]} of the eval graph differs from PyTorch's by {worst[0]:.1e}",
                      "an evaluation has no seed and no dropout, and modules with state are in evaluation mode: look for what differs there")
    return worst


def _run(graph: "Graph", reference: "Reference", tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """The graph's outputs. Where it does not run, PyTorch may not run either, and knows the line."""
    try:
        return graph.run(tensors)
    except Refusal:
        reference.outputs()
        raise


def _check_state(export: Export, step: Step, graph: "Graph", sizes: dict[str, int], nothing: dict[str, Tensor]) -> tuple[float, str]:
    """The error of the state after several batches, and what the graph contract says of empty rows."""
    ours, random = dict(graph.state), np.random.default_rng(2)
    theirs = {name: torch.from_numpy(x) for name, x in ours.items()}
    for _ in range(_BATCHES):
        tensors = batch(export.inputs, sizes, random, empty_row=1)
        with torch.no_grad():
            theirs |= state_of(Reference(step, tensors, 1).outputs(*theirs.values()))
        ours |= state_of(graph.run(tensors, state=ours))
        worst = largest(distances(ours, theirs))
        refuse_difference(worst)
    for name, x in state_of(graph.run(nothing)).items():
        if not np.array_equal(x, graph.state[name]):
            raise Refusal(f"with every row empty, {state.PREFIX}{name} changes", "weight what it is made of by a mask of the rows, lengths > 0", step.written.get(name))
    return worst


def _refuse_counted_rows(export: Export, step: Step, graph: "Graph", sizes: dict[str, int]) -> None:
    """Before the comparison, where PyTorch has no empty row: only here is known that the row counts in the state."""
    tensors = batch(export.inputs, sizes, np.random.default_rng(2), empty_row=1)
    counted, ours = state_of(graph.run(tensors)), state_of(graph.run(without(export.inputs, tensors, 1)))
    for name, error in distances(counted, ours).items():
        if not error <= TOLERANCE_OF_ROWS:
            raise Refusal(f"an empty row changes {state.PREFIX}{name}, where it must not count",
                          "weight what it is made of by a mask of the rows, lengths > 0, and divide by the masks' sum.clamp(min=1)", step.written.get(name))


class Graph:
    """A training graph of an Export, fed the module's own weights and state. outputs are those of the last run: the next one overwrites them."""

    def __init__(self, export: Export, path: Path, threads: int | None = None):
        """threads is PyTorch's number, if none is given."""
        try:
            self.session = session.load(path, threads=threads or torch.get_num_threads())
        except Exception as error:
            raise Refusal(f"ONNX Runtime cannot load the graph: {str(error).splitlines()[0].rpartition(' : ')[2]}",
                          "compute in float32: convert what is of another type by .float()") from error
        self.parameters = {name: p.detach().numpy() for name, p in export.module.named_parameters()}
        self.inputs = export.inputs
        names = sorted({i.name for i in self.session.get_inputs()} - self.parameters.keys() - {i.name for i in self.inputs} - {SEED.name})
        self.state = {name: x.numpy() for name, x in state.values(export.module, state.specs(export.module, names)).items()}
        self.outputs = {o.name: np.zeros(o.shape, np.float32) for o in self.session.get_outputs()}
        self._path, self._fed = path, {}

    def run(self, tensors: dict[str, Tensor], seed: int = -1, state: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """The outputs; a seed below 0 means without dropout. The state is the module's, if none is given."""
        progress.operator("the graph in ONNX Runtime")
        self._fed = {**self.parameters, **(state or self.state), **session.batch_feed(self.inputs, tensors.values(), seed)}
        try:
            session.run_into(self.session, self._fed, self.outputs)
        except Exception as error:
            raise Refusal(f"the graph does not run: {str(error).splitlines()[0].rpartition('Status Message: ')[2]}",
                          "an index may be outside of its table: clamp it, or give the input its `below`") from error
        return self.outputs

    def chosen(self) -> list[np.ndarray]:
        """What the last run decided."""
        return ties.chosen(self._path, self._fed)


def _full(export: Export, step: Step, graph: "Graph", sizes: dict[str, int]) -> tuple[float, str]:
    """The error on a batch without empty rows, where the module draws random numbers; with dropout, if both draw the same masks in the same order.
    PyTorch's kernels may draw them in another one."""
    if not step.drawn and not step.draws_noise:
        return 0.0, "loss"
    tensors, seed = batch(export.inputs, sizes, np.random.default_rng(4)), torch.tensor(5)
    with torch.no_grad():
        step.named(*tensors.values(), seed)
        ours = step.drawn
        step.plain(*tensors.values(), seed)
    if ours == step.drawn:
        return Reference(step, tensors, seed=int(seed)).compare(graph.run(tensors, int(seed)), graph.chosen)
    progress.remark("  dropout is compared without its masks, which PyTorch draws in other shapes")
    return Reference(step, tensors).compare(graph.run(tensors), graph.chosen)


def soiled(export: Export, tensors: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """The batch with garbage in everything but the lengths of a row."""
    soiled = {name: x.clone() for name, x in tensors.items()}
    for name, x in soiled.items():
        if name not in lengths(export.inputs) and x.dim():
            x[row] = float("nan") if x.is_floating_point() else 1 if x.dtype == torch.bool else min(2**31 - 1, torch.iinfo(x.dtype).max)
    return soiled


def _digests(outputs: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: hashlib.sha256(x).digest() for name, x in outputs.items()}


def _refuse_dependence_on_nothing(clean: dict[str, bytes], soiled: dict[str, bytes]) -> None:
    for name, digest in clean.items():
        if digest != soiled[name]:
            raise Refusal(f"{name} depends on the content of an empty row", "forward gets zeros there, so this is an error of the exporter: report it with the module")


def _refuse_weight_of_nothing(step: Step, tensors: dict[str, Tensor], out: dict[str, np.ndarray]) -> None:
    if bad := [name for name, x in out.items() if not np.isfinite(x).all()]:
        raise nonfinite.explain(f"with every row empty, {bad[0]} is NaN", lambda: step.named(*tensors.values(), torch.tensor(-1))["loss"], trained(step))
    if out["loss"] != 0 or out["loss_weight"] != 0:
        raise Refusal(f"with every row empty, loss is {out['loss']:.6g} and loss_weight {out['loss_weight']:.6g}, where both must be 0",
                      "weight each row's part by a mask of its length, and divide by the masks' sum.clamp(min=1)")
