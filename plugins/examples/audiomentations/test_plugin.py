"""Transforms that keep the rules of the host. scripts/test-examples.sh tests them with the host, too."""
import pytest
from plugin import Audiomentations
from xtts_plugin.testing import BrokenRule, check

NAMES = """AddColorNoise AddGaussianNoise AddGaussianSNR AirAbsorption Aliasing BandPassFilter BandStopFilter BitCrush ClippingDistortion
Gain GainTransition HighPassFilter HighShelfFilter LowPassFilter LowShelfFilter Mp3Compression Normalize PeakingFilter PitchShift
PolarityInversion RepeatPart Resample Reverse SevenBandParametricEQ Shift TanhDistortion TimeMask TimeStretch Trim""".split()
CHAIN = [{"transform": "OneOf", "args": {"transforms": [{"transform": "Gain"}, {"transform": "TimeStretch", "args": {"min_rate": 0.8}}]}},
         {"transform": "AddGaussianNoise", "args": {"min_amplitude": 0.001, "max_amplitude": 0.01, "p": 0.5}}]
CONFIGS = [*([{"transform": name, "args": {"p": 1.0}}] for name in NAMES), CHAIN]


def run(transforms):
    check(Audiomentations, config={"transforms": transforms}, features={"sample_rate": 22050}, buckets=[{"T_wav": 9000}, {"T_wav": 20000}])


@pytest.mark.parametrize("transforms", CONFIGS, ids=[c[0]["transform"] for c in CONFIGS])
def test_rules(transforms):
    run(transforms)


@pytest.mark.parametrize("transform, reason", [
    ({"transform": "Wobble"}, "Wobble: AttributeError"), ({"transform": "Gain", "args": {"loud": 1}}, "Gain: TypeError.*'loud'"),
    ({"transform": "Gain", "args": {"p": 2}}, "Gain: AssertionError")])
def test_mistake(transform, reason):
    """It is refused before a run, with a hint."""
    with pytest.raises(BrokenRule, match=reason + ".*\nhint: "):
        run([transform])
