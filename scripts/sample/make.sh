#!/bin/sh
# Makes the embedded sample data set, host/data/dataset/sample/sample.zip, from the sentences in this folder.
# The archive has the same bytes every time: eSpeak NG is deterministic, files are sorted and carry a fixed date.
# Needs espeak-ng 1.51 and zip (Debian packages of these names).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../host/data/dataset/sample/sample.zip
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $(espeak-ng --version) in
*" 1.51 "*) ;;
*) echo "warning: not espeak-ng 1.51; the recordings will differ from the committed ones" >&2 ;;
esac

# speak SPEAKER FILE TEXT
speak() {
	case $1 in
	A) espeak-ng -v en-us -p 35 -s 180 -w "$2" -- "$3" ;;
	B) espeak-ng -v en-gb+f3 -p 70 -s 190 -w "$2" -- "$3" ;;
	esac
	# 44 bytes of header, 44,100 bytes a second
	ms=$((($(stat -c %s "$2") - 44) * 10 / 441))
	if [ $ms -lt 1200 ] || [ $ms -gt 2600 ]; then
		echo "$2 lasts $ms ms, it must last 1200 to 2600: $3" >&2
		exit 1
	fi
}

# list LIST SENTENCES FIRST: numbers the clips of each speaker from FIRST on
list() {
	a=$3 b=$3
	while read -r speaker text; do
		case $speaker in
		A) n=$a a=$((a + 1)) ;;
		B) n=$b b=$((b + 1)) ;;
		esac
		id=$speaker/$(printf %04d $n)
		speak "$speaker" "$work/wavs/$id.wav" "$text"
		echo "$id|$text" >>"$work/$1"
	done <"$2"
}

mkdir -p "$work/wavs/A" "$work/wavs/B" "$(dirname "$out")"
list metadata_train.csv "$here/train.txt" 1
list metadata_eval.csv "$here/eval.txt" 101
cp "$here/README.txt" "$work/README.txt"

cd "$work"
find . -type d -exec chmod 755 {} +
find . -type f -exec chmod 644 {} + -exec touch -d 2000-01-01T00:00:00Z {} +
rm -f "$out"
find . -type f | sed 's|^\./||' | LC_ALL=C sort | TZ=UTC zip -X -9 -q -@ "$out"

size=$(stat -c %s "$out")
if [ "$size" -gt 2048000 ]; then
	echo "$out has $size bytes, more than 2,000 KB" >&2
	exit 1
fi
echo "$size bytes, sha256 $(sha256sum "$out" | cut -d ' ' -f 1)"
