"""Each way out that a hint names is followed by a test: by the way out of a refused module of the suite (test_suite.py).
untried.py has the hints that no module of the suite follows yet."""

import ast
from difflib import SequenceMatcher
from pathlib import Path

from .. import ways_out
from ..refusal import Refusal
from .case import cases, write
from .untried import UNTRIED

ROOT = Path(__file__).parents[1]
# Files about arguments and files of the command, and about probes, and not about what a module computes: tests of theirs have their hints.
COMMANDS = {"cleantext.py", "command.py", "described.py", "inferencegraph.py", "listing.py", "lora.py", "probegraph.py", "probes.py", "replay.py", "voicebpe.py"}
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


def test_each_refusal_has_a_test_that_follows_its_hint():
    """Of a new refusal, add a module to the suite, with its way out."""
    tried = [case.refused for group in cases().values() for case in group if case.refused]
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
