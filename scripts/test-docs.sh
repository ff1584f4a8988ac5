#!/usr/bin/env bash
# Follows pages of the documentation word for word: runs their ```sh blocks, in order and in one shell, at the root of a copy
# of this checkout. What make fetches is shared with the checkout, nothing else.
#
#   scripts/test-docs.sh             docs/plugins.md, all guides, and those in Persian
#   scripts/test-docs.sh PAGE ...    these pages
#
# A guide, in either language, finds what its reader has: the built program, the folder my-voice with recordings and a list,
# and NumPy, in .cache/venv-plugin in place of .cache/venv-mine. Numbers of steps from 1000 are divided by 1000. On all
# pages, plugins dev has --once.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
[ $# -gt 0 ] || set -- docs/plugins.md docs/guides/*.md docs/fa/{first-voice,report,trouble}.md

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

# blocks PAGE prints the commands.
blocks() { awk '/^```sh$/ {on=1; next} /^```$/ {on=0} on' "$1" | sed 's/ plugins dev / plugins dev --once /'; }

# reader FOLDER makes what the reader of a guide has.
reader() {
	[ -x bin/xtts-host ] || { echo "error: bin/xtts-host is missing; build it by: make build" >&2; exit 1; }
	scripts/venv-plugin.sh
	cp -r bin "$1"
	for f in plugins/*/plugin.sum; do
		cp "$(dirname "$f")"/*_linux_* "$f" "$(dirname "$f")/plugin.sources" "$1/$(dirname "$f")"
	done
	python3 - host/data/dataset/sample/sample.zip "$1/my-voice" <<'PYTHON'
import pathlib, sys, zipfile

out = pathlib.Path(sys.argv[2])
for folder in ("wavs", "texts"):
    (out / folder).mkdir(parents=True)
with zipfile.ZipFile(sys.argv[1]) as z:
    lines = [line for name in ("metadata_train.csv", "metadata_eval.csv") for line in z.read(name).decode().splitlines()]
    clips = [line.split("|") for line in lines if line.startswith("A/")]
    (out / "metadata.csv").write_text("".join(f"{n:04d}|{text}\n" for n, (_, text) in enumerate(clips, 1)))
    for n, (row, text) in enumerate(clips, 1):
        (out / "wavs" / f"{n:04d}.wav").write_bytes(z.read(f"wavs/{row}.wav"))
        (out / "texts" / f"{n:04d}.txt").write_text(text + "\n")
PYTHON
}

# fewer divides the steps, and takes the environment with NumPy.
fewer() {
	python3 -c '
import re, sys
print(re.sub(r"(--(?:max-steps|warmup-steps|eval-every|checkpoint-every) )(\d{4,})",
             lambda m: m[1] + str(int(m[2]) // 1000), sys.stdin.read()).replace(".cache/venv-mine/", ".cache/venv-plugin/"))'
}

for page; do
	commands=$(blocks "$page")
	if [ -z "$commands" ]; then
		[ "$page" = docs/guides/README.md ] && continue
		echo "error: $page has no sh block" >&2
		exit 1
	fi
	work=$top/$(basename "$page" .md) start=$SECONDS
	mkdir "$work"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work"
	mkdir -p .cache && ln -s "$root/.cache" "$work/.cache"
	case $page in docs/guides/* | docs/fa/*) reader "$work"; commands=$(fewer <<<"$commands") ;; esac
	(
		cd "$work"
		export XTTS_HOST_DEVICE=cpu XDG_CACHE_HOME="$work/.cache" # also on a machine with a GPU; nothing in HOME
		bash -euo pipefail -c "set -x; $commands" </dev/null >"$work/.log" 2>&1
	) || { cat "$work/.log" >&2; echo "error: $page does not work as written" >&2; exit 1; }
	# What a page shows of the banner is what the program prints.
	while IFS= read -r line; do
		grep -qF "$(tr -s ' ' <<<"$line")" <(tr -s ' ' <"$work/.log") || { echo "error: $page shows what is not printed: $line" >&2; exit 1; }
	done < <(grep -E '^(pipeline  |plugins  )' "$page")
	echo "$page: all $(wc -l <<<"$commands") lines of its commands work ($((SECONDS - start)) s)"
	rm -rf "$work"
done
