"""A module and what it needs to become a bundle: the description that `xtts-export module` takes, and its training step."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor, nn

from . import batchnorm, derivatives, described, eager, leftovers, lowering, names, probes, refusal, state, tensors
from .inference import Inference
from .inputs import Input, clean, occupied
from .refusal import Refusal

METRIC = "metric."
ADAMW = {"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0}


@dataclass(frozen=True)
class Player:
    """One of several that train in turn on each batch (docs/players.md), as the discriminator and the generator of a GAN.

    parameters are patterns of names of what it trains; each parameter of the module belongs to the first player that matches it. loss is
    as that of Export; it may call parts of the module. optimizer and schedule are as in bundle.json; without a schedule, the player has that
    of Export.
    """

    parameters: str | tuple[str, ...]
    loss: Callable[[object, dict[str, Tensor]], dict[str, Tensor]]
    optimizer: dict = field(default_factory=lambda: dict(ADAMW))
    schedule: dict | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        return (self.parameters,) if isinstance(self.parameters, str) else tuple(self.parameters)


@dataclass
class Export:
    """What becomes a bundle; `build()` of `xtts-export module FILE:build` returns one.

    module's forward takes inputs by name: those that it has parameters for, and `seed` (i64 scalar, None in the eval graph) when
    it has one. Its parameters keep their state_dict names; those with requires_grad False are frozen.

    Buffers that forward changes while the module is in training mode are state of the bundle (state.py).

    In the batch that it gets, everything after a row's length is padding. nn.Dropout and the dropout of PyTorch's attention are drawn from
    the seed.

    loss(outputs, batch) gets what forward returned and the batch as {name: tensor}. It returns scalars by name: "loss", "loss_weight"
    (what the loss is a mean over; see accumulation) and metrics under any other names. Without loss, forward returns them itself.

    buckets give every symbol but B a value, in ascending order. accumulation is "exact" when one denominator, loss_weight,
    covers the whole loss, "weighted" when each term has a window() of its own, and "mean" otherwise. tokenizer is the text of a Hugging Face tokenizer.json,
    and tokenizer_prefix what comes before each text, such as "[{language}]". files are the texts of further files of the bundle, by name. The other fields are the keys of bundle.json of the same
    names (docs/bundle.md).

    adapters are those of --lora (lora.py).

    players, by name, train in turn on each batch; then they have the losses and the optimizers. The last one's loss is that of the model.

    inference are graphs that no training step runs (inference.py), and synthesis says how they speak (docs/synthesize.md). They see the module's parameters as they are when the bundle is written.

    dynamic says that forward takes texts and clips of every length up to its T_text and T_wav, so that a run computes buckets from its data.
    strides are symbols that follow from T_wav: one element for so many samples that have begun.

    numbered says that bundle.json has the exporter's number. The repository's own bundles keep their bytes without it.
    """

    name: str
    module: nn.Module
    inputs: list[Input]
    buckets: list[dict[str, int]]
    features: dict
    loss: Callable[[object, dict[str, Tensor]], dict[str, Tensor]] | None = None
    tokenizer: str | None = None
    tokenizer_prefix: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    pipeline: list[dict] = field(default_factory=list)
    optimizer: dict = field(default_factory=lambda: dict(ADAMW))
    schedule: dict = field(default_factory=lambda: {"name": "cosine", "warmup_steps": 20})
    accumulation: str = "exact"
    baselines: list[dict] = field(default_factory=list)
    description: str = ""
    license: str = "Apache-2.0"
    eval_graph: bool = True
    dynamic: dict[str, int] | None = None
    strides: dict[str, int] = field(default_factory=dict)
    adapters: list[dict] = field(default_factory=list)
    players: dict[str, Player] = field(default_factory=dict)
    inference: list[Inference] = field(default_factory=list)
    synthesis: dict | None = None
    numbered: bool = True

    def turns(self) -> tuple[str, ...]:
        """The names of the players, in their order; the one of an export without players has none."""
        return tuple(self.players) or ("",)

    def losses(self) -> tuple[Callable, ...]:
        """The functions of losses."""
        return tuple(f for f in (self.loss, *(player.loss for player in self.players.values())) if f is not None)

    def owner(self, tensor: str, kind: str = "parameter") -> str:
        """The player that a parameter or a buffer belongs to. Raises Refusal if there is none."""
        for name, player in self.players.items():
            if names.match(player.patterns, {"name": tensor}):
                return name
        if self.players:
            raise Refusal(f"{kind} {tensor} belongs to no player", f"name it, or its module, in the parameters of {' or '.join(self.players)}")
        return ""

    def sizes(self) -> list[dict[str, int]]:
        """The sizes that the graphs are checked with: the buckets' and, with dynamic, those of its limits, of an eighth of them, and so on."""
        sizes, limits = list(self.buckets), dict(self.dynamic or {})
        hop = self.features.get("hop_length", 1)
        while limits and min(limits["T_wav"] // hop, *(n for name, n in limits.items() if name != "T_wav"), 1 << 30) >= 2:
            frames = {"T_mel": 1 + limits["T_wav"] // hop} if "T_mel" in self.buckets[0] else {}
            steps = {name: -(-limits["T_wav"] // stride) for name, stride in self.strides.items()}
            sizes.append({**self.buckets[0], **limits, **frames, **steps})
            limits = {name: n // 8 for name, n in limits.items()}
        return sizes


class Step(nn.Module):
    """A module and its loss as one: takes the batch's tensors in the order of the inputs, the seed and the state; returns scalars and the new state.

    players are those whose losses are computed; the loss of the last one is the step's. The result is a dict by output name until outputs is
    set, then a tuple in its order, and the state of these players after it. outputs of None become those of the next run.
    Without a seed, which an evaluation lacks, no state is returned. Without state, that of the module is taken.
    """

    outputs: tuple[str, ...] | None = ()
    # The buffers that forward changes.
    state: tuple[Input, ...] = ()
    # The masks of dropout in the last run: shapes and rates.
    drawn: tuple = ()
    # Whether the last run drew other random numbers.
    draws_noise = False
    # The lines of the probes of the last run, by name, and whether a run returns them.
    probed: dict[str, str | None] = {}
    probing = False

    def __init__(self, export: Export, *players: str):
        super().__init__()
        self.players = players or export.turns()
        described.check(export)
        # The module's own tables, so that parameters keep their names. A tuple hides the module from nn.Module's bookkeeping.
        self._parameters, self._modules, self._buffers = export.module._parameters, export.module._modules, export.module._buffers
        self._export = (export,)
        self.written: dict[str, str | None] = {}
        self._takes = inspect.signature(export.module.forward).parameters
        _refuse_types(export.module)
        tensors.freeze_large_buffers(export.module)

    @property
    def inputs(self) -> list[Input]:
        return self._export[0].inputs

    @property
    def module(self) -> nn.Module:
        return self._export[0].module

    def forward(self, *tensors: Tensor):
        results = self.named(*tensors)
        if self.outputs is None:
            self.outputs = tuple(name for name in results if not name.startswith(state.PREFIX))
        left = [x for name, x in results.items() if name.startswith(state.PREFIX)]
        return (*(results[name] for name in self.outputs), *left) if self.outputs else results

    def keep(self, written: dict[str, str | None]) -> None:
        """Makes state of these buffers, too, which the lines write."""
        [export] = self._export
        self.written |= written
        tensors.restore_buffers(export.module, written)
        # Not by nn.Module, where the module may have a part of that name.
        object.__setattr__(self, "state", state.specs(export.module, sorted(self.written)))

    def returned(self) -> tuple[str, ...]:
        """The names of what the training graph returns beside gradients."""
        return *self.outputs, *(state.PREFIX + spec.name for spec in self.changed())

    def changed(self) -> list[Input]:
        """The state of the step's players. That of others is what these have left, whatever forward makes of it."""
        [export] = self._export
        return [spec for spec in self.state if export.owner(spec.name, "buffer") in self.players]

    def evaluating(self) -> AbstractContextManager[None]:
        """As an evaluation has it."""
        return state.evaluating(self._export[0].module)

    def named(self, *tensors: Tensor) -> dict[str, Tensor]:
        """The results by name."""
        return self._named(tensors, lowering.seeded, batchnorm.counting)

    def plain(self, *tensors: Tensor) -> dict[str, Tensor]:
        """The results as the user's own module has them, in PyTorch. An empty row counts there as any other."""
        return self._named(tensors, eager.seeded, lambda _: nullcontext())

    def _named(self, tensors: tuple[Tensor, ...], seeded: Callable, counting: Callable) -> dict[str, Tensor]:
        [export] = self._export
        count = len(export.inputs)
        batch = clean(export.inputs, {i.name: x for i, x in zip(export.inputs, tensors, strict=False)})
        seed, *rest = (None, *tensors[count:]) if [x.dtype for x in tensors[count:count + 1]] != [torch.int64] else tensors[count:]
        before = dict(zip([spec.name for spec in self.state], rest, strict=True)) if rest else state.values(export.module, self.state)
        # Not computed unless something asks: it would number the graph's other values anew.
        rows = cache(lambda: occupied(export.inputs, batch))
        with leftovers.removed(export.module, export.losses()), state.held(export.module, before) as left, counting(rows):
            named = derivatives.recorded(lambda: self._results(batch, seed, seeded))
            if seed is not None:
                own, after = {spec.name for spec in self.changed()}, left()
                # A batch without rows changes nothing.
                named |= {state.PREFIX + name: x if rows() is None else torch.where(rows().any(), x, before[name]) for name, x in after.items() if name in own}
        return named

    def _results(self, batch: dict[str, Tensor], seed: Tensor | None, seeded: Callable) -> dict[str, Tensor]:
        [export] = self._export
        given = {**batch, "seed": seed}
        if unknown := [name for name, p in self._takes.items() if name not in given and p.default is p.empty and p.kind != p.VAR_KEYWORD]:
            raise Refusal(f"forward of {type(export.module).__name__} takes {unknown[0]!r}, which is no input",
                          f"inputs are {', '.join(i.name for i in export.inputs)}, and seed")
        found = probes.Probes(self.probing)
        with seeded(given["seed"]) as draws, found.collected():
            outputs = export.module(**{name: x for name, x in given.items() if name in self._takes})
            results = {player: self._scalars(player, outputs, batch) for player in self.players}
        # Not by nn.Module, as above.
        object.__setattr__(self, "drawn", tuple(draws.places))
        object.__setattr__(self, "draws_noise", draws.site > 0)
        object.__setattr__(self, "probed", found.places)
        named, metrics = {}, {}
        for player, result in results.items():
            named = {"loss": result.pop("loss"), "loss_weight": result.pop("loss_weight")}
            if player != export.turns()[-1]:
                metrics[f"{METRIC}{player}.loss"] = named["loss"]
            result = {METRIC + name.removeprefix(METRIC): x for name, x in result.items()}
            if same := sorted(metrics.keys() & result.keys()):
                raise Refusal(f"two players return the metric {same[0].removeprefix(METRIC)}", "give every player's metrics names of their own")
            metrics |= result
        return named | {name: x.detach() for name, x in metrics.items()} | {"loss_weight": named["loss_weight"].detach()} | found.tensors

    def _scalars(self, player: str, outputs: object, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the loss of a player returns for the outputs of the module."""
        [export] = self._export
        loss = export.players[player].loss if player else export.loss
        result = loss(outputs, batch) if loss is not None else outputs
        if not isinstance(result, dict) or not {"loss", "loss_weight"} <= result.keys():
            returned = f"{{{', '.join(map(repr, result))}}}" if isinstance(result, dict) else refusal.kind(result)
            raise Refusal(f"{f'loss function of {player}' if player else 'loss function' if loss else 'forward'} returned {returned} without loss and loss_weight",
                          'return {"loss": ..., "loss_weight": ..., "any_metric": ...}')
        if other := [name for name in result if not isinstance(name, str)]:
            raise Refusal(f"a metric has the name {other[0]!r}", "names of metrics are strings")
        return dict(result)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within it, only the parameters of the step's players are trained."""
        [export] = self._export
        others = [p for name, p in self.named_parameters() if p.requires_grad and export.owner(name) not in self.players]
        for p in others:
            p.requires_grad_(False)
        try:
            yield
        finally:
            for p in others:
                p.requires_grad_(True)


def steps(export: Export) -> dict[str, Step]:
    """The training step of each player, by name."""
    return {player: Step(export, player) for player in export.turns()}


def _refuse_types(module: nn.Module) -> None:
    for name, p in module.named_parameters():
        if p.dtype != torch.float32:
            hint = "keep two parameters of float32, and torch.complex(a, b) of them in forward" if p.dtype.is_complex else "master weights are float32: call module.float()"
            raise Refusal(f"parameter {name} is {str(p.dtype).removeprefix('torch.')}", hint)
