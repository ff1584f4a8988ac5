"""Parameters by patterns of names, as the host matches them (Go package shared/manifest)."""

import re


def match(patterns: list[str] | tuple[str, ...], parameter: dict) -> bool:
    """Whether a pattern matches the name, an alias, or a module that contains the parameter. * is any text, dots included."""
    candidates = [module for name in (parameter["name"], *parameter.get("aliases", ())) for module in modules(name)]
    return any(_expression(pattern).fullmatch(c) for pattern in patterns for c in candidates)


def modules(name: str) -> list[str]:
    """A parameter's name and those of the modules that contain it."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _expression(pattern: str) -> re.Pattern:
    """* is any text, ? one character, [a-c] one of these, [^a-c] another; a backslash takes the next character as it is."""
    pieces = {"*": ".*", "?": "."}
    tokens = re.findall(r"\\.|\[[^\]]*\]|.", pattern, re.DOTALL)
    return re.compile("".join(pieces.get(t) or (t if len(t) > 1 else re.escape(t)) for t in tokens), re.DOTALL)
