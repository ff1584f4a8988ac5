"""Changes a model at random and exports it: what cannot be exported must be refused in one line, without a traceback."""

import ast
import contextlib
import copy
import difflib
import io
import multiprocessing
import random
import re
import tempfile
import traceback
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from .. import command, writer
from ..refusal import Refusal

MODEL = Path(__file__).with_name("model.py")
# An export of the model takes about 5 s.
SECONDS = 600
# A copy of this process would have the threads of its autograd, which end at a fork. The server has PyTorch loaded, and nothing running.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([command.__name__])

_NUMBERS = (0, 1, -1, 2, 3, 7, 0.5, 2**31, None, "x", True)
_WORDS = ("", "x", "mel", "text", "f32", "i32", "f64", "T_text", "T_mel", "B", 5, None)
_NAMES = {
    "sum": ("mean", "max", "amax", "prod"), "mean": ("sum", "std", "var"), "abs": ("sqrt", "log", "square"), "float": ("long", "double", "bool", "half"),
    "clamp": ("clamp_", "add", "div"), "transpose": ("flip", "view", "unsqueeze"), "ReLU": ("GELU", "BatchNorm1d", "Softmax"), "Linear": ("Conv1d", "GRU", "Embedding"),
    "LayerNorm": ("GroupNorm", "InstanceNorm1d", "BatchNorm1d"), "shape": ("data", "grad", "T"), "arange": ("zeros", "rand", "linspace"), "pad": ("dropout", "softmax"),
}


def mutants(seed: int, count: int) -> list[str]:
    """Sources of the model, each with one or two changes."""
    choose, tree, made = random.Random(seed), ast.parse(MODEL.read_text(encoding="utf-8")), []
    while len(made) < count:
        changed = copy.deepcopy(tree)
        for _ in range(choose.choice((1, 1, 2))):
            _change(changed, choose)
        source = ast.unparse(ast.fix_missing_locations(changed))
        if source not in made:
            made.append(source)
    return made


def _change(tree: ast.Module, choose: random.Random) -> None:
    """Changes a node in place: a number, a word, a name, an operand, an argument, or a statement."""
    nodes = [node for part in tree.body if isinstance(part, ast.ClassDef | ast.FunctionDef) for node in ast.walk(part)]
    match choose.choice(nodes):
        case ast.Constant(value=int() | float()) as node:
            node.value = choose.choice(_NUMBERS)
        case ast.Constant(value=str()) as node:
            node.value = choose.choice(_WORDS)
        case ast.Attribute(attr=name) as node:
            node.attr = choose.choice(_NAMES.get(name, (name, name + "_", "shape")))
        case ast.BinOp() as node:
            node.op = choose.choice((ast.Add(), ast.Sub(), ast.Mult(), ast.Div(), ast.Mod(), ast.MatMult()))
            node.left, node.right = choose.choice(((node.left, node.right), (node.right, node.left), (node.left, node.left)))
        case ast.Compare() as node:
            node.ops = [choose.choice((ast.Lt(), ast.GtE(), ast.Eq(), ast.In()))]
        case ast.Call() as node if node.args or node.keywords:
            choose.choice([part for part in (node.args, node.keywords) if part]).pop()
        case ast.Name(id=name) as node if isinstance(node.ctx, ast.Load):
            node.id = choose.choice([n.id for n in nodes if isinstance(n, ast.Name)])
        case ast.List() | ast.Tuple() as node if len(node.elts) > 1:
            node.elts.pop(choose.randrange(len(node.elts)))
        case ast.FunctionDef() as node if len(node.body) > 1:
            node.body.pop(choose.randrange(len(node.body)))
        case ast.Dict() as node if node.keys:
            at = choose.randrange(len(node.keys))
            node.keys.pop(at), node.values.pop(at)


def outcome(source: str, folder: Path) -> str:
    """What exporting a source ends with: "exported", the refusal with its hint, or a traceback. An exit of Python is one, too."""
    path = folder / "mutant.py"
    path.write_text(source, encoding="utf-8")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            export = command.build(f"{path}:build")
            command.refusing(lambda: writer.write(export, folder / "bundle"))
    except Refusal as refusal:
        return f"refused: {refusal}; hint: {refusal.hint}"
    except (Exception, SystemExit):
        return f"traceback: {traceback.format_exc()}"
    return "exported"


def _answer(end: Connection, source: str, folder: str) -> None:
    end.send(outcome(source, Path(folder)))


def isolated(source: str) -> str:
    """outcome in a process of its own: a change may write into PyTorch's modules, or never end."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        process = _PROCESSES.Process(target=_answer, args=(theirs, source, folder))
        process.start()
        # The pipe ends with the process only if nothing else holds this end.
        theirs.close()
        try:
            if ours.poll(SECONDS):
                end = ours.recv()
                # A process that is killed before its end leaves semaphores behind.
                process.join(SECONDS)
            else:
                end = f"endless: more than {SECONDS} s"
        except EOFError:
            process.join()
            end = f"died: exit status {process.exitcode}"
        finally:
            process.kill()
            process.join()
    return end


def changes(source: str) -> list[str]:
    """The lines that are not the model's, and what they were."""
    lines = difflib.unified_diff(ast.unparse(ast.parse(MODEL.read_text(encoding="utf-8"))).splitlines(), source.splitlines(), lineterm="", n=0)
    return [line for line in lines if re.match(r"[+-](?![+-])", line)]


def run(seed: int, count: int) -> Counter:
    """Exports mutants, prints each change and its end, and counts the ends."""
    ends = Counter()
    for number, source in enumerate(mutants(seed, count)):
        end = isolated(source)
        kind = end.partition(":")[0]
        ends["several lines" if kind == "refused" and "\n" in end else kind] += 1
        print(f"{number}", *changes(source), f"    {end}", sep="\n", flush=True)
    return ends
