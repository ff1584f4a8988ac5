"""A module of the suite, and what is compared."""

import importlib
import inspect
import pkgutil
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .. import cost, joint, lowering, reference, session, state, verify, writer
from ..inputs import SEED, Input, batch, clean, window, without, zeros
from ..module import Export, Step

WIDTH = 8
# Ids are below this.
TABLE = 11

INPUTS = {i.name: i for i in (
    Input("x", "f32", ("B", "T", WIDTH), lengths="lengths"),
    Input("target", "f32", ("B", "T", WIDTH), lengths="lengths"),
    Input("lengths", "i32", ("B",)),
    Input("ids", "i32", ("B", "N"), lengths="id_lengths", below=TABLE),
    Input("id_lengths", "i32", ("B",)),
    Input("wave", "f32", ("B", "S"), lengths="wave_lengths"),
    Input("wave_lengths", "i32", ("B",)),
    Input("speaker", "i32", ("B",), below=TABLE),
    Input("voice", "f32", ("B", WIDTH)),
    window("frames", "lengths"),
    SEED,
)}
# Rows, frames, ids, samples; then the row that is empty.
SIZES = (
    ({"B": 1, "T": 11, "N": 6, "S": 64}, None),
    ({"B": 3, "T": 24, "N": 13, "S": 96}, 1),
    ({"B": 2, "T": 37, "N": 17, "S": 256}, None),
)
BUCKETS = ({"T": 24, "N": 13, "S": 96}, {"T": 60, "N": 40, "S": 512})
# The largest error, as a part of a gradient's norm. Of a gradient that is a sum of terms that cancel, as that of the bias of attention's
# keys, only rounding is left: FLOOR is the part of all gradients' norm that counts at least.
TOLERANCE = 1e-4
FLOOR = 1e-3


class Case(nn.Module):
    """A module that is exported as it stands. Its docstring is one phrase of Markdown."""

    # Part of the refusal, for a module that is refused; a comment `# blamed` marks the line that the refusal must name.
    refused: str | None = None
    # The refusal is of the whole module, and names no line.
    whole = False
    # The case that does the same in another way, and is exported.
    way_out: "type[Case] | None" = None
    # PyTorch gives NaN for an empty row, the graph does not: the exporter's own functions are the reference there.
    nan_when_empty = False
    # It draws random numbers. Those of the exporter's seed are the reference.
    draws = False
    # Fields of Export.
    options = {}
    sizes = SIZES
    buckets = BUCKETS
    tolerance = TOLERANCE

    def loss(self, y: object, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Scalars of what forward returned. An empty row has no weight."""
        if isinstance(y, dict):
            return y
        rows = (next(n for name, n in batch.items() if name.endswith("lengths")) > 0).float()
        errors = (y - torch.cos(torch.arange(y.shape[-1]))).square() if y.dim() > 1 else (y - 0.5).square()
        while errors.dim() > 1:
            errors = errors.sum(-1)
        return {"loss": 0.01 * (errors * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def exported(case: Case) -> Export:
    """The description of a case. Every input comes with its lengths."""
    taken = set(inspect.signature(case.forward).parameters)
    taken |= {INPUTS[name].lengths for name in taken & INPUTS.keys()}
    inputs = [i for name, i in INPUTS.items() if name in taken and i is not SEED]
    symbols = {d for i in inputs for d in i.shape if isinstance(d, str)}
    buckets = [{d: n for d, n in bucket.items() if d in symbols} for bucket in case.buckets]
    return Export(name=type(case).__name__, module=case, inputs=inputs, buckets=buckets, features={}, loss=case.loss,
                  eval_graph=False, **case.options)


def write(case: Case, path: Path) -> tuple[Export, Step]:
    """Exports the training graph of the case. Raises Refusal."""
    export = exported(case)
    step = Step(export)
    dry = writer.dry_run(export, step)
    inputs = [*export.inputs, SEED, *step.state]
    joint.export(step, inputs, zeros(inputs, dry.sizes), step.returned(), path, dry=dry, buckets=export.sizes())
    return export, step


def errors(case: Case, path: Path) -> float:
    """Exports the case, and returns the largest error of an output, a gradient, or the state, relative to its norm. Raises Refusal."""
    export, step = write(case, path)
    worst, _ = verify.check(export, step, case.sizes[1][0], path)
    worst = worst if case.nan_when_empty else 0.0
    graph = verify.Graph(export, path)
    # Of state, each batch takes what the batch before it left.
    ours, theirs = graph.state, state.values(case, step.state)
    for sizes, empty in case.sizes:
        tensors = batch(export.inputs, sizes, np.random.default_rng(sizes["B"]), empty)
        cost.count(path, graph.parameters | graph.state | session.batch_feed(export.inputs, tensors.values(), -1))
        if empty is None or not case.nan_when_empty:
            got = graph.run(tensors, state=ours)
            if step.state and empty is not None:
                tensors = without(export.inputs, tensors, empty)
            with state.held(case, theirs) as left:
                worst = max(worst, _against_pytorch(export, tensors, got))
                ours, theirs = reference.state_of(got), left()
            worst = max([worst, *reference.distances(ours, theirs).values()])
    return worst


def _against_pytorch(export: Export, tensors: dict[str, Tensor], got: dict[str, np.ndarray]) -> float:
    """The largest error, with PyTorch's own functions as the reference: none is replaced by the exporter's."""
    case = export.module
    parameters = {"grad." + name: p for name, p in case.named_parameters() if p.requires_grad}

    def run(batch: dict[str, Tensor]) -> dict[str, Tensor]:
        given = clean(export.inputs, batch)
        with lowering.seeded(torch.tensor(-1)) if case.draws else nullcontext():
            loss = case.loss(case(**{name: given.get(name) for name in inspect.signature(case.forward).parameters}), given)["loss"]
        case.zero_grad()
        loss.backward()
        return {"loss": loss.detach()} | {name: p.grad for name, p in parameters.items()}

    want = run(tensors)
    norms = {name: float(torch.linalg.vector_norm(x)) for name, x in want.items()}
    errors = {name: float(torch.linalg.vector_norm(torch.from_numpy(np.asarray(got[name])) - x)) for name, x in want.items()}
    floor = FLOOR * float(np.linalg.norm([norm for name, norm in norms.items() if name != "loss"]))
    scales = {name: max(norm, 1e-6 if name == "loss" else floor, 1e-30) for name, norm in norms.items()}
    if wrong := [name for name, error in errors.items() if error > case.tolerance * scales[name]]:
        left = {name: x.clone() for name, x in case.named_buffers()}
        far = reference.moved(run, case.parameters(), tensors)
        for name, x in case.named_buffers():
            x.data.copy_(left[name])
        errors |= {name: 0.0 for name in wrong if errors[name] <= reference.ROUNDINGS * far[name]}
    # NaN must win.
    return float(np.max([error / scales[name] for name, error in errors.items()]))


def cases() -> dict[str, list[type[Case]]]:
    """Every case, by the name of its file."""
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name not in ("case", "kept", "table", "traps", "untried", "__main__") and not module.name.startswith("test_"):
            loaded = importlib.import_module(f"{__package__}.{module.name}")
            found[module.name] = [c for c in vars(loaded).values()
                                  if isinstance(c, type) and issubclass(c, Case) and c.__module__ == loaded.__name__ and c.__doc__ and not c.__name__.startswith("_")]
    return found


def place(message: str) -> str | None:
    """The text of the user's line that a refusal names."""
    match = re.match(r"(/\S+?):(\d+) ", message)
    return Path(match[1]).read_text(encoding="utf-8").splitlines()[int(match[2]) - 1] if match else None
