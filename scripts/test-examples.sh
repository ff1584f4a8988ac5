#!/usr/bin/env bash
# Tests the plugins of plugins/examples: their own tests with the rules of the SDK, the rules of the host for the transforms that are
# named below (--all: for all of their tests), and a run that has both, one with another NumPy than the other. audiomentations has the
# environment that its lock makes, which is tested, too: its hashes, and that an environment of another lock is found. torchaudio has
# PyTorch of the exporter's tests (scripts/xtts_export/test.sh).
#
#   scripts/test-examples.sh [--all]
#
# The environments are kept in .cache/examples, 0.6 GB. Everything else happens in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD kept=$(readlink -m .cache)/examples

few='AddGaussianNoise BandPassFilter Gain Mp3Compression OneOf PitchShift PolarityInversion Reverse Shift TimeMask TimeStretch
	Dropout Fade PitchShift Vol dither gain lowpass_biquad'
[ "${1:-}" != --all ] || few=

fail() { echo "error: $1" >&2; [ $# -lt 2 ] || echo "hint: $2" >&2; exit 1; }

[ -x bin/xtts-host ] || fail "bin/xtts-host is missing" "make build"
torch=$(echo .cache/venv-export/lib/python3*/site-packages)
[ -e "$torch/torch" ] || fail ".cache/venv-export has no PyTorch" "scripts/xtts_export/test.sh makes it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$work/rustup" PYTHONDONTWRITEBYTECODE=1

# An environment cannot be moved, so the folders of the examples have one path, in which their files are replaced.
mkdir -p "$kept"
exec 9>"$kept.lock"
flock 9
for example in plugins/examples/*/; do
	name=$(basename "$example") && mkdir -p "$kept/$name"
	find "$kept/$name" -mindepth 1 -maxdepth 1 ! -name .venv ! -name requirements.lock -exec rm -rf {} +
	cp -r "$example." "$kept/$name"
	mkdir "$kept/$name/sdk" && cp -r shared/python/xtts_plugin "$kept/$name/sdk"
done

# audiomentations: a lock, which is kept as long as requirements.txt is, and the environment from it.
cd "$kept/audiomentations"
grep -qs "$(sha256sum <requirements.txt | cut -c 1-64)" requirements.lock || make --silent lock
make --silent release
sha256sum --check --quiet plugin.sum
! grep -v '^#' requirements.lock | grep -vE '^[A-Za-z0-9_.-]+==[^ ]+ --hash=sha256:[0-9a-f]{64}$' || fail "requirements.lock has a line without a hash"
find .venv -type l -printf '%p %l\n' | while read -r link to; do
	case $(readlink -m "$(dirname "$link")/$to") in
	"$PWD"/*) ;;
	*) [[ $link = .venv/bin/python* ]] || fail "$link leads out of the folder" ;;
	esac
done

# torchaudio: its environment has all but PyTorch, and another NumPy. The sandbox does not let a plugin read what a .pth file of its
# environment names, so it starts without one.
cd "$kept/torchaudio"
mapfile -t needs < <(grep -vE '^(#|torch)' requirements.txt)
mapfile -t alone < <(grep '^torchaudio' requirements.txt)
if [ "$(cat .venv/ready 2>/dev/null)" != "$root ${needs[*]} ${alone[*]}" ]; then
	python3 -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --only-binary=:all: "${needs[@]}"
	.venv/bin/python -m pip install --quiet --only-binary=:all: --no-deps "${alone[@]}"
	echo "$root/$torch" >"$(echo .venv/lib/python3*/site-packages)/pytorch.pth"
	echo "$root ${needs[*]} ${alone[*]}" >.venv/ready
fi

# The rules, of the SDK in their own tests and of the host with their programs.
cd "$root"
for name in audiomentations torchaudio; do
	sandbox=auto && [ $name = audiomentations ] || sandbox=off
	(cd "$kept/$name" && .venv/bin/python -m pytest -q) >"$work/pytest" || { cat "$work/pytest"; exit 1; }
	tail -1 "$work/pytest"
	(cd "$kept/$name" && PYTHONPATH=sdk .venv/bin/python -c 'import json, sys, test_plugin
few = sys.argv[1].split()
for config in test_plugin.CONFIGS:
    if not few or config[0]["transform"] in few:
        print(json.dumps(config))' "$few") >"$work/configs"
	while read -r config; do
		bin/xtts-host plugins test "$kept/$name" --sandbox $sandbox --cache-dir "$work/cache" --config "transforms=$config" >"$work/rules" </dev/null ||
			{ echo "$name: $config"; cat "$work/rules"; exit 1; }
	done <"$work/configs"
	echo "$name: $(wc -l <"$work/configs") configurations keep the rules of the host"
done

# Both in one run, each with its own NumPy; and the same losses from another run.
numpy() { (cd "$kept/$1" && .venv/bin/python -c 'import numpy; print(numpy.__version__)'); }
[ "$(numpy audiomentations)" != "$(numpy torchaudio)" ] || fail "both examples have NumPy $(numpy torchaudio)"
mkdir "$work/plugins"
ln -s "$kept/audiomentations" "$kept/torchaudio" "$root/plugins/features" "$work/plugins"
for run in one two; do
	bin/xtts-host --plugins "$work/plugins" --augment audiomentations,torchaudio --batch-size 4 --max-steps 3 --device cpu \
		--sandbox off --cache-dir "$work/cache" --run-dir "$work/$run" >"$work/output" 2>&1 || { cat "$work/output"; exit 1; }
done
losses() { python3 -c 'import json, sys; print([json.loads(line)["loss"] for line in open(sys.argv[1]) if "\"loss\"" in line])' "$1/metrics.jsonl"; }
[ "$(losses "$work/one")" != "[]" ] && [ "$(losses "$work/one")" = "$(losses "$work/two")" ] || fail "two runs differ: $(losses "$work/one"), $(losses "$work/two")"
grep -q 'audiomentations.*torchaudio' "$work/output" || fail "the run has no such stages"
echo "side by side: audiomentations with NumPy $(numpy audiomentations), torchaudio with NumPy $(numpy torchaudio)"

# A lock that has changed is noticed before the plugin starts, and a wrong hash before anything is installed.
stale=$work/stale
mkdir "$stale"
cp -r plugins/examples/audiomentations/{plugin.py,plugin.json,run,Makefile,lock.py,requirements.txt} "$stale"
cp "$kept/audiomentations/requirements.lock" "$stale"
ln -s "$kept/audiomentations/.venv" "$stale/.venv"
mkdir "$stale/sdk" && cp -r shared/python/xtts_plugin "$stale/sdk"
bin/xtts-host plugins test "$stale" --cache-dir "$work/cache" >"$work/rules" || { cat "$work/rules"; exit 1; }
echo '# newer' >>"$stale/requirements.lock"
! bin/xtts-host plugins test "$stale" --cache-dir "$work/cache" >"$work/rules" 2>&1 || fail "a stale environment is used"
grep -q "environment is stale.*hint: run make in its folder" "$work/rules" || { cat "$work/rules"; exit 1; }
rm "$stale/.venv"
sed -i '/^audiomentations==/s/sha256:......../sha256:00000000/' "$stale/requirements.lock"
! make --silent -C "$stale" >"$work/rules" 2>&1 || fail "a package with another hash is installed"
grep -q 'DO NOT MATCH THE HASHES' "$work/rules" || { cat "$work/rules"; exit 1; }
echo "the lock: an environment of another one and a package with another hash are refused"
