"""The probe graph of a bundle: what the module's probes get in an evaluation, as outputs, and nothing else.

It is a graph of its own, so that the graphs that train and evaluate are the same, byte by byte, with and without probes.
"""

from functools import partial
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor

from . import joint, progress, session, ties, verify, watch
from .bundle import PROBE
from .cache import Cache
from .clean import Gains
from .evalgraph import evaluation
from .inputs import batch, zeros
from .module import Export, Step
from .probes import PREFIX
from .reference import TOLERANCE, largest, limits
from .refusal import Refusal
from .watch import DryRun

# What a size is called in bundle.json that follows from others, as half of the frames.
DERIVED = "?"
# Scores of what is left out, as -1e9 and -inf: beside them, all others would be rounding.
_LEFT_OUT = 1e6


class ProbeGraph:
    def __init__(self, export: Export, steps: dict[str, Step], dry: dict[str, DryRun], folder: Path, cache: Cache):
        """dry has the dry runs of steps."""
        self._export, self._cache, self._path = export, cache, folder / PROBE
        self._step = evaluation(export, steps)
        self._step.probing = True
        self._sizes, self._held = next(iter(dry.values())).sizes, next(iter(steps.values())).state
        self._seen = {name: place for step in steps.values() for name, place in step.probed.items()}
        # As in bundle.json.
        self.entries: list[dict] = []

    def __bool__(self) -> bool:
        """Whether the module has probes."""
        return bool(self._seen)

    def write(self) -> Gains:
        """Writes the graph, and returns what cleaning took away. Raises Refusal."""
        export, step, inputs = self._export, self._step, [*self._export.inputs, *self._held]
        if not export.eval_graph:
            raise Refusal("eval_graph is False, and forward has probes", "probes are of an evaluation: leave eval_graph out", next(iter(self._seen.values())))
        example, options = zeros(inputs, self._sizes), {"backward": False, "buckets": export.sizes()}
        step.outputs = ()
        with step.evaluating():
            dry = watch.dry_run(step, inputs, example, **options)
            self.refuse_others(step)
            shapes = {name: dry.shape(dry.result[name]) for name in dry.result if name.startswith(PREFIX)}
            step.outputs = tuple(shapes)
            model, gains = joint.export(step, inputs, example, step.outputs, self._path, dry=dry, cache=self._cache, **options)
        _declare(model, shapes)
        onnx.save(model, self._path)
        self.entries = [{"name": name.removeprefix(PREFIX), "dtype": "f32", "shape": [d if isinstance(d, int) or d in self._sizes else DERIVED for d in shape]}
                        for name, shape in shapes.items()]
        return gains

    def refuse_others(self, evaluated: Step) -> None:
        """The probes of an evaluation, which this step has run, are those of training."""
        for has, lacks, where in (self._seen, evaluated.probed, "training"), (evaluated.probed, self._seen, "evaluation"):
            if missing := [name for name in has if name not in lacks]:
                raise Refusal(f"probe {missing[0]} is reached in {where} only", "probes show an evaluation: call probe in training and in evaluation, with the same name", has[missing[0]])

    def check(self, sizes: dict[str, int], held: dict[str, np.ndarray]) -> tuple[float, str]:
        """The largest error of a probe, as a part of its norm, and its name. Raises Refusal when it is above TOLERANCE. held is the state.

        PyTorch's own functions are the reference. No row is empty: what a probe has of an empty row means nothing.
        """
        export, step = self._export, self._step
        progress.at("a batch in evaluation mode")
        tensors = batch(export.inputs, sizes, np.random.default_rng(5))
        given_state = [torch.from_numpy(x) for x in held.values()]
        feed = {**{name: p.detach().numpy() for name, p in export.module.named_parameters()}, **held, **session.batch_feed(export.inputs, tensors.values(), -1)}
        got = session.run(session.load(self._path, threads=torch.get_num_threads()), feed)

        def plain(given: dict[str, Tensor]) -> dict[str, Tensor]:
            with torch.no_grad(), watch.quiet():
                made = step.plain(*given.values(), *given_state)
            return {name: made[name] for name in got}

        def run(given: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: _compared(x, x) for name, x in plain(given).items()}

        def measured(decided: ties.Decided) -> dict[str, float]:
            want = plain(tensors)
            scales = {name: max(float(torch.linalg.vector_norm(_compared(x, x))), 1e-6) for name, x in want.items()}
            errors = {name: float(torch.linalg.vector_norm(_compared(torch.from_numpy(got[name]), x) - _compared(x, x))) for name, x in want.items()}
            if wrong := [name for name, error in errors.items() if error > TOLERANCE * scales[name]]:
                by_rounding = limits(run, step.parameters(), tensors, decided)
                errors |= {name: 0.0 for name in wrong if errors[name] <= by_rounding[name]}
            return {name: error / scales[name] for name, error in errors.items()}

        with step.evaluating():
            for name, x in plain(tensors).items():
                if x.shape != got[name].shape:
                    raise Refusal(f"{name} of the graph is {list(got[name].shape)}, and PyTorch's {list(x.shape)}",
                                  "this is an error of the exporter: report it with the module", self._place(name))
            worst = largest(ties.alike(measured, partial(limits, run, step.parameters(), tensors), partial(ties.chosen, self._path, feed), None, TOLERANCE))
        if not worst[0] <= TOLERANCE:
            raise Refusal(f"{worst[1]} of the graph differs from PyTorch's by {worst[0]:.1e}",
                          "if its row has random numbers or ties, probe what does not depend on them", self._place(worst[1]))
        return worst

    def _place(self, output: str) -> str | None:
        return self._seen.get(output.removeprefix(PREFIX))


def _compared(x: Tensor, want: Tensor) -> Tensor:
    """x without what says nothing: where PyTorch has NaN, as in a row whose keys are all masked, and where both have the score of what is left out."""
    out, both = ~(want.abs() < _LEFT_OUT), ~(x.abs() < _LEFT_OUT)
    if out.all():
        return x
    return torch.where(want.isnan() | (out & both & ~x.isnan()), torch.zeros_like(x), x)


def _declare(model: onnx.ModelProto, shapes: dict[str, list[int | str]]) -> None:
    """Gives the outputs the shapes of the dry run: PyTorch has names of its own for what follows from several sizes."""
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
        for size in shapes[value.name]:
            dim = value.type.tensor_type.shape.dim.add()
            if isinstance(size, int):
                dim.dim_value = size
            else:
                dim.dim_param = size
