"""Trains models in the program and beside it in a loop of PyTorch, on the same batches, and compares the losses.

    python -m xtts_export.baseline.beside ../scripts/examples/vits.py:build ../scripts/examples/code_gpt.py:build --steps 200 --work ../runs/beside

The batches are those of the embedded sample, or of --train-data, as the program's pipeline makes them.

Each builder is exported to WORK/NAME/bundle, unless a bundle is there. The program trains it, and PyTorch trains what the builder returns:
loop.py. A second loop of PyTorch is rounded otherwise: before each step, every weight moves by one unit in the last place. How far it comes
from the first one is what rounding alone does to the losses of that model. The losses are in WORK/NAME/losses.json, and the output ends with a
table in Markdown. The exit status is 1 when the program is farther from PyTorch than --limit, and than twice the second loop.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from .. import builtin, command, progress
from ..progress import phase
from . import choices, loop, rerun

LAST = 20
ROUNDED = "rounded otherwise"
PROGRAM = builtin.REPOSITORY / "bin/xtts-host"


@dataclass
class Losses:
    """The losses of a player in each step."""

    model: str
    player: str
    host: list[float]
    pytorch: list[float]
    rounded: list[float]  # of the second loop
    chosen: list[float] = field(default_factory=list)  # of the one that takes the graph's choices

    def difference(self, steps: int | None = None) -> float:
        """The largest relative difference between the program and PyTorch, in the first steps or in all."""
        return _largest(self.host[:steps], self.pytorch[:steps])

    def rounding(self, steps: int | None = None) -> float:
        """The same between the two loops of PyTorch."""
        return _largest(self.rounded[:steps], self.pytorch[:steps])

    def left(self) -> float:
        """The same between the program and PyTorch with the graph's choices."""
        return _largest(self.host, self.chosen)

    def first(self) -> int | None:
        """The first step whose losses differ by more than rounding does."""
        return next((n for n, (a, b) in enumerate(zip(self.host, self.pytorch, strict=True), 1) if _largest([a], [b]) > choices.NEAR), None)

    @property
    def end(self) -> float:
        """The relative difference between the program and PyTorch in the mean of the last steps."""
        return _largest(*([statistics.fmean(x[-LAST:])] for x in (self.host, self.pytorch)))

    def within(self, limit: float) -> bool:
        return self.difference() <= max(limit, 2 * self.rounding()) and self.end <= limit


def _largest(losses: list[float], reference: list[float]) -> float:
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True))


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        refuse_shared(options.builders)
        found = [losses for builder in options.builders
                 for losses in compare(builder, options.work, options.steps, options.batch_size, _data(options), options.choices)]
    except command.Refusal as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
    print(table(found))
    return 0 if all(losses.within(options.limit) for losses in found) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m xtts_export.baseline.beside", description=__doc__.splitlines()[0])
    parser.add_argument("builders", nargs="+", metavar="MODULE:FUNCTION", help="as xtts-export module takes it")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="the folder of bundles and runs; a bundle in it is not exported again")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="how many steps (default: 200)")
    parser.add_argument("--batch-size", type=int, default=4, metavar="N", help="rows of a batch (default: 4)")
    parser.add_argument("--train-data", type=Path, metavar="DATA",
                        help="a data set's folder or list, as xtts-host takes it (default: the embedded sample)")
    parser.add_argument("--list-layout", metavar="LAYOUT", help="of a list, as xtts-host takes it")
    parser.add_argument("--choices", action="store_true",
                        help="train in PyTorch once more, with the choices of the graph where rounding decides, as of a code or of a phase; the run saves its weights in each step")
    parser.add_argument("--limit", type=float, default=0.01, help=f"the largest relative difference of a loss, and of the mean of the last {LAST} (default: 0.01)")
    return parser


def refuse_shared(builders: list[str]) -> None:
    """Refuses two builders of one name, which is that of their folder."""
    first = {}
    for builder in builders:
        name = command.build(builder).name
        if name in first:
            raise command.Refusal(f"{first[name]} and {builder} both return an Export of the name {name!r}, so they would share the folder WORK/{name}",
                                  "compare them in two calls, each with a --work of its own")
        first[name] = builder


def _data(options: argparse.Namespace) -> list[str]:
    """The program's flags for the data."""
    given = {"--train-data": options.train_data and options.train_data.resolve(), "--list-layout": options.list_layout}
    return [str(x) for flag, value in given.items() if value for x in (flag, value)]


def compare(builder: str, work: Path, steps: int, batch_size: int, data: Sequence[str] = (), chosen: bool = False) -> list[Losses]:
    """The losses of each player of what the builder returns. data are the program's flags for the data. chosen asks for Losses.chosen, too."""
    folder = work.resolve() / command.build(builder).name
    bundle, run, debug = (folder / name for name in ("bundle", "run", "debug"))
    if not bundle.exists() and command.main(["module", builder, "--out", str(bundle)]):
        sys.exit(1)
    for former in (run, debug):
        shutil.rmtree(former, ignore_errors=True)
    (debug / "batches").mkdir(parents=True)
    with phase(f"{folder.name}: {steps} steps in the program"):
        progress.at(lambda: f"{_steps(run / 'metrics.jsonl')} steps done")
        _program("--graph", bundle, "--batch-size", batch_size, "--max-steps", steps, "--eval-every", 0, "--run-dir", run,
                 "--debug-dir", debug, *data, *(("--checkpoint-every", 1, "--keep-last", 0) if chosen else ()))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    if skipped := [line["step"] for line in lines if line["loss"] is None]:
        sys.exit(f"error: {run}: step {skipped[0]} was skipped, so it has no loss to compare")
    document = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))

    def trained(kind: str = "", begin: Callable | None = None) -> list[dict[str, dict[str, float]]]:
        export = command.build(builder)
        load(export.module, bundle, [spec["name"] for spec in document.get("state", ())])
        batches = rerun.batches(export, debug / "batches", steps)
        with phase(f"{folder.name}: {steps} steps in PyTorch{kind and f', {kind}'}"):
            return list(told(loop.train(export, document, lines, nudging(export.module, batches) if kind == ROUNDED else batches, begin), steps))

    made, others = [trained(), trained(ROUNDED)], []
    if chosen:
        made.append(trained("with the graph's choices", lambda export, document: choices.Loop(export, document, bundle, run, others)))
    shutil.rmtree(debug)
    *first, last = made[0][0]
    found = [Losses(document["name"], player, [line[key] for line in lines], *([step[player]["loss"] for step in steps] for steps in made))
             for player, key in (*((player, f"{player}.loss") for player in first), (last, "loss"))]
    if chosen:
        print("\n".join(chosen_otherwise(found, others)))
    (folder / "losses.json").write_text(json.dumps([asdict(x) for x in found]), encoding="utf-8")
    return found


def chosen_otherwise(found: list[Losses], others: list[choices.Choice]) -> Iterator[str]:
    """What the output says of the choices, and of each player's losses with and without them."""
    if others:
        first, most = others[0], max(x.apart for x in others)
        yield f"{found[0].model}: rounding decides {sum(x.count for x in others)} choices in {len({x.step for x in others})} steps otherwise than PyTorch does"
        yield (f"  the first: {first.count} of {first.of} in step {first.step}{first.place and f', {first.place}'}; the numbers are {first.apart:.1e} of the largest one apart, "
               f"and {most:.1e} at most in any step")
    else:
        yield f"{found[0].model}: PyTorch makes all choices as the graph"
    for x in found:
        since = f"from step {x.first()} on by more than {choices.NEAR:.0e}" if x.first() else f"by less than {choices.NEAR:.0e}"
        yield f"  losses{x.player and f' of {x.player}'} differ {since}, by up to {x.difference():.1e}; with the graph's choices in PyTorch by up to {x.left():.1e}"


def told(made: Iterator, steps: int) -> Iterator:
    """The results of the steps. Before each, the phase notes which one it is."""
    for n in range(1, steps + 1):
        progress.at("step", n, steps)
        yield next(made)


def _steps(metrics: Path) -> int:
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


def load(module: nn.Module, bundle: Path, state: list[str]) -> None:
    """Gives the module the parameters and the state of the bundle. Constants are the builder's. Raises Refusal if the two do not fit.

    Not by load_state_dict, which lacks buffers that are not persistent and wants every name of a tied parameter.
    """
    file, hint = bundle / "params.safetensors", f"the bundle is of another builder, or of a former one: remove {bundle}"
    weights, _ = rerun.read(file)
    parameters = dict(module.named_parameters())
    # A large buffer is a frozen parameter of the bundle.
    held = dict(module.named_buffers(remove_duplicate=False)) | parameters
    if missing := sorted({*parameters, *state} - weights.keys()):
        raise command.Refusal(f"{file} lacks {missing[0]}", hint)
    for name, x in weights.items():
        if name not in held:
            raise command.Refusal(f"{file} has {name}, which the module lacks", hint)
        if x.shape != held[name].shape:
            raise command.Refusal(f"{name} is {list(x.shape)} in {file}, and {list(held[name].shape)} in the module", hint)
        with torch.no_grad():
            held[name].copy_(x)


def nudging(module: nn.Module, batches: Iterator) -> Iterator:
    """The batches. Before each, every weight moves up or down by one unit in the last place."""
    generator = torch.Generator().manual_seed(0)
    for batch in batches:
        with torch.no_grad():
            for p in module.parameters():
                up = torch.rand(p.shape, generator=generator) < 0.5
                p.copy_(torch.nextafter(p, torch.where(up, torch.inf, -torch.inf)))
        yield batch


def _program(*arguments: object) -> None:
    if not PROGRAM.is_file():
        sys.exit(f"error: {PROGRAM} is missing\nhint: make build")
    done = subprocess.run([PROGRAM, "--plugins", "plugins", *map(str, arguments)], cwd=builtin.REPOSITORY, capture_output=True, text=True,
                          env={**os.environ, "XTTS_HOST_DEVICE": "cpu"})
    if done.returncode:
        sys.exit(f"{done.stderr.strip()}\nthe run of {arguments[1]} ended with status {done.returncode}")


def table(found: list[Losses]) -> str:
    """In each cell of a step the loss of the program, then that of PyTorch."""
    steps = len(found[0].host)
    half = (steps + 1) // 2
    shown, until = sorted({1, half, steps}), (half, steps)
    rows = [["model", "player", *(f"step {step}" for step in shown), *(f"difference to step {step}" for step in until),
             f"of the mean of the last {LAST}", *(f"rounding to step {step}" for step in until)]]
    rows.append(["---"] * len(rows[0]))
    for x in found:
        losses = [f"{x.host[step - 1]:.6g}, {x.pytorch[step - 1]:.6g}" for step in shown]
        numbers = (*map(x.difference, until), x.end, *map(x.rounding, until))
        rows.append([x.model, x.player or "-", *losses, *(f"{number:.1e}" for number in numbers)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
