"""How a process of a mutant can end beside a bundle and a refusal."""

from .. import mutate


def test_a_process_that_dies_is_told_from_one_that_never_ends():
    assert mutate.isolated("import os\n\n\ndef build():\n    os._exit(3)") == "died: exit status 3"


def test_an_exit_of_python_is_a_traceback():
    end = mutate.isolated("import sys\n\n\ndef build():\n    sys.exit(0)")
    assert end.startswith("traceback: ") and "SystemExit" in end
