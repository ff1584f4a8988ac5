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


def resolved(groups: list[dict] | tuple, parameters: list[dict]) -> list[dict]:
    """The groups of a bundle's `optimizer`, with names instead of patterns: the first group that matches and has a value decides."""
    out: dict[tuple, dict] = {}
    for p in parameters:
        values: dict = {}
        for group in groups:
            if match(group["match"], p):
                values = {**{key: x for key, x in group.items() if key != "match"}, **values}
        if values:
            out.setdefault(tuple(sorted(values.items())), {**values, "match": []})["match"].append(p["name"])
    return list(out.values())


def _expression(pattern: str) -> re.Pattern:
    """* is any text, ? one character, [a-c] one of these, [^a-c] another; a backslash takes the next character as it is."""
    pieces = {"*": ".*", "?": "."}
    tokens = re.findall(r"\\.|\[[^\]]*\]|.", pattern, re.DOTALL)
    for at, token in enumerate(tokens):
        if token[0] == "[" and len(token) > 1:
            tokens[at] = "[" + token[1:].replace("[", r"\[")
        elif len(token) == 1:
            tokens[at] = pieces.get(token, re.escape(token))
    return re.compile("".join(tokens), re.DOTALL)
