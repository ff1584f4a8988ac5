"""Whether the fields of an Export are what they must be: the first thing that is looked at."""

import re

import torch
from torch import nn

from .inputs import DTYPES, LISTED, Input, lengths
from .refusal import Refusal, kind

ORIGINS = ("dataset", "stage", *LISTED, "schedule", "window")
_EXAMPLE = 'sequence("mel", "f32", "T_mel", 80, lengths="mel_lengths")'


def check(export) -> None:
    """Raises Refusal for a field that no bundle can have."""
    _refuse(not isinstance(export.module, nn.Module), f"module is {kind(export.module)}", "give an instance of torch.nn.Module: module=Model()")
    compiled = [name for name, part in export.module.named_modules() if isinstance(part, torch.jit.ScriptModule)]
    _refuse(bool(compiled), f"module {compiled and (compiled[0] or type(export.module).__name__)} is compiled by TorchScript, and its code is no longer Python",
            "build it from its class, and give that the weights: module.load_state_dict(torch.jit.load(file).state_dict())")
    _refuse(not isinstance(export.name, str) or not export.name, f"name is {export.name!r}", "give the bundle a name in lower case")
    _refuse(export.loss is not None and not callable(export.loss), f"loss is {kind(export.loss)}", "give a function of (outputs, batch)")
    _refuse(not isinstance(export.features, dict), f"features is {kind(export.features)}", "give a dict, as features in docs/bundle.md")
    _refuse(not isinstance(export.inputs, list) or not export.inputs, "inputs is no list of inputs", f"inputs=[*{_EXAMPLE}]")
    _check_players(export)
    for at, i in enumerate(export.inputs):
        _refuse(not isinstance(i, Input), f"inputs[{at}] is {i!r}", f"inputs=[*{_EXAMPLE}]: with the asterisk")
        _refuse(not isinstance(i.name, str) or not i.name.isidentifier(), f"the name of inputs[{at}] is {i.name!r}", "it is an argument of forward")
        _check_input(i)
    names = [i.name for i in export.inputs]
    _refuse(len(set(names)) < len(names), f"inputs have one name twice: {', '.join(names)}", "give every input a name of its own")
    for name in sorted(lengths(export.inputs) - set(names)):
        raise Refusal(f"lengths {name!r} is no input", f"inputs are {', '.join(names)}; sequence() makes both")
    _check_columns(export.inputs)
    _check_buckets(export)


def _check_players(export) -> None:
    if not export.players:
        return
    _refuse(len(export.players) < 2, "there is one player", "leave players out, and give loss and optimizer")
    _refuse(export.loss is not None, "an export with players has a loss", "each player has its own: Player(loss=...)")
    for name, player in export.players.items():
        _refuse(not re.fullmatch("[a-z][a-z0-9_]{0,31}", name), f"a player's name is {name!r}", "use small letters, digits and underscores")
        _refuse(not isinstance(player.schedule, dict | None), f"schedule of {name} is {kind(player.schedule)}", 'schedule={"name": "cosine", "warmup_steps": 20}')
        _refuse(not callable(player.loss), f"loss of {name} is {kind(player.loss)}", "give a function of (outputs, batch)")
    trained = {export.owner(name) for name, p in export.module.named_parameters() if p.requires_grad}
    for name in export.players:
        _refuse(name not in trained, f"player {name} has no parameter that is trained", f"parameters are {', '.join([n for n, _ in export.module.named_parameters()][:5])}, ...")


def _check_input(i: Input) -> None:
    _refuse(i.dtype not in DTYPES, f"input {i.name} has the type {i.dtype!r}", f"give one of {', '.join(DTYPES)}")
    _refuse(any(not isinstance(d, str | int) or isinstance(d, int) and (isinstance(d, bool) or d < 1) or d == "" for d in i.shape),
            f"input {i.name} has the shape {list(i.shape)}", "numbers from 1 are fixed sizes, strings are symbols")
    _refuse(i.lengths is not None and (not isinstance(i.lengths, str) or len(i.shape) < 2), f"input {i.name} has lengths {i.lengths!r}",
            "lengths names the input that counts the valid part of axis 1")
    _refuse(i.below is not None and (not isinstance(i.below, int) or not 1 <= i.below < 2**31), f"input {i.name} has below {i.below!r}",
            "below is the size of the table that the integers index")
    _refuse(i.origin not in ORIGINS, f"input {i.name} has the origin {i.origin!r}", f"give one of {', '.join(ORIGINS)}")
    _refuse(i.origin in LISTED and i.dtype == "i64", f"input {i.name} of origin {i.origin} is i64", "the host makes f32, i32, u8 and bool; call .long() in forward")
    given = [key for key in ("column", "vocabulary", "split") if getattr(i, key) is not None]
    _refuse(bool(given) and i.origin not in LISTED, f"input {i.name} has {given and given[0]} and the origin {i.origin}", 'origin="column" or origin="file" takes it from the list')
    _refuse(i.origin == "file" and len(given) > 1, f"input {i.name} of origin file has {' and '.join(given[1:])}", 'symbols are in the list itself: origin="column"')
    symbols = i.vocabulary
    _refuse(symbols is not None and (not isinstance(symbols, dict) or not symbols or any(not isinstance(s, str) or type(n) is not int or n < 0 for s, n in symbols.items())),
            f"the vocabulary of input {i.name} is not symbols and their ids", 'vocabulary={"a": 0, "b": 1}')
    _refuse(i.split not in (None, "space", "character"), f"input {i.name} has split {i.split!r}", 'split is "space" or "character"')


def _check_columns(inputs: list[Input]) -> None:
    counts = lengths(inputs)
    for i in inputs:
        _refuse(i.origin in LISTED and (i.column is None) != (i.name in counts), f"input {i.name} of origin {i.origin} has the column {i.column!r}",
                "lengths are counted, and every other input names its column")


def _check_buckets(export) -> None:
    symbols = sorted({d for i in export.inputs for d in i.shape if isinstance(d, str) and d != "B"})
    _refuse(not isinstance(export.buckets, list) or not export.buckets, "buckets is no list of sizes", f"buckets=[{{{', '.join(f'{s!r}: 100' for s in symbols)}}}]")
    for at, bucket in enumerate(export.buckets):
        _refuse(not isinstance(bucket, dict), f"buckets[{at}] is {kind(bucket)}", f"buckets=[{{{', '.join(f'{s!r}: 100' for s in symbols)}}}]")
        missing = [s for s in symbols if s not in bucket]
        _refuse(bool(missing), f"buckets[{at}] has no size of {', '.join(f'{s} (a dimension of {_of(export.inputs, s)})' for s in missing)}",
                "buckets give every symbol of the inputs' shapes a size, but B")
        bad = [s for s, n in bucket.items() if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n < 2**31]
        _refuse(bool(bad), f"buckets[{at}] has the size {', '.join(f'{s} = {bucket[s]!r}' for s in bad)}", "sizes are integers from 1")


def _of(inputs: list[Input], symbol: str) -> str:
    return " and ".join(i.name for i in inputs if symbol in i.shape)


def _refuse(wrong: bool, reason: str, hint: str) -> None:
    if wrong:
        raise Refusal(reason, hint)

