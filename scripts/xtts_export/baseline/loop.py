"""A training loop of PyTorch on the batches of a run of xtts-host: eager, with autograd and PyTorch's optimizers, without the empty rows.

Of the exporter it has the random numbers of a batch's seed, noise and the masks of dropout (eager.py). No function is replaced.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from .. import eager, inputs
from ..module import Export
from . import reference


def train(export: Export, document: dict, lines: Iterable[dict], batches: Iterable[tuple[list[Tensor], Tensor]],
          begin: "Callable[[Export, dict], Loop] | None" = None) -> Iterator[dict[str, dict[str, float]]]:
    """Each step's scalars by player: its loss before the update, metrics and grad_norm before clipping.

    document is the bundle's, lines are those of the run's metrics.jsonl, which have the learning rates, and batches are the tensors of the
    inputs, with the seed. The module is trained, from the weights that it has. begin may make another Loop.
    """
    loop = (begin or Loop)(export, document)
    for line, (tensors, seed) in zip(lines, batches, strict=True):
        yield loop.step(line, dict(zip((i.name for i in export.inputs), tensors, strict=True)), seed)


class Loop:
    def __init__(self, export: Export, document: dict):
        self.export, self.module = export, export.module
        self.specs = {p["name"]: p["optimizer"] for p in document.get("players", ())} or {"": document["optimizer"]}
        self.state = {s["name"]: s.get("player", "") for s in document.get("state", ())}
        self.own = {player: {name: p for name, p in self.module.named_parameters() if p.requires_grad and export.owner(name) == player} for player in self.specs}
        self.optimizers = {player: reference.optimizer(self.module, {**spec, "lr": 1.0}, self.own[player]) for player, spec in self.specs.items()}
        # What each group takes the rate times.
        self.factors = {player: [group["lr"] for group in o.param_groups] for player, o in self.optimizers.items()}

    def step(self, line: dict, batch: dict[str, Tensor], seed: Tensor) -> dict[str, dict[str, float]]:
        batch, made = self._rows(batch), {}
        for player in self.specs:
            others = {name: self.module.get_buffer(name).clone() for name, owner in self.state.items() if owner != player}
            # Every player begins with the same random numbers, as its graph does.
            with eager.seeded(seed):
                result = self._results(player, batch, seed)
            rate = line.get(f"lr.{player}", line["lr"])  # that of the last player has no name
            made[player] = {name: x.item() for name, x in result.items()} | {"grad_norm": self._update(player, rate, result["loss"])}
            for name, x in others.items():
                self.module.get_buffer(name).copy_(x)
        return made

    def _rows(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The batch without its empty rows, which are the last ones."""
        rows = inputs.occupied(self.export.inputs, batch)
        count = None if rows is None else int(rows.sum())
        return inputs.clean(self.export.inputs, {i.name: batch[i.name][:count] if i.shape[:1] == ("B",) else batch[i.name] for i in self.export.inputs})

    def _results(self, player: str, batch: dict[str, Tensor], seed: Tensor) -> dict[str, Tensor]:
        takes = inspect.signature(self.module.forward).parameters
        outputs = self.module(**{name: x for name, x in (batch | {"seed": seed}).items() if name in takes})
        loss = self.export.players[player].loss if player else self.export.loss
        return outputs if loss is None else loss(outputs, batch)

    def _update(self, player: str, rate: float, loss: Tensor) -> float:
        optimizer = self.optimizers[player]
        for group, factor in zip(optimizer.param_groups, self.factors[player], strict=True):
            group["lr"] = rate * factor
        self.module.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.own[player].values(), self.specs[player]["grad_clip"] or float("inf"))
        optimizer.step()
        return norm.item()
