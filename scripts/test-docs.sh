#!/usr/bin/env bash
# Follows docs/plugins.md word for word: runs its ```sh blocks, in order and in one shell, at the root of a copy of this
# checkout. What make fetches is shared with the checkout, nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work"
mkdir -p .cache && ln -s "$PWD/.cache" "$work/.cache"

commands=$(awk '/^```sh$/ {on=1; next} /^```$/ {on=0} on' docs/plugins.md)
[ -n "$commands" ] || { echo "error: docs/plugins.md has no sh block" >&2; exit 1; }
cd "$work"
export XTTS_HOST_DEVICE=cpu # also on a machine with a GPU
bash -euo pipefail -c "set -x; $commands" >"$work/.log" 2>&1 || { cat "$work/.log" >&2; echo "error: docs/plugins.md does not work as written" >&2; exit 1; }
echo "docs/plugins.md: all $(wc -l <<<"$commands") lines of its commands work"
