"""The package's modules import each other in one direction."""

import ast
import graphlib
from pathlib import Path

ROOT = Path(__file__).parent


def imports(path: Path) -> set[str]:
    """The modules of this package that a module imports, at its top or inside a function."""
    package = path.relative_to(ROOT).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[:len(package) + 1 - node.level], *(node.module or "").split(".")]
            base = [part for part in base if part]
            for alias in node.names:
                found.update(".".join(parts) for parts in (base, [*base, alias.name]) if exists(parts))
    return found


def exists(parts: list[str]) -> bool:
    place = ROOT.joinpath(*parts)
    return bool(parts) and (place.with_suffix(".py").exists() or (place / "__init__.py").exists())


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_imports_have_no_cycle():
    graph = {name(path): imports(path) - {name(path)} for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"}
    assert "bundle" in graph["session"] and "baseline.reference" in graph["baseline.learn"]
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(f"a cycle: {' -> '.join(error.args[1])}") from None
