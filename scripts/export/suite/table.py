"""The tables of docs/export.md, made of what the suite's modules declare and its tests check."""

import inspect
import sys

from ..builtin import REPOSITORY
from .case import Case, cases

PAGE = REPOSITORY / "docs/export.md"
BEGIN, END = "<!-- made by python -m export.suite.table -->", "<!-- end of what is made -->"


def markdown() -> str:
    groups = {sys.modules[group[0].__module__].__doc__.partition("\n")[0]: group for group in cases().values()}
    every = [case for group in groups.values() for case in group]
    exported = [f"| {subject} | {'; '.join(_phrase(case) for case in group if case.refused is None)} |" for subject, group in groups.items()
                if any(case.refused is None for case in group)]
    refused = [f"| {_phrase(case)} | {case.refused} | {_phrase(case.way_out)} |" for case in every if case.refused]
    count = sum(case.refused is None for case in every)
    return "\n".join([
        f"[`scripts/export/suite`](../scripts/export/suite) has {len(every)} small modules. {count} are exported and compared with",
        "PyTorch at three sizes, one with an empty row: loss, gradients and state differ by less than 1e-4 of their norm.", "",
        "| subject | exported as it stands |", "|---|---|", *exported, "",
        f"The other {len(every) - count} are refused. What stands in the last column is in the suite, too, and is exported.", "",
        "| refused | message | instead |", "|---|---|---|", *refused])


def page(text: str) -> str:
    """The page with the tables in their place."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown()}\n{END}{after}"


def _phrase(case: type[Case]) -> str:
    return " ".join(inspect.getdoc(case).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
