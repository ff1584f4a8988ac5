"""Why a module cannot be exported: one line that names the cause and its place, and a hint."""

import re
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

import sympy
import torch

_LIBRARIES = (str(Path(torch.__file__).parent), str(Path(sympy.__file__).parent), "<")
_STANDARD = sysconfig.get_paths()["stdlib"]
_OWN = str(Path(__file__).parent)
# Of a line of source code in a message.
_COLUMNS = 140
# Modules of this package that are as a user's: models, tests. All others run between those and PyTorch.
_MODELS = re.compile(r"(examples|large|model|multispeaker|test_\w+)\.py")


class Refusal(ValueError):
    """An error that the author of the exported module can fix. The command prints it as `error:` and `hint:`."""

    def __init__(self, reason: str, hint: str, place: str | None = None):
        super().__init__(f"{place}: {reason}" if place else reason)
        self.hint = hint


def kind(x: object) -> str:
    """What an object is, in a message: None, "l1", the function loss, the class Model, of the type list."""
    match x:
        case None | bool() | int() | float() | str():
            return repr(x)
        case type():
            return f"the class {x.__name__}"
        case ModuleType():
            return f"the Python module {x.__name__}"
        case _ if callable(x) and hasattr(x, "__name__"):
            return f"the function {x.__name__}"
    return f"of the type {type(x).__name__}"


def is_users(path: str) -> bool:
    """Whether a file is neither PyTorch's nor Python's nor the exporter's."""
    if path.startswith(_LIBRARIES) or (path.startswith(_STANDARD) and "-packages" not in path):
        return False
    return Path(path).parent != Path(_OWN) or _MODELS.fullmatch(Path(path).name) is not None


def innermost(frames: traceback.StackSummary) -> str | None:
    """`file.py:12 (text)` of the innermost frame below an exporter's that is neither PyTorch's nor the exporter's."""
    own = [i for i, f in enumerate(frames) if f.filename.startswith(_OWN) and not is_users(f.filename)]
    for frame in reversed(frames[own[0] if own else 0:]):
        if is_users(frame.filename):
            line = frame.line or ""
            return f"{frame.filename}:{frame.lineno} ({line if len(line) <= _COLUMNS else line[:_COLUMNS] + '...'})"
    return None


def at(path: str, number: int, function: str) -> str | None:
    """The same for one line."""
    return innermost(traceback.StackSummary.from_list([traceback.FrameSummary(path, number, function)]))


def here() -> str | None:
    """The user's line that is running: in the backward pass of a hook or of a function of the user's, or else the line whose gradient is being computed.

    For the latter the forward pass must have run in anomaly mode, which keeps a stack trace with each of autograd's nodes.
    """
    node = torch._C._current_autograd_node()
    if node is None:
        return innermost(traceback.extract_stack())
    frames = traceback.extract_stack()
    engine = max((i for i, f in enumerate(frames) if f.filename == torch.autograd.graph.__file__ and f.name == "_engine_run_backward"), default=len(frames))
    return innermost(traceback.StackSummary.from_list(frames[engine:])) or from_text("".join(node.metadata.get("traceback_", [])))


def from_text(text: str) -> str | None:
    """innermost for formatted frames, as anomaly mode stores them: '  File "x.py", line 3, in f\\n    y = g(x)\\n'."""
    frames = []
    for entry in re.split(r"^(?=  File )", text, flags=re.MULTILINE):
        head, _, rest = entry.strip().partition("\n")
        line = rest.partition("\n")[0]
        if not head.startswith("File "):
            continue
        path, number, name = head[len("File "):].split(", ", 2)
        frames.append(traceback.FrameSummary(path.strip('"'), int(number.removeprefix("line ")), name.removeprefix("in "), line=line.strip()))
    return innermost(traceback.StackSummary.from_list(frames))


def within(error: BaseException) -> str | None:
    """The user's line that raised the error."""
    return innermost(traceback.extract_tb(error.__traceback__))
