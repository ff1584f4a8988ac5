"""A parser of arguments that names a misspelt option. argparse would name an option that is missing because of it."""

import argparse
import difflib
import itertools
from collections.abc import Sequence

from .refusal import Refusal


class Parser(argparse.ArgumentParser):
    """Raises Refusal for an option that it does not have."""

    def parse_known_args(self, args: Sequence[str] | None = None,
                         namespace: argparse.Namespace | None = None) -> tuple[argparse.Namespace, list[str]]:
        # The options behind a command are the command's.
        if self._subparsers is None:
            for argument in itertools.takewhile(lambda argument: argument != "--", args or ()):
                self._refuse_unknown(argument.partition("=")[0])
        return super().parse_known_args(args, namespace)

    def _refuse_unknown(self, option: str) -> None:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        if not option.startswith("--") or any(name.startswith(option) for name in known):
            return
        near = difflib.get_close_matches(option, known, 1)
        raise Refusal(f"{option} is no option of {self.prog}", f"did you mean {near[0]}?" if near else f"{self.prog} --help lists them")
