"""The committed graphs of the plugins' stages; that they compute what the stages compute on the CPU is for the Go tests beside them."""

from . import builtin, stages


def test_committed(tmp_path):
    for place in stages.GRAPHS:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    stages.write(tmp_path)
    for place in stages.GRAPHS:
        assert (tmp_path / f"{place}.onnx").read_bytes() == (builtin.REPOSITORY / f"plugins/{place}.onnx").read_bytes()
