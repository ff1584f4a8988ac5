"""The package's former name, export, for modules that users have written."""

import subprocess
import sys

import pytest

from .builtin import REPOSITORY

SCRIPTS = REPOSITORY / "scripts"
LINE = "FutureWarning: the package export is now xtts_export: write `from xtts_export import ...`. The next version has only that name"


def python(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], cwd=SCRIPTS, capture_output=True, text=True)


@pytest.mark.parametrize("code", [
    "import export, xtts_export; assert export is xtts_export",
    "import export.module; import xtts_export.module; assert export.module is xtts_export.module",
    "from export.module import Export; import xtts_export; assert Export is xtts_export.Export",
    "import xtts_export.names; from export import names; from export.names import __spec__ as s; assert names is xtts_export.names; assert s.name == 'xtts_export.names'",
    "from export.baseline import reference; import sys; assert sys.modules['xtts_export.baseline.reference'] is reference",
])
def test_modules_are_those_of_the_new_name(code):
    """Imported first under either name, and with one line, that names the place."""
    ran = python("-c", code + "; from export import Input")
    assert ran.returncode == 0 and ran.stderr.count("\n") <= 2 and f"<string>:1: {LINE}" in ran.stderr, ran.stderr


def test_what_neither_name_has_is_missing():
    assert "No module named 'export.nothing'" in python("-c", "import export.nothing").stderr


def test_python_runs_the_former_name():
    ran = python("-m", "export.baseline.rerun", "--help")
    assert ran.returncode == 0 and ran.stdout.startswith("usage: python -m xtts_export.baseline.rerun") and ran.stderr.count(LINE) == 1, ran.stderr


def test_the_command_and_a_users_module_have_the_former_name(tmp_path):
    (tmp_path / "model.py").write_text("from export.test_writer import right as build\n")
    ran = python("-m", "export", "module", tmp_path / "model.py:build", "--out", tmp_path / "bundle", "--host", "true")
    assert ran.returncode == 0 and (tmp_path / "bundle/bundle.json").is_file() and ran.stderr.count(LINE) == 1, ran.stderr
