#!/usr/bin/env bash
# Runs bench --against pytorch with PyTorch itself, on the CPU, in the environment of the exporter's tests (scripts/export/test.sh):
# a preset, and a builder of a module that draws its dropout at random. It fails unless both sides compute the same losses.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$PWD/.cache/venv-export/bin/python
[ -x "$python" ] || { echo "error: $python is missing" >&2; echo "hint: scripts/export/test.sh makes it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

against() { bin/xtts-host bench --device cpu --against pytorch --python "$python" --cache-dir "$work/cache" --batch-sizes 2 --bench-steps 11 --threads 1 "$@"; }

against --graph ortgraphs/testdata/pico --forms eager,eager-sdpa,compile --json >"$work/preset.json"
cat >"$work/user.py" <<'PYTHON'
import torch
from export import examples


class Dropped(examples.CodeModel):
    """A model whose rows are dropped by PyTorch, and whose attention is PyTorch's if sdpa is set."""

    def __init__(self, sdpa):
        super().__init__()
        self.drop, self.sdpa = torch.nn.Dropout(0.1), sdpa

    def forward(self, text_sequences):
        return self.drop(super().forward(text_sequences))


def build(sdpa=False):
    export = examples.code_model()
    export.name, export.module = "dropped", Dropped(sdpa)
    return export
PYTHON
(cd scripts && "$python" -m export module "$work/user.py:build" --out "$work/bundle" --host ../bin/xtts-host >"$work/export.txt") || { cat "$work/export.txt"; exit 1; }
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
    assert all(r["median"] > 0 and r["best"] in forms for r in result["ratios"]), result["ratios"]
    print(f"bench --against pytorch, {result['bundle']}: the losses are equal, {len(theirs)} forms ran")
PYTHON
