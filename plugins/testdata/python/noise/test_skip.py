"""A recording that is damaged behind a good header is skipped; a folder with no other is refused."""
import numpy as np
import pytest
import soundfile
from plugin import Noisy
from xtts_plugin.testing import BrokenRule, check


def test_skip(tmp_path, caplog):
    bad, good = tmp_path / "bad.flac", tmp_path / "good.wav"
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, 22050)
    soundfile.write(bad, noise, 22050)
    data = bytearray(bad.read_bytes())
    data[len(data) // 2:] = bytes(0xA5 ^ b for b in data[len(data) // 2:])
    bad.write_bytes(data)
    soundfile.write(good, noise, 22050)
    check(Noisy, buckets=[{"T_wav": 4000}], data={"noise": tmp_path})
    assert f"a recording is skipped: {bad}: " in caplog.text
    good.unlink()
    with pytest.raises(BrokenRule, match="no recording can be read"):
        check(Noisy, buckets=[{"T_wav": 4000}], data={"noise": tmp_path})
