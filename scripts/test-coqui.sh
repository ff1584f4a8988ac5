#!/usr/bin/env bash
# Compares the exporter's XTTS with coqui's own classes, in an environment of its own below .cache/ (0.4 GB), which sees the packages of the
# exporter's tests (scripts/xtts_export/test.sh makes those). bin/xtts-host must be built. coqui-tts imports six, and does not require it.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.cache/venv-coqui base=$PWD/.cache/venv-export
want='coqui-tts[codec]==0.28.0 torchaudio==2.11.0 transformers==5.23.0 six==1.17.0 peft==0.21.2'
export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 ORT_DISABLE_TELEMETRY=1 HOME="$PWD/.cache/home"
mkdir -p "$HOME"
[ -x "$base/bin/python" ] || { echo "error: $base is missing"; echo "hint: scripts/xtts_export/test.sh makes it"; exit 1; } >&2
if [ "$(cat "$venv/.requirements" 2>/dev/null)" != "$want" ]; then
  "$base/bin/python" -m venv --clear "$venv"
  "$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/export.pth"
  # Of what the exporter's environment has, pip keeps the versions.
  read -ra packages <<< "$want"
  "$venv/bin/python" -m pip install --quiet "${packages[@]}" torch=="$(sed -n 's/^torch==//p' scripts/xtts_export/requirements.txt)"
  echo "$want" > "$venv/.requirements"
fi
cd scripts
exec "$venv/bin/python" -m pytest -p no:cacheprovider -q xtts_export/xtts/test_coqui*.py "$@"
