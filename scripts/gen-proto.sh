#!/usr/bin/env bash
# Regenerates shared/stagepb/*.pb.go from stage.proto.
#
#   scripts/gen-proto.sh [--check]
#
# --check changes nothing and fails when the committed files are not what this script would write.
#
# protoc comes out of the grpcio-tools wheel, so that any python3 with venv and pip will do; the two Go generators are built at
# the versions below. Tools are kept in .cache/proto in the repository; nothing else is written.
set -euo pipefail

grpcio_tools=1.85.1 # carries the protoc whose version stands in the generated files
protoc_gen_go=v1.36.12
protoc_gen_go_grpc=v1.5.1

root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.cache/proto/$grpcio_tools-$protoc_gen_go-$protoc_gen_go_grpc

case "${1-}" in
"" | --check) ;;
*)
	echo "usage: gen-proto.sh [--check]" >&2
	exit 2
	;;
esac

if [ ! -e "$tools/ready" ]; then
	python3 -m venv "$tools/venv"
	"$tools/venv/bin/pip" install --quiet "grpcio-tools==$grpcio_tools"
	GOBIN=$tools/bin go install "google.golang.org/protobuf/cmd/protoc-gen-go@$protoc_gen_go"
	GOBIN=$tools/bin go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$protoc_gen_go_grpc"
	touch "$tools/ready"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
PATH=$tools/bin:$PATH "$tools/venv/bin/python" -m grpc_tools.protoc -I "$root/shared/stagepb" \
	--go_out="$out" --go_opt=paths=source_relative \
	--go-grpc_out="$out" --go-grpc_opt=paths=source_relative stage.proto

cd "$root/shared/stagepb"
for file in "$out"/*.go; do
	if [ "${1-}" = --check ]; then
		diff -u "$(basename "$file")" "$file" || {
			echo "gen-proto: $(basename "$file") is not what stage.proto gives; run scripts/gen-proto.sh" >&2
			exit 1
		}
	else
		cp "$file" .
	fi
done
