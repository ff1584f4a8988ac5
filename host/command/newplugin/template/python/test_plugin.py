import numpy as np
import pytest
from plugin import SoftClip, overdrive
from xtts_plugin.testing import check


def test_rules():
    """What the host relies on: padding and empty rows stay, only outputs are written, a row depends on nothing but its key."""
    check(SoftClip, config={"max_drive": 8}, buckets=[{"T_wav": 1000}, {"T_wav": 4000}])


@pytest.mark.parametrize("x, drive, want", [(0, 4, 0), (0.25, 0, 0.25), (1, 4, 1), (-1, 4, -1), (0.25, 4, 0.7621), (0.25, 1, 0.3216)])
def test_overdrive(x, drive, want):
    """Replace this by a test of the numbers that your stage computes."""
    assert abs(overdrive(np.float32([x]), drive)[0] - want) < 1e-4
