#!/usr/bin/env bash
# Builds the tree in two folders, one at a commit and one with changes and with a space and more in its name: the plugins have the same
# bytes, and `make run` works in both. In a folder in which Go cannot build, make says so.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD cache=$(readlink -f .cache)

fail() { echo "error: $*" >&2; exit 1; }

# The names stay the same from run to run: the compiled packages that link with C know their folder, and are found again in the cache.
work=$cache/test-build
plain=$work/plain odd="$work/a b ü|c"
refused="$work/a 'b'"
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
for dir in "$plain" "$odd" "$refused"; do
	mkdir -p "$dir"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$dir"
	ln -s "$cache" "$dir/.cache"
	git -C "$dir" init --quiet
	git -C "$dir" add .
	git -C "$dir" -c user.name=test -c user.email=test@example.org commit --quiet -m "${dir##*/}"
done
touch "$odd/changed"

make -C "$plain" --no-print-directory plugins CUDA=0
make -C "$odd" --no-print-directory run CUDA=0 STEPS=2
for p in features augment; do
	cmp "$plain/plugins/$p/plugin.sum" "$odd/plugins/$p/plugin.sum" || fail "plugins/$p has other bytes in another folder or at another commit"
done
said=$(make -C "$refused" --no-print-directory build CUDA=0 2>&1) && fail "make build works in $refused, and is said not to"
grep -q '^error: Go cannot build in ' <<<"$said" || fail "make build in $refused says: $said"
cd "$checkout"
echo "scripts/build.sh: the same plugins from two folders, and a run in ${odd##*/}"
