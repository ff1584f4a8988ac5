"""What several files say of the package is the same in all of them."""
import pathlib
import re

import pytest

import xtts_plugin

ROOT = pathlib.Path(__file__).parents[3]
PROJECT = (ROOT / "shared/python/pyproject.toml").read_text(encoding="utf-8")
PYTHON_TEMPLATE = "host/command/newplugin/template/python/"


def test_lower_bounds():
    """A new plugin installs what the package needs, from the same versions on."""
    [listed] = re.findall(r"^dependencies = \[(.*)\]$", PROJECT, re.M)
    needs = (ROOT / PYTHON_TEMPLATE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    bounds = {line for line in needs if line and not line.startswith(("#", "pytest"))}
    assert bounds == set(re.findall(r'"([^"]+)"', listed))


@pytest.mark.parametrize("name", ["Makefile", "run", "lock.py", "pytest.ini"])
def test_examples_are_like_new_plugins(name):
    """The examples have the environment of a new plugin."""
    examples = sorted((ROOT / "plugins/examples").glob("*/plugin.json"))
    assert len(examples) == 2
    for example in examples:
        assert (example.parent / name).read_bytes() == (ROOT / PYTHON_TEMPLATE / name).read_bytes(), example.parent


def test_version():
    """pyproject.toml has no version of its own."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", xtts_plugin.__version__)
    assert 'version = {attr = "xtts_plugin.__version__"}' in PROJECT and not re.search('^version = "', PROJECT, re.M)


@pytest.mark.parametrize("path", [
    "shared/python/README.md", "shared/python/bench.py", "shared/python/xtts_plugin/__init__.py",
    "plugins/testdata/python/gain/plugin.py", "plugins/examples/audiomentations/plugin.py",
    "plugins/examples/torchaudio/plugin.py", PYTHON_TEMPLATE + "plugin.py"])
def test_examples_can_be_imported(path):
    """They serve only as a program."""
    text = (ROOT / path).read_text(encoding="utf-8")
    calls = re.findall(r"^(.*)\n *serve\(.+\)$", text, re.M)
    assert calls and all(before.strip() == 'if __name__ == "__main__":' for before in calls)
