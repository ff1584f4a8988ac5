#!/usr/bin/env bash
# Builds the tree in two folders: one at a commit, the other with changes and with a space and other special characters in its
# path. The plugins must have the same bytes, and `make run` must work. All programs must have the same bytes in a clone of the same
# commit, and the plugins also after a commit that changes no code. In a folder where Go cannot build, make must report that.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD cache=$(readlink -f .cache)

fail() { echo "error: $*" >&2; exit 1; }

# The names are the same in every run: compiled packages with cgo depend on their folder, and the build cache finds them again.
work=$cache/test-build
plain=$work/plain odd="$work/a b ü|c" twin="$work/another name"
refused="$work/a 'b'"
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
for dir in "$plain" "$odd" "$refused"; do
	mkdir -p "$dir"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$dir" --
	ln -s "$cache" "$dir/.cache"
	git -C "$dir" init --quiet
	git -C "$dir" add .
	git -C "$dir" -c user.name=test -c user.email=test@example.org commit --quiet -m "${dir##*/}"
done
touch "$odd/changed"

make -C "$plain" --no-print-directory plugins
make -C "$odd" --no-print-directory run STEPS=2
for p in features augment inference; do
	cmp "$plain/plugins/$p/plugin.sum" "$odd/plugins/$p/plugin.sum" || fail "plugins/$p differs between folders or commits"
done
git clone --quiet "$plain" "$twin" # with the link to the cache, which is committed there
make -C "$plain" --no-print-directory build
make -C "$twin" --no-print-directory build
programs=$(cd "$plain" && ls bin/xtts-host plugins/*/*_"$(go env GOOS)_$(go env GOARCH)")
for p in $programs; do
	cmp "$plain/$p" "$twin/$p" || fail "$p differs between two clones of a commit"
done
echo "one more line" >>"$twin/README.md"
git -C "$twin" -c user.name=test -c user.email=test@example.org commit --quiet -am "README: add a line"
make -C "$twin" --no-print-directory plugins
for p in features augment inference; do
	cmp "$plain/plugins/$p/plugin.sum" "$twin/plugins/$p/plugin.sum" || fail "plugins/$p differs after a commit that changes no code"
done
output=$(make -C "$refused" --no-print-directory build 2>&1) && fail "make build succeeded in $refused; an error was expected"
grep -q '^error: Go cannot build in ' <<<"$output" || fail "make build in $refused prints: $output"
cd "$checkout"
echo "scripts/build.sh: the same programs from two clones, the same plugins from two folders, and a run in ${odd##*/}"
