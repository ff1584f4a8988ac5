#!/usr/bin/env bash
# Makes an archive of the release and checks its content and what its programs need. Then it is unpacked into a folder
# with special characters, where it must train, resume and speak without Go, a compiler and any other program. At last a
# clone in another folder must make the same bytes, with all packages of C code compiled again.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 1; }

cache=$(readlink -f .cache) arch=$(go env GOHOSTARCH)
work=$cache/test-release
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
DIST=$work/one CROSS=no scripts/release.sh
archive=$(ls "$work"/one/*.tar.gz)
(cd "$work/one" && sha256sum --check --quiet SHA256SUMS)

# What is in it. Pages of docs and of the manual are counted only.
place="$work/a b ü"
mkdir "$place"
tar -xzf "$archive" -C "$place"
root=$(echo "$place"/*)
[ "${root##*/}.tar.gz" = "${archive##*/}" ] || fail "$archive unpacks to ${root##*/}"
(cd "$root" && find . -type f ! -path './docs/*' ! -name '*.1' | sort) >"$work/content"
sort >"$work/want" <<END
./CHANGELOG.md
./CONTRIBUTING.md
./LICENSE
./README.md
./README.txt
./SECURITY.md
./THIRD_PARTY_NOTICES.md
./bin/xtts-host
./lib/libonnxruntime.so.1.29.0
./licenses/onnxruntime/LICENSE
./licenses/onnxruntime/ThirdPartyNotices.txt
$(for p in features augment inference; do printf './plugins/%s\n' $p/{plugin.json,plugin.sources,plugin.sum,${p}_linux_"$arch"}; done)
./share/bash-completion/completions/xtts-host
./share/fish/vendor_completions.d/xtts-host.fish
./share/zsh/site-functions/_xtts-host
END
diff "$work/want" "$work/content" || fail "$archive does not contain what it should (<), or more (>)"
[ -f "$root/docs/install.md" ] && [ -f "$root/share/man/man1/xtts-host.1" ] || fail "$archive has no docs or no manual pages"
odd=$(tar -tvf "$archive" | grep -vE '^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x) 0/0 ') && fail "$archive has other owners or modes: $odd"
for p in "$root"/plugins/*; do (cd "$p" && sha256sum --check --quiet plugin.sum); done

# What the programs need of the machine.
for file in "$root"/bin/* "$root"/plugins/*/*_linux_"$arch" "$root"/lib/*; do
	allowed='libc\.so\.6|libgcc_s\.so\.1|ld-linux-.*'
	[[ $file != */lib/* ]] || allowed+='|lib(dl|rt|pthread|m|stdc\+\+)\.so\.[0-9]+'
	more=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE "$allowed" || true)
	[ -z "$more" ] || fail "$file needs a library that the docs do not name: $more"
	# Paths of the machine that built it would tell of it, and differ in another folder.
	! grep -qaF -e "$PWD/" -e "$cache/" "$file" || fail "$file contains the path of the checkout or its cache"
done

# alone runs the program with nothing in PATH and an empty HOME.
mkdir "$work/home"
alone() {
	(cd "$work/home" && env -i HOME="$work/home" PATH=/nowhere "$root/bin/xtts-host" "$@") >"$work/log" 2>&1 ||
		{ cat "$work/log"; fail "xtts-host $* failed"; }
}
says() { grep -q -- "$1" "$work/log" || { cat "$work/log"; fail "xtts-host does not say: $1"; }; }
alone version
name=${root##*/xtts-host-}
says "^xtts-host ${name%-linux-*}\$"
alone doctor
says "ONNX Runtime .*: $root/lib/"
alone --plugins "$root/plugins" --batch-size 8 --schedule constant --max-steps 5 --run-dir run
says 'done after 5 steps'
alone --resume run --max-steps 7
says 'done after 7 steps'
alone synthesize --run run --speaker "$(ls "$work"/home/.cache/xtts-host/sample-*/wavs/A/0001.wav)" --text "A kettle." --out spoken.wav
[ -s "$work/home/spoken.wav" ] || fail "xtts-host synthesize wrote no spoken.wav"
left=$(cd "$work/home" && find . -mindepth 1 -maxdepth 2 ! -path './run*' ! -path ./.cache ! -path ./.cache/xtts-host ! -path ./spoken.wav)
[ -z "$left" ] || fail "the program wrote more than docs/install.md names: $left"
[ "$(cd "$root" && find . -newer "$archive" -type f)" = "" ] || fail "the program wrote into its own folder"

# The same bytes: a clone, with the changes of this checkout.
twin="$work/another place ü"
git clone --quiet . "$twin"
git diff --binary HEAD | git -C "$twin" apply --allow-empty
git ls-files -z --others --exclude-standard -- ':!.cache' | xargs -0r cp --parents -t "$twin"
scripts/cache-of-clone.sh "$twin"
DIST=$work/two CROSS=no "$twin/scripts/release.sh"
cmp "$archive" "$work/two/${archive##*/}" || fail "the archive of a clone has other bytes"
echo "scripts/release.sh: ${archive##*/} has the same bytes from two folders, and trains, resumes and speaks by itself"
