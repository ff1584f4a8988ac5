"""Writes an Export as a bundle: traces it, compares the graphs with PyTorch, and only then puts the folder in its place."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from . import bundle, captured, cost, leftovers, mixed, progress, randomness, state, verify, watch
from .ahead import Ahead
from .cache import Cache
from .clean import Gains
from .evalgraph import EVAL, EvalGraph, evaluation
from .inputs import SEED, batch, unequal, zeros
from .module import Export, Step, steps
from .probegraph import ProbeGraph
from .progress import phase
from .refusal import Refusal
from .staging import staged
from .watch import DryRun


# Of a batch that is compared: one row of it is empty.
_FEWEST_ROWS, _SHORTEST = 2, 2
# Bytes of activations in PyTorch. The graph has its own, which are about as many.
_MEMORY = 2 << 30
# Seconds that a GPU takes to start a kernel.
_LAUNCH = 5e-6


def write(export: Export, folder: Path, precisions: tuple[str, ...] = ("f32",), accept: Callable[[Path], None] = lambda _: None,
          cache: Cache | None = None) -> None:
    """Writes the bundle, with a training graph for each precision, and prints how long each phase took. Raises Refusal.

    Graphs that the cache has are not traced again. They are checked as all others.

    The folder is created or changed only after every check has passed. accept is the last check; it gets the temporary folder of the files.
    """
    made = steps(export)
    _describe(export.module)
    if export.eval_graph:
        for line in shortcuts(export.module):
            print(line)
    with Ahead() as ahead:
        with phase("dry run", export.module):
            dry = dry_runs(export, made, ahead)
        _write(export, made, dry, folder, precisions, accept, cache or Cache(None), ahead)


def _write(export: Export, made: dict[str, Step], dry: dict[str, DryRun], folder: Path, precisions: tuple[str, ...], accept: Callable[[Path], None],
           cache: Cache, ahead: Ahead) -> None:
    """What write does after the dry runs."""
    with staged(folder) as place, EvalGraph(export, made, dry, place, cache) as evalgraph:
        bundle.weights_file(list(made.values())[-1], place)
        training, gains = bundle.training(export, made, dry, precisions, place, cache, ahead)
        for player, step in made.items():
            with step.alone():
                _verify(export, step, dry[player], precisions, place, player)
        if export.eval_graph:
            with phase("eval graph", export.module):
                if (cleaned := evalgraph.write(training)) is not None:
                    gains[EVAL] = cleaned
        if probes := ProbeGraph(export, made, dry, place, cache):
            with phase("probe graph", export.module):
                gains[bundle.PROBE] = probes.write()
        bundle.write(export, made, precisions, place, probes.entries)
        for line in cache.report():
            print(line)
        if export.eval_graph and not verify.lacks_memory(step):
            _verify_evaluation(export, made, dry, place, probes)
        _report(export, made, place, gains)
        accept(place)


def dry_runs(export: Export, made: dict[str, Step], ahead: Ahead | None = None) -> dict[str, DryRun]:
    """The dry runs of all players. What one of them changes is state for all. ahead traces meanwhile."""
    dry = {player: dry_run(export, step, ahead) for player, step in made.items()}
    written = {name: line for step in made.values() for name, line in step.written.items()}
    for player, step in made.items():
        if step.written.keys() != written.keys():
            step.keep(written)
            dry[player] = dry_run(export, step)
    return dry


def dry_run(export: Export, step: Step, ahead: Ahead | None = None) -> DryRun:
    """The dry run of a step; it also sets the step's outputs. ahead traces the step meanwhile. Raises Refusal.

    Small sizes that are all unequal show best what the code assumes of sizes. A module that assumes more than they allow (a least length, a
    relation of two lengths) is tried with a bucket's.
    """
    def attempt(sizes: dict[str, int]) -> DryRun:
        while True:
            inputs = [*export.inputs, SEED, *step.state]
            if ahead:
                ahead.begin(export, step, sizes)
            with step.alone():
                dry = randomness.refuse(export.module, export.losses(),
                                        partial(watch.dry_run, step, inputs, zeros(inputs, sizes), loss=_loss, buckets=export.sizes()))
            if not dry.changed:
                return dry
            step.keep(dry.changed)

    # A step is run again when another player has more state. With outputs it would return a tuple.
    step.outputs = ()
    small = unequal(export.inputs)
    try:
        try:
            dry = attempt(small)
        except watch.Narrow:
            dry = attempt({"B": small["B"], **{name: n for name, n in export.buckets[0].items() if name in small}})
    except captured.Captured as error:
        raise error.named(export.module, export.losses()) from error
    step.outputs = tuple(name for name in dry.result if not name.startswith(state.PREFIX))
    _refuse_carried(export, step, checked(dry))
    return dry


def _refuse_carried(export: Export, step: Step, sizes: dict[str, int]) -> None:
    """Two runs with real numbers: fake ones do not show what the first one leaves for the second."""
    batches = [batch(export.inputs, sizes, np.random.default_rng(n)).values() for n in (4, 5)]
    leftovers.refuse_carried(export.module, *(lambda tensors=tensors: step.named(*tensors, torch.tensor(-1)) for tensors in batches), functions=export.losses())


def _verify(export: Export, step: Step, dry: DryRun, precisions: tuple[str, ...], folder: Path, player: str) -> None:
    of = f" {player}" if player else ""
    if reason := verify.lacks_memory(step):
        print(f"not compared with PyTorch: {reason}")
    else:
        with phase(f"verify{of}", export.module):
            error, name = verify.check(export, step, checked(dry), folder / bundle.training_file(player))
        print(f"  differs from PyTorch by at most {error:.1e} of the norm, in {name}")
    if "bf16" not in precisions:
        return
    if reason := verify.lacks_memory(step, mixed.COPIES):
        print(f"bf16 not compared with PyTorch: {reason}")
        return
    with phase(f"verify{of} bf16", export.module):
        # Large enough that no single frame decides how far f32 is.
        same, f32 = mixed.check(export, step, checked(dry, lambda n: 4 * n + 8, rows=4), folder / bundle.training_file(player, "bf16"))
    print(f"  differs from PyTorch in bf16 by {same}, in f32 by {f32}")


def _verify_evaluation(export: Export, made: dict[str, Step], dry: dict[str, DryRun], folder: Path, probes: ProbeGraph) -> None:
    step = evaluation(export, made)
    sizes = checked(next(iter(dry.values())))
    with phase("verify evaluation", export.module):
        held = verify.left_by_batches(export, step, sizes)
        with step.evaluating():
            error, name = verify.check_evaluation(export, step, sizes, folder / EVAL, held)
    print(f"  differs from PyTorch by at most {error:.1e}, in {name}")
    if probes:
        with phase("verify probes", export.module):
            error, name = probes.check(sizes, held)
        print(f"  differs from PyTorch by at most {error:.1e} of the norm, in {name}")
    elif step.probed:
        probes.refuse_others(step)


def checked(dry: DryRun, grow: Callable[[int], int] = lambda n: n + 4, rows: int = 3) -> dict[str, int]:
    """The sizes of a check: others than those of the dry run, if the module takes them, and so few rows and short lengths that a run fits into _MEMORY.

    A module that takes no small sizes had a dry run with a bucket's. Of the parts of them that the module takes, the largest that fits is chosen,
    or the smallest.
    """
    sizes = {**next(filter(dry.holds, [{name: grow(n) for name, n in dry.sizes.items()}]), dry.sizes), "B": rows}
    few = {**sizes, "B": _FEWEST_ROWS}
    parts = ({name: n if name == "B" else max(n // part, _SHORTEST) for name, n in few.items()} for part in (2, 4, 8, 16))
    for chosen in (sizes, few, *filter(dry.holds, parts)):
        if dry.bytes(chosen) <= _MEMORY:
            break
    return chosen


def _loss(result: dict[str, Tensor]) -> Tensor:
    """Checks that Step returned float32 scalars, and returns the loss."""
    for name, x in result.items():
        if not name.startswith(state.PREFIX) and (x.dim() != 0 or x.dtype != torch.float32):
            raise Refusal(f"{name} is {str(x.dtype).removeprefix('torch.')}{list(x.shape)}, not a float32 scalar", f"reduce {name} with .sum() or .mean(), and .float() it")
    return result["loss"]


def shortcuts(module: nn.Module) -> list[str]:
    """What PyTorch computes in another way after module.eval() than in training, and than any graph: for whoever compares the two."""
    names = [name for name, part in module.named_modules() if isinstance(part, nn.TransformerEncoder) and part.use_nested_tensor]
    return [f"note: after module.eval() and under torch.no_grad(), PyTorch makes the padded frames of {name or 'the module'} 0, where it gets "
            "src_key_padding_mask; the graphs do as in training. nn.TransformerEncoder(..., enable_nested_tensor=False) does so everywhere" for name in names]


def _describe(module: nn.Module) -> None:
    """Prints the size of the module."""
    parameters = list(module.parameters())
    print(f"{type(module).__name__}: {sum(p.numel() for p in parameters):,} parameters in {len(parameters)} tensors", flush=True)


def _report(export: Export, made: dict[str, Step], folder: Path, gains: dict[str, Gains]) -> None:
    """Prints what the graphs of a bundle are made of, what cleaning took away, and what a step costs."""
    document = json.loads((folder / bundle.INDEX).read_text(encoding="utf-8"))
    for graph in document["graphs"]:
        print(f"{graph['file']}: " + (f"cleaned {gains[graph['file']]}" if graph["file"] in gains else f"the part of {bundle.TRAIN} that it needs"))
        print(f"  {sum(graph['nodes'].values())} nodes: " + ", ".join(f"{n} {kind}" for kind, n in graph["nodes"].items()))
    for c in document["cost"]:
        print(f"a step of {c['batch_size']} rows, bucket {c['bucket']}: {c['flops'] / 1e9:.3g} GFLOP, {c['bytes'] / 1e9:.3g} GB read and written at most")
    for line in _recurrences(export, made, folder):
        print(line)


def _recurrences(export: Export, made: dict[str, Step], folder: Path) -> list[str]:
    """What a GPU needs for recurrences."""
    found = [kinds for player in made for kinds in cost.recurrences(folder / bundle.training_file(player))]
    if not found:
        return []
    *_, longest = bundle.costs(export, made, folder)
    time = lambda nodes: f"{nodes:,} nodes one after the other. A GPU needs about {nodes * _LAUNCH:.2g} s for that, whatever their size"
    if kinds := set().union(*found):
        return [f"warning: {sum(map(bool, found))} of {len(found)} recurrences (Scan) have {', '.join(sorted(kinds))} in a step, so that no kernel computes all steps: a step of the "
                f"last bucket runs {time(longest.started)}"]
    return [f"note: {len(found)} recurrences (Scan): a kernel computes all steps of one, if the GPU's machine has NVRTC (xtts-host doctor). If it has not, a step of the last bucket "
            f"runs {time(longest.nodes)}"]
