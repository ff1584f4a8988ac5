"""Transforms that keep the rules of the host. scripts/test-examples.sh tests them with the host, too."""
import pytest
from plugin import Torchaudio
from xtts_plugin.testing import BrokenRule, check

ONES = [{"transform": "Vol", "args": {"gain": 0.5}}, {"transform": "Fade", "args": {"fade_in_len": 100}}, {"transform": "Preemphasis"},
        {"transform": "PitchShift", "args": {"n_steps": 2}}, {"transform": "Resample", "args": {"orig_freq": 10, "new_freq": 9}},
        {"transform": "Dropout", "args": {"p": 0.1}}, {"transform": "dither"}, {"transform": "gain", "draws": {"gain_db": [-6, 6]}},
        {"transform": "lowpass_biquad", "draws": {"cutoff_freq": [2000, 8000]}}, {"transform": "overdrive", "draws": {"gain": [1, 20]}},
        {"transform": "equalizer_biquad", "args": {"center_freq": 1000, "gain": 6}}, {"transform": "contrast"}, {"transform": "Tanh"}]
CONFIGS = [[one] for one in ONES] + [[ONES[5], ONES[8], ONES[4]]]


def run(transforms):
    check(Torchaudio, config={"transforms": transforms}, features={"sample_rate": 22050}, buckets=[{"T_wav": 9000}, {"T_wav": 20000}])


@pytest.mark.parametrize("transforms", CONFIGS, ids=["-".join(t["transform"] for t in c) for c in CONFIGS])
def test_rules(transforms):
    run(transforms)


def test_mistake():
    """It is refused before a run, with a hint."""
    with pytest.raises(BrokenRule, match="PyTorch has no Wobble\nhint: "):
        run([{"transform": "Wobble"}])
