"""The lists and the table of docs/export.md, made of what the suite's modules declare and its tests check."""

import inspect
import sys
import textwrap

from ..builtin import REPOSITORY
from .case import Case, cases

PAGE = REPOSITORY / "docs/export.md"
_COLUMNS = 120


def parts() -> dict[str, str]:
    """What the page has between the comments of these names."""
    groups = {sys.modules[group[0].__module__].__doc__.partition("\n")[0]: group for group in cases().values()}
    every = [case for group in groups.values() for case in group]
    exported = ["\n".join([f"**{subject}**", "", *(_item(case) for case in group if case.refused is None)]) for subject, group in groups.items()
                if any(case.refused is None for case in group)]
    refused = [f"| {_cell(case)} | {case.refused} | {_cell(case.way_out)} |" for case in every if case.refused]
    count = sum(case.refused is None for case in every)
    return {
        "what is exported": "\n".join([
            f"[`scripts/xtts_export/suite`](../scripts/xtts_export/suite) has {len(every)} small modules. {count} are exported and compared with",
            "PyTorch at three sizes, one with an empty row: loss, gradients and state differ by less than 1e-4 of their norm.", "",
            "These are exported as they stand, one module a line:", "", "\n\n".join(exported)]),
        "what is refused": "\n".join([
            f"The suite has {len(every) - count} modules that are refused, with this message. What stands in the last column is in the suite, too,",
            "and is exported.", "",
            "| refused | message | instead |", "|---|---|---|", *refused]),
    }


def page(text: str) -> str:
    """The page with the tables in their places."""
    for name, table in parts().items():
        begin, end = f"<!-- made by python -m xtts_export.suite.table: {name} -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def _item(case: type[Case]) -> str:
    return textwrap.fill(f"- {_phrase(case)}", _COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _cell(case: type[Case]) -> str:
    return _phrase(case).replace("|", "\\|")


def _phrase(case: type[Case]) -> str:
    return " ".join(inspect.getdoc(case).split())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
