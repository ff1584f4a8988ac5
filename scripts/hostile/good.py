"""The valid files that the variants are made from: files of the product, and the output of a short run."""

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import zipfile

# Inputs from the list, which no graph uses and the host makes: two of arrays, with lengths of their own, and one of symbols.
COLUMNS = [
    {"name": "steps", "dtype": "i32", "shape": ["B", "T_step"], "lengths": "step_lengths", "origin": "file", "column": "steps", "below": 100},
    {"name": "curve", "dtype": "f32", "shape": ["B", "T_step"], "lengths": "step_lengths", "origin": "file", "column": "curve"},
    {"name": "step_lengths", "dtype": "i32", "shape": ["B"], "origin": "column"},
    {"name": "letters", "dtype": "i32", "shape": ["B", "T_letter"], "lengths": "letter_lengths", "origin": "column", "column": "text",
     "vocabulary": "letters.json", "split": "character"},
    {"name": "letter_lengths", "dtype": "i32", "shape": ["B"], "origin": "column"},
]
STEPS = 12

# Enough clips for pico's training and validation plan, short enough for its smallest bucket.
CLIPS, SAMPLES, CHARACTERS = 10, 9000, 14

CONFIG = """\
# A config file with every kind of value.
graph: builtin:myxtts-nano
batch_size: 4
lr: 1e-3
schedule: cosine
augment: []
ring_memory: 64MiB
plugin_workers: {features: 2}
pipeline:
  - name: target
    stage: logmel
    inputs: {waveform: waveform, waveform_lengths: waveform_lengths}
    outputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}
"""


class Good:
    """Valid inputs in one folder: bundle, plugin, data, config.yaml, and a run with a checkpoint."""

    def __init__(self, repo: pathlib.Path, folder: pathlib.Path):
        self.repo, self.folder = repo, folder
        self.program = repo / "bin/xtts-host"
        self.plugins = repo / "plugins"
        self.bundle, self.plugin, self.data = folder / "bundle", folder / "plugins", folder / "data"
        self.run, self.config = folder / "run", folder / "config.yaml"
        shutil.copytree(repo / "ortgraphs/testdata/pico", self.bundle)
        self.config.write_text(CONFIG)
        self._make_plugin()
        self._make_data()
        self.listed, self.columns = folder / "listed", folder / "columns"
        self._make_columns()
        subprocess.run(
            self.train("--max-steps", "2", "--checkpoint-every", "1", "--run-dir", self.run),
            check=True, env=self.environment(), cwd=folder, capture_output=True,
        )
        shutil.rmtree(self.run / "checkpoints/step-000001")  # so that a damaged checkpoint has no predecessor

    def environment(self) -> dict:
        env = {k: v for k, v in os.environ.items() if not k.startswith("XTTS_HOST_")}
        return env | {
            "XTTS_HOST_DEVICE": "cpu", "XTTS_HOST_MODEL_START_DELAY": "0.1", "ORT_DISABLE_TELEMETRY": "1",
            "XTTS_HOST_CACHE_DIR": str(self.folder / "cache"), "TMPDIR": str(self.folder),
            "XTTS_HOST_ORT_LIB": os.environ.get("XTTS_HOST_ORT_LIB", str(self.repo / ".cache/ort/1.29.0/libonnxruntime.so.1.29.0")),
        }

    def train(self, *args, graph=None, data=None) -> list:
        """Returns the command that trains the smallest bundle on the small data set."""
        command = [self.program, "--plugins", self.plugins, "--graph", graph or self.bundle, "--train-data", data or self.data]
        return [str(a) for a in command + ["--batch-size", "4", "--buffer-size", "4", *args]]

    def _make_plugin(self):
        """Makes a plugin that is inspected and never started, so its program may be anything."""
        features = self.plugin / "features"
        features.mkdir(parents=True)
        shutil.copy(self.repo / "plugins/features/plugin.json", features)
        program = features / "features_linux_amd64"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        lines = [f"{sha256(features / name)}  {name}\n" for name in ("plugin.json", program.name)]
        (features / "plugin.sum").write_text("".join(lines))

    def _make_data(self):
        with zipfile.ZipFile(self.repo / "host/data/dataset/sample/sample.zip") as sample:
            wavs = [sample.read(name) for name in sorted(sample.namelist()) if name.endswith(".wav")][:CLIPS]
        (self.data / "wavs").mkdir(parents=True)
        rows = []
        for i, wav in enumerate(wavs):
            name = f"clip{i}"
            samples = wav[44:44 + 2 * SAMPLES]
            (self.data / "wavs" / f"{name}.wav").write_bytes(wav_file(samples))
            rows.append(f"{name}|{'the small sample'[:CHARACTERS]}\n")
        (self.data / "metadata_train.csv").write_text("".join(rows[:-2]))
        (self.data / "metadata_eval.csv").write_text("".join(rows[-2:]))

    def _make_columns(self):
        """Makes a bundle with COLUMNS, and a list with arrays in both formats."""
        shutil.copytree(self.bundle, self.listed)
        (self.listed / "letters.json").write_text(json.dumps({c: i for i, c in enumerate(sorted(set("the small sample")))}))
        manifest = json.loads((self.listed / "bundle.json").read_text())
        manifest["inputs"] += COLUMNS
        manifest["buckets"] = [bucket | {"T_step": 2 * STEPS, "T_letter": CHARACTERS} for bucket in manifest["buckets"]]
        manifest["files"]["letters.json"] = sha256(self.listed / "letters.json")
        (self.listed / "bundle.json").write_text(json.dumps(manifest))
        (self.columns / "arrays").mkdir(parents=True)
        shutil.copytree(self.data / "wavs", self.columns / "wavs")
        rows, header, data = [], {}, b""
        for line in (self.data / "metadata_train.csv").read_text().splitlines():
            name, text = line.split("|")
            (self.columns / f"arrays/{name}.npy").write_bytes(npy_file(struct.pack(f"<{STEPS}q", *range(STEPS))))
            header[name] = {"dtype": "F32", "shape": [STEPS], "data_offsets": [len(data), len(data) + 4 * STEPS]}
            data += struct.pack(f"<{STEPS}f", *range(STEPS))
            rows.append(json.dumps({"audio_filepath": f"wavs/{name}.wav", "text": text, "steps": f"arrays/{name}.npy", "curve": f"arrays.safetensors#{name}"}))
        head = json.dumps(header).encode()
        (self.columns / "arrays.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
        (self.columns / "train.jsonl").write_text("\n".join(rows) + "\n")


def npy_file(data: bytes, descr="'<i8'", shape=f"({STEPS},)", order="False", version=None, length=None) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    version = version or 1 + (len(header) >= 1 << 16)
    size = struct.pack("<H" if version == 1 else "<I", len(header) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


def wav_file(samples: bytes, data_size=None, riff_size=None, rate=22050, channels=1, bits=16, kind=1) -> bytes:
    """Returns a WAV file. data_size and riff_size may declare other sizes than the real ones."""
    data_size = len(samples) if data_size is None else data_size
    riff_size = 36 + len(samples) if riff_size is None else riff_size
    number = lambda value, size: value.to_bytes(size, "little")
    return b"".join([
        b"RIFF", number(riff_size, 4), b"WAVEfmt ", number(16, 4), number(kind, 2), number(channels, 2), number(rate, 4),
        number(rate * channels * bits // 8 % 2**32, 4), number(channels * bits // 8 % 2**16, 2), number(bits, 2), b"data", number(data_size, 4), samples,
    ])


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
