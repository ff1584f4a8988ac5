#!/usr/bin/env bash
# Those of the exporter's tests that run the program, in the environment of scripts/xtts_export/test.sh. They train, and read and
# write checkpoints and bundles as the program does. After a change of host/train/checkpoint alone they suffice.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.cache/venv-export/bin/python
[ -x "$python" ] || { echo "error: $python is missing"; echo "hint: scripts/xtts_export/test.sh makes it"; exit 1; } >&2
export OMP_NUM_THREADS=1 ORT_DISABLE_TELEMETRY=1 HOME="$PWD/.cache/home"
mkdir -p "$HOME"
cd scripts
# Each of these files says that the program must be built.
grep -l 'bin/xtts-host' xtts_export/test_*.py | xargs "$python" -m pytest -p no:cacheprovider -q
./export-tested.sh --write-checkpoints
