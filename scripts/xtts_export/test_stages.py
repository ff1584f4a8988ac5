"""The committed graphs of the plugins' stages; the Go tests of the plugins compare their results with those of the stages on the CPU."""

from . import builtin, stages


def test_committed(tmp_path):
    for place in stages.GRAPHS:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    stages.write(tmp_path)
    for place in stages.GRAPHS:
        assert (tmp_path / f"{place}.onnx").read_bytes() == (builtin.REPOSITORY / f"plugins/{place}.onnx").read_bytes()
