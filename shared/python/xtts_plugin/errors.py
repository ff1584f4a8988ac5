"""Mistakes of users, and what the host shows of other exceptions."""
import os
import sysconfig
import traceback

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = tuple({sysconfig.get_path(p) + os.sep for p in ("stdlib", "platstdlib", "purelib", "platlib")})


class UserError(Exception):
    """A mistake of the user, in the configuration for example. The host shows the message and the hint as they are.

    Any other exception is a mistake of the plugin: the host shows its file and line, and log.jsonl has the stack.
    """

    def __init__(self, message, hint):
        """hint says what the user can do, as a command or a value."""
        super().__init__(message)
        self.hint = hint


def message(e):
    """What the host shows of an exception: one of a user's mistake, or one with the place where it was raised."""
    if isinstance(e, UserError):
        return f"{e}\nhint: {' '.join(str(e.hint).split())}"
    return f"{type(e).__name__}: {e} ({_place(e)})"


def stack(e):
    """The stack of an exception."""
    return "".join(traceback.format_exception(type(e), e, e.__traceback__))


def _place(e):
    """File and line of the plugin's own code: the last frame outside of this package and of libraries, if one is."""
    frames = traceback.extract_tb(e.__traceback__)
    own = [f for f in frames if not f.filename.startswith((_OWN, *_LIBRARIES)) and not f.filename.startswith("<")]
    frame = (own or frames)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno}"
