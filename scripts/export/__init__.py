"""The former name of the package xtts_export, which is left out of the version after this one.

Each of its modules is the one of the same name there, so that nothing is imported twice.
"""

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

import xtts_export

FORMER, NAME = __name__, xtts_export.__name__


class _Former:
    """Finds and loads the modules below the former name."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith(FORMER + ".") or (found := importlib.util.find_spec(_now(name))) is None:
            return None
        return ModuleSpec(name, self, origin=found.origin, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(_now(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It has run. Loading has given it the specification of the former name.
        module.__spec__ = module.__spec__.loader_state

    def get_code(self, name: str) -> CodeType:
        """For `python -m`."""
        return importlib.util.find_spec(_now(name)).loader.get_code(_now(name))


def _now(name: str) -> str:
    return NAME + name.removeprefix(FORMER)


# Not a DeprecationWarning, which Python shows to nobody who runs a program.
warnings.warn(f"the package {FORMER} is now {NAME}: write `from {NAME} import ...`. The next version has only that name",
              FutureWarning, stacklevel=2)
sys.meta_path.insert(0, _Former())
sys.modules[FORMER] = xtts_export
