#!/usr/bin/env bash
# Runs bench --against pytorch with PyTorch itself, on the CPU, in the environment of the exporter's tests (scripts/xtts_export/test.sh):
# a preset, and a builder of a module that draws its dropout at random. It fails unless both sides compute the same losses, both train from
# audio files, and the features that PyTorch computes of them are those of the plugin's golden numbers.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$PWD/.cache/venv-export/bin/python
[ -x "$python" ] || { echo "error: $python is missing"; echo "hint: scripts/xtts_export/test.sh makes it"; exit 1; } >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

against() { bin/xtts-host bench --device cpu --against pytorch --python "$python" --cache-dir "$work/cache" --batch-sizes 2 --bench-steps 11 --threads 1 "$@"; }

against --graph ortgraphs/testdata/pico --plugins plugins --augment waveaug,specaugment --forms eager,eager-sdpa,compile --json >"$work/preset.json"
cat >"$work/user.py" <<'PYTHON'
import torch
from xtts_export import examples


class Dropped(examples.CodeModel):
    """A model whose rows are dropped by PyTorch, and whose attention is PyTorch's if sdpa is set. It has what a bundle has not: a buffer that is
    not persistent, and numbers of a generator on the CPU."""

    def __init__(self, sdpa):
        super().__init__()
        self.drop, self.sdpa = torch.nn.Dropout(0.1), sdpa
        self.register_buffer("offset", torch.rand(1, generator=torch.Generator().manual_seed(1)), persistent=False)

    def forward(self, text_sequences):
        return self.drop(super().forward(text_sequences)) + self.offset - self.offset


def build(sdpa=False):
    export = examples.code_model()
    export.name, export.module = "dropped", Dropped(sdpa)
    return export
PYTHON
(cd scripts && "$python" -m xtts_export module "$work/user.py:build" --out "$work/bundle" --host ../bin/xtts-host >"$work/export.txt") || { cat "$work/export.txt"; exit 1; }
against --graph "$work/bundle" --builder "$work/user.py:build" --forms eager,eager-sdpa --json >"$work/user.json"
"$python" - "$work" <<'PYTHON'
import json
import sys

for name, forms, same in ("preset", ["eager", "eager-sdpa", "compile"], True), ("user", ["eager", "eager-sdpa"], False):
    result = json.load(open(f"{sys.argv[1]}/{name}.json"))
    ours, *theirs = result["rows"]
    assert [row["form"] for row in theirs] == forms, theirs
    assert ours["loss_difference"] < 1e-5, ours
    for row in theirs:
        assert "failed" not in row and row["step_ms"]["steps"] == 11, row
        assert (row["loss"] is not None) == same, row  # native dropout is random
    for row in result["rows"]:
        assert "end_to_end_failed" not in row and row["end_to_end_ms"]["steps"] >= 10 and row["stages_on"] == "cpu", row
    assert all(r["median"] > 0 and r["best"] in forms for r in result["ratios"]), result["ratios"]
    assert {r["what"] for r in result["ratios"]} == {"gradients", "step", "end_to_end"}, result["ratios"]
    print(f"bench --against pytorch, {result['bundle']}: the losses are equal, {len(theirs)} forms ran, also from audio files")
PYTHON
"$python" - "$work" <<'PYTHON'
import json
import sys
import wave

import numpy as np
import torch

sys.path[:0] = ["host/command/bench/pytorch", "scripts"]
import loader
import measure


def signal(n):
    """The signal of the golden numbers, shared/mel/meltest/make_golden.py."""
    out = np.empty(n, np.float32)
    for i in range(n):
        h = (i + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        h = (h ^ h >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        noise = ((h ^ h >> 31) >> 40) / 2.0**23 - 1
        out[i] = abs(i % 105 * 2 - 105) / 105.0 - 0.5 + (abs(i % 7 * 2 - 7) / 7.0 - 0.5) / 16 + noise / 2.0 ** (3 + i // 500)
    return torch.from_numpy(out)


worst = 0
for case in json.load(open("shared/mel/meltest/golden.json"))["cases"]:
    for after in 0, 700:  # padding of the batch
        padded = torch.nn.functional.pad(signal(case["samples"])[None], (0, after))
        given = {"waveform": padded, "waveform_lengths": torch.tensor([case["samples"]])}
        made = loader.logmel(given, {"mel_spectrograms": 0.0}, {}, case["features"])
        assert made["mel_lengths"].item() == case["frames"], case["name"]
        mel = made["mel_spectrograms"][0, :case["frames"]].flatten()
        worst = max(worst, (mel - torch.tensor(case["log_mel"])).abs().max().item())
assert worst < 1e-3, worst

# The batches of one clip after the other, as workers make them, and those of waveforms that are padded before the stages, as on a GPU.
bundle = json.load(open("ortgraphs/testdata/pico/bundle.json"))
features, shapes = bundle["features"], {"text_sequences": [3, 48], "waveform": [3, 44032], "mel_spectrograms": [3, 173, 20]}
shapes |= dict.fromkeys(["text_lengths", "waveform_lengths", "mel_lengths"], [3])
rows = []
for i in range(3):
    rows.append({"path": f"{sys.argv[1]}/{i}.wav", "offset": 5, "frames": 20000 + 900 * i, "tokens": [1, 2, 3 + i], "speaker": 0, "language": 0})
    with wave.open(rows[i]["path"], "wb") as file:
        file.setparams((1, 2, features["sample_rate"], 0, "NONE", ""))
        file.writeframes((3000 * signal(24000).numpy()).astype(np.int16).tobytes())
file = {"rows": rows, "dataset": ["waveform"], "tensors": [{"name": name, "shape": shape, "pad": 0} for name, shape in shapes.items()]}
stages = [stage | {"stage": "features/" + stage["stage"], "config": {}} for stage in bundle["pipeline"] if stage["name"] == "target"]
late = loader.Clips(file, features, list(shapes), [])
early = loader.Clips(file, features, list(shapes), stages)
late = loader.run(stages, late.collate([late[i] for i in range(3)]), late.batch, features)
early = early.collate([early[i] for i in range(3)])
assert all(early[name].shape == late[name].shape == tuple(shape) and torch.allclose(early[name], late[name], atol=1e-5) for name, shape in shapes.items())
assert early["mel_lengths"].tolist() == [1 + row["frames"] // 256 for row in rows] and early["mel_spectrograms"][0, 79:].eq(0).all()

torch.manual_seed(1)
tone, lengths = torch.sin(torch.arange(8000) / 9.0).repeat(64, 1), torch.full([64], 8000)
config = {"gain_probability": 0, "gain_db_min": -6, "gain_db_max": 6, "polarity_probability": 0, "noise_probability": 0.5, "snr_db_min": 20, "snr_db_max": 20}
noise = loader.waveaug({"waveform": tone, "waveform_lengths": lengths}, {}, config, {})["waveform"] - tone
ratio = 10 * torch.log10(tone.square().sum(1) / noise.square().sum(1))
assert ((ratio - 20).abs() < 1e-2).logical_or(ratio.isinf()).all() and 16 < ratio.isinf().sum() < 48, ratio
mel, lengths = torch.ones(64, 90, 40), torch.full([64], 80)
config = {"probability": 1, "freq_masks": 1, "freq_mask_width": 8, "time_masks": 1, "time_mask_width": 70, "time_mask_share": 0.2}
masked = loader.specaugment({"mel_spectrograms": mel, "mel_lengths": lengths}, {"mel_spectrograms": 0.0}, config, {})["mel_spectrograms"] == 0
bands, frames = masked[:, :80].all(1).sum(1), masked.all(2).sum(1)
assert bands.max() == 8 and bands.min() == 0 and frames.max() == 16 and frames.min() == 0 and not masked[:, 80:].any(), (bands, frames)
measure.load_packages()
specs = [*measure.inputs.sequence("text", "i32", "T", lengths="text_lengths"), measure.inputs.schedule("weight", (0, 1), (10, 3)),
         measure.inputs.window("count", "text_lengths", per_row=2)]
given = {"text": torch.zeros(3, 9), "text_lengths": torch.tensor([9, 0, 4])}
for step, weight in (0, 1), (5, 2), (40, 3):  # two rows are not empty
    made = {name: (x.item(), x.dtype) for name, x in measure.scalars(specs, given, step).items()}
    assert made == {"weight": (weight, torch.float32), "count": (17, torch.float32)}, made
empty = given | {"text_lengths": torch.tensor([0, 0, 0])}
assert measure.scalars(specs, empty, 0)["count"] == 1
print(f"bench --against pytorch: log-mel spectrograms within {worst:.1g} of librosa's; noise and masks as configured")
PYTHON
