#!/usr/bin/env bash
# Writes dist/xtts-host-VERSION-linux-ARCH.tar.gz for this machine's platform, and for the other one of amd64 and arm64
# if its C compiler is installed; and dist/SHA256SUMS. docs/install.md says what is in an archive.
#
#   scripts/release.sh             the version is what git describe calls the checkout
#   scripts/release.sh v0.2.0      a checkout without changes is v0.2.0
#
# DIST is the folder to write to (dist); CROSS=no leaves the other platform out. The same commit gives the same bytes in
# any folder, with one version of Go, of the C compiler and of gzip. README.txt in the archive names them.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

version=${1:-$(git describe --tags --always --abbrev=12)} # of a fixed length, since a clone may have fewer objects
commit=$(git rev-parse HEAD)
changed=$(git status --porcelain -- . ':!.cache')
if [ -z "${1:-}" ]; then
	[ -z "$changed" ] || version+=-dirty
elif [ -n "$changed" ]; then
	fail "the checkout has changes that no commit has, the first: ${changed%%$'\n'*}" \
		"commit or remove them, or leave VERSION out"
fi
[[ $version =~ ^[0-9A-Za-z][0-9A-Za-z.+_-]*$ ]] ||
	fail "the version \"$version\" has other characters than letters, digits and .+_-" "name it as v0.2.0"
tagged=$(git rev-parse --quiet --verify "refs/tags/$version^{commit}" || true)
[ "${tagged:-$commit}" = "$commit" ] ||
	fail "the tag $version is of the commit ${tagged::12}, and the checkout is at ${commit::12}" "git checkout $version"
[ -z "${1:-}" ] || grep -qF "## $version " CHANGELOG.md ||
	echo "note: CHANGELOG.md has no heading \"## $version - DATE\": see CONTRIBUTING.md, Release" >&2

# Nothing of the shell enters the bytes but CC.
unset CGO_CFLAGS CGO_LDFLAGS CGO_CPPFLAGS CGO_CXXFLAGS GOFLAGS GOEXPERIMENT GOAMD64 GOARM64 GOARCH GOOS TAR_OPTIONS GZIP
export CGO_ENABLED=1 LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH # also for the date of the manual pages
native=$(go env GOHOSTARCH) dist=${DIST:-dist}
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
stage=$(mktemp -d "$dist/.stage-XXXXXX")
trap 'rm -rf "$stage"' EXIT

# archive ARCH MACHINE builds for a platform and packs it.
archive() {
	local name=xtts-host-$version-linux-$1
	local folder=$stage/$name
	mkdir -p "$folder/lib" "$folder/licenses/onnxruntime"
	scripts/build.sh release "$folder" "$version"
	local ort=.cache/ort/$ort_version-$2
	[ "$1" != "$native" ] || ort=.cache/ort/$ort_version
	scripts/fetch-ort.sh "$PWD/$ort/libonnxruntime.so.$ort_version" "$2"
	cp "$ort/libonnxruntime.so.$ort_version" "$folder/lib"
	cp "$ort/LICENSE" "$ort/ThirdPartyNotices.txt" "$folder/licenses/onnxruntime"
	cp LICENSE THIRD_PARTY_NOTICES.md README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md "$folder" # pages link to them
	git ls-files -z docs ':!docs/results' | xargs -0 cp --parents -t "$folder" # messages of the program name pages
	[ -d "$stage/share" ] || (share "$folder/bin")
	cp -r "$stage/share" "$folder"
	readme "$folder" "$1" >"$folder/README.txt"
	tar -C "$stage" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -9n >"$stage/$name.tar.gz"
	mv "$stage/$name.tar.gz" "$dist"
	rm -r "$folder"
	echo "$dist/$name.tar.gz: written"
}

# share BIN makes completions and manual pages, with the program that runs here.
share() {
	local to=$stage/share
	mkdir -p "$to/man/man1" "$to/bash-completion/completions" "$to/zsh/site-functions" "$to/fish/vendor_completions.d"
	PATH="$1:$PATH" xtts-host completion bash >"$to/bash-completion/completions/xtts-host"
	PATH="$1:$PATH" xtts-host completion zsh >"$to/zsh/site-functions/_xtts-host"
	PATH="$1:$PATH" xtts-host completion fish >"$to/fish/vendor_completions.d/xtts-host.fish"
	local env
	env=$(scripts/cgo-env.sh)
	eval "$env"
	go run -trimpath ./cmd/xtts-docs "$to/man/man1" >/dev/null
}

# readme FOLDER ARCH prints README.txt, with what the programs need and what they are made by.
readme() {
	local glibc cxx
	glibc=$(readelf -V "$1"/bin/* "$1"/lib/* "$1"/plugins/*/*_linux_"$2" |
		grep -oE '\bGLIBC_2\.[0-9]+' | sort -uV | tail -n 1)
	cxx=$(readelf -V "$1"/lib/* | grep -oE '\bGLIBCXX_3\.4\.[0-9]+' | sort -uV | tail -n 1)
	cat <<END
xtts-host $version for linux/$2: trains XTTS text-to-speech models.

    bin/xtts-host doctor
    bin/xtts-host --plugins plugins --max-steps 20 --run-dir my-run

The first command shows what the machine lacks. The second trains the embedded model on the embedded sample.
docs/install.md says how to install, upgrade and remove the program, docs/guides/my-voice.md how to train on your own
recordings, CHANGELOG.md what is new.

It needs Linux with glibc ${glibc#GLIBC_} or later, libgcc_s.so.1 and libstdc++.so.6 with $cxx.

Commit $commit
$(go env GOVERSION), $("$(go env CC)" --version | head -n 1), $(gzip --version | head -n 1)

Licences: LICENSE (Apache-2.0), THIRD_PARTY_NOTICES.md (Go modules), licenses/onnxruntime (lib/libonnxruntime.so).
END
}

ort_version=$(sed -n 's/^version=//p' scripts/fetch-ort.sh)
case $native in
amd64) machines=(x86_64 aarch64) other=arm64 compiler=aarch64-linux-gnu-gcc package=gcc-aarch64-linux-gnu ;;
arm64) machines=(aarch64 x86_64) other=amd64 compiler=x86_64-linux-gnu-gcc package=gcc-x86-64-linux-gnu ;;
*) fail "no release can be made on linux/$native" "make it on amd64 or arm64" ;;
esac
rm -f "$dist/xtts-host-$version-linux-"*.tar.gz # SHA256SUMS names those of this call
archive "$native" "${machines[0]}"
if [ "${CROSS:-}" = no ]; then
	:
elif command -v $compiler >/dev/null; then
	GOARCH=$other CC=$compiler archive "$other" "${machines[1]}"
else
	echo "linux/$other: not written, because $compiler is missing (Debian has it in $package)" >&2
fi
cd "$dist"
sha256sum xtts-host-"$version"-linux-*.tar.gz | tee SHA256SUMS
