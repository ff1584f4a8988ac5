import json

import pytest


@pytest.fixture
def declare(tmp_path):
    """Writes a plugin.json with one stage, and returns its path."""

    def write(inputs, outputs, config=None, deterministic=True, name="gain"):
        stage = {"name": name, "kind": "augment", "inputs": inputs, "outputs": outputs, "deterministic": deterministic}
        if config:
            stage["config"] = {"type": "object", "properties": config}
        path = tmp_path / "plugin.json"
        path.write_text(json.dumps({"id": "test", "version": "1.0.0", "protocol": 1, "argv": ["python3", "plugin.py"],
                                    "stages": [stage]}))
        return str(path)

    return write


@pytest.fixture
def gain_json(declare):
    wave = {"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "waveform_lengths"}
    lengths = {"name": "waveform_lengths", "dtype": "i32", "shape": ["B"]}
    text = {"name": "text", "dtype": "i64", "shape": ["B", "T_text"]}
    return declare([wave, lengths, text], [wave], {"level": {"type": "number", "default": 0.5}})
