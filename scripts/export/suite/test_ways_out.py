"""Each way out that a hint names is followed by a test: by the way out of a refused module of the suite (test_suite.py), or by a
pair of followed.py. untried.py has the hints of before that no module follows."""

import ast
from difflib import SequenceMatcher
from pathlib import Path

import pytest
import torch

from .. import ways_out, writer
from ..module import Step
from ..refusal import Refusal
from .case import cases, errors, exported, write
from .followed import PAIRS, Followed, Refused
from .untried import UNTRIED

ROOT = Path(__file__).parents[1]
# Files about arguments and files of the command, and not about what a module does: tests of theirs have their hints.
COMMANDS = {"cleantext.py", "command.py", "described.py", "inferencegraph.py", "listing.py", "lora.py", "voicebpe.py"}
FOLDERS = {"suite", "mutate", "baseline", "testdata", "xtts"}
# Of a part of a reason that says which one it is.
SHORTEST = 6
# So many letters are the same in no two reasons but by this phrase.
SAME, COMMON = 13, "has no form in plain ONNX"

# Parts of the messages that have one.
OF_OPERATORS = "has no form", "as many elements", "draws random numbers", "embedding_renorm", "computes in"


def test_every_way_out_is_tried(tmp_path):
    hints = set()
    every = [case for group in cases().values() for case in group if case.refused]
    for case in (case for case in every if any(part in case.refused for part in OF_OPERATORS)):
        try:
            write(case(), tmp_path / "x.onnx")
        except Refusal as refusal:
            hints.add(refusal.hint)
    assert not ways_out.every() - hints


@pytest.mark.parametrize("name", PAIRS)
def test_what_the_hints_are_for_is_refused(name):
    export = exported(Refused(name))
    with pytest.raises(Refusal) as caught:
        writer.dry_run(export, Step(export))
    assert PAIRS[name][2] in str(caught.value) and caught.value.hint


def test_what_the_hints_say_is_exported(tmp_path):
    torch.manual_seed(0)
    assert errors(Followed(), tmp_path / "x.onnx") <= Followed.tolerance


def test_each_refusal_has_a_test_that_follows_its_hint():
    """Of a new refusal, add a module to the suite, or a pair to followed.py."""
    tried = [case.refused for group in cases().values() for case in group if case.refused] + [part for *_, part in PAIRS.values()]
    left = untried(tried)
    assert left == UNTRIED, (left - UNTRIED, UNTRIED - left)


def untried(tried: list[str]) -> set[str]:
    return {reason for reason in reasons() if not any(alike(part, of) for part in parts(reason) for of in tried)}


def alike(part: str, of: str) -> bool:
    """Whether a part of a reason and a part of a message are most probably of one reason."""
    size = SequenceMatcher(None, part, of, autojunk=False).find_longest_match().size
    return size >= min(len(part), len(of), SAME)


def parts(reason: str) -> list[str]:
    """What a reason has for certain, without what many have."""
    return [part.strip() for part in reason.replace(COMMON, "{}").split("{}") if len(part.strip()) >= SHORTEST]


def reasons() -> set[str]:
    """The reasons of all refusals of modules, with {} for what depends on the module."""
    found = set()
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT)
        if not place.name.startswith("test_") and place.name not in COMMANDS and place.parts[0] not in FOLDERS:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Refusal", "Narrow", "kind") and len(node.args) >= 2:
                    found.add(text(node.args[0]))
    return {reason for reason in found if parts(reason)}


def text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text, node.values))
    if isinstance(node, ast.BinOp):
        return text(node.left) + text(node.right)
    return "{}"
