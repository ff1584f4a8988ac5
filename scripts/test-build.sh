#!/usr/bin/env bash
# Builds the tree in two folders: one at a commit, the other with changes and with a space and other special characters in its
# path. The plugins must have the same bytes, and `make run` must work. In a folder where Go cannot build, make must report that.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD cache=$(readlink -f .cache)

fail() { echo "error: $*" >&2; exit 1; }

# The names are the same in every run: compiled packages with cgo depend on their folder, and the build cache finds them again.
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
	cmp "$plain/plugins/$p/plugin.sum" "$odd/plugins/$p/plugin.sum" || fail "plugins/$p differs between folders or commits"
done
output=$(make -C "$refused" --no-print-directory build CUDA=0 2>&1) && fail "make build succeeded in $refused; an error was expected"
grep -q '^error: Go cannot build in ' <<<"$output" || fail "make build in $refused prints: $output"
cd "$checkout"
echo "scripts/build.sh: the same plugins from two folders, and a run in ${odd##*/}"
