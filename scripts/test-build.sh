#!/usr/bin/env bash
# Builds the tree in two clones of a commit, one with a space and other special characters in its path. All programs must
# have the same bytes, and the plugins also after a commit that changes no code and a change without a commit, with which
# `make run` must work. In a folder where Go cannot build, make must report that.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD cache=$(readlink -f .cache)

fail() { echo "error: $*" >&2; exit 1; }

# The names are the same in every run: compiled packages with cgo depend on their folder, and the build cache finds them again.
work=$cache/test-build
plain=$work/plain odd="$work/a b ü|c" refused="$work/a 'b'"
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
mkdir -p "$plain"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$plain" --
git -C "$plain" init --quiet
git -C "$plain" add .
commit() { git -C "$1" -c user.name=test -c user.email=test@example.org commit --quiet -am "$2"; }
commit "$plain" "all files"
for dir in "$odd" "$refused"; do git clone --quiet "$plain" "$dir"; done
for dir in "$plain" "$odd" "$refused"; do echo .cache >>"$dir/.git/info/exclude"; done
ln -s "$cache" "$plain/.cache"
ln -s "$cache" "$refused/.cache"
scripts/cache-of-clone.sh "$odd"
mkdir "$work/a" # so that the first word of the path is a folder, too
grep -qxF "CUDA := $odd/.cache/cuda" <(make -C "$odd" -pn help 2>/dev/null) || fail "make looks for CUDA's header elsewhere than in $odd"

make -C "$plain" --no-print-directory build
make -C "$odd" --no-print-directory build
programs=$(cd "$plain" && ls bin/xtts-host plugins/*/*_"$(go env GOOS)_$(go env GOARCH)")
for p in $programs; do
	cmp "$plain/$p" "$odd/$p" || fail "$p differs between two clones of a commit"
done
echo "one more line" >>"$odd/README.md"
commit "$odd" "README: add a line"
make -C "$odd" --no-print-directory plugins
touch "$odd/changed"
make -C "$odd" --no-print-directory run STEPS=2
for p in features augment inference; do
	cmp "$plain/plugins/$p/plugin.sum" "$odd/plugins/$p/plugin.sum" || fail "plugins/$p differs after a commit that changes no code"
done
output=$(make -C "$refused" --no-print-directory build 2>&1) && fail "make build succeeded in $refused; an error was expected"
grep -q '^error: Go cannot build in ' <<<"$output" || fail "make build in $refused prints: $output"
cd "$checkout"
echo "scripts/build.sh: the same programs from two clones, and a run in ${odd##*/}"
