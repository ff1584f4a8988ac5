"""What a wrong argument of the command says."""

import pytest

from . import command, usage


@pytest.mark.parametrize(("arguments", "error", "hint"), [
    (["module", "x.py:build", "--uot", "x"], "--uot is no option of xtts-export module", "did you mean --out?"),
    (["module", "x.py:build", "--out", "x", "--precison=f32"], "--precison is no option of xtts-export module", "did you mean --precision?"),
    (["clean-text", "x", "--zzz"], "--zzz is no option of xtts-export clean-text", "xtts-export clean-text --help lists them"),
    (["to-torch", "x", "--uot", "x"], "--uot is no option of xtts-export to-torch", "did you mean --out?"),
])
def test_a_misspelt_option_is_named(arguments, error, hint, capsys):
    assert command.main(arguments) == command.USAGE_STATUS
    assert capsys.readouterr().err == f"error: {error}\nhint: {hint}\n"


def test_a_missing_option_is_named(capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(["module", "x.py:build"])
    assert caught.value.code == command.USAGE_STATUS and "--out" in capsys.readouterr().err


def test_what_follows_two_dashes_is_no_option():
    parser = usage.Parser()
    parser.add_argument("file")
    assert parser.parse_args(["--", "--uot"]).file == "--uot"
