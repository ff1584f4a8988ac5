"""Tests the stage against the rules of the host."""
from plugin import Noisy
from xtts_plugin.testing import check


def test_rules():
    check(Noisy, buckets=[{"T_wav": 4000}, {"T_wav": 8000}])
