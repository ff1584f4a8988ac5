#!/usr/bin/env bash
# Generates the *.pb.go of shared/stagepb/stage.proto and ortgraphs/onnxpb/onnx.proto. The second file is from the onnx wheel,
# version 1.23.2.
#
#   scripts/gen-proto.sh [--check]
#
# --check changes nothing and fails if the committed files differ from the generated ones.
#
# protoc comes from the grpcio-tools wheel, so any python3 with venv and pip works. The two Go generators are built at the
# versions below. The tools are kept in .cache/proto in the repository; nothing else is written.
set -euo pipefail

grpcio_tools=1.85.1 # contains the protoc whose version is in the generated files
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
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 "$tools/venv/bin/pip" install --quiet "grpcio-tools==$grpcio_tools"
	GOBIN=$tools/bin go install "google.golang.org/protobuf/cmd/protoc-gen-go@$protoc_gen_go"
	GOBIN=$tools/bin go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$protoc_gen_go_grpc"
	touch "$tools/ready"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# generate FOLDER FILE.proto OPTION...: writes the generated files into the folder, or compares them.
generate() {
	local folder=$1 proto=$2 file
	shift 2
	mkdir -p "$out/$folder"
	(cd "$out/$folder" && PATH=$tools/bin:$PATH "$tools/venv/bin/python" -m grpc_tools.protoc -I "$root/$folder" \
		--go_out=. --go_opt=paths=source_relative "$@" "$proto")
	for file in "$out/$folder"/*.go; do
		if [ "$mode" = --check ]; then
			diff -u "$root/$folder/$(basename "$file")" "$file" || {
				echo "error: $folder/$(basename "$file") differs from the file generated from $proto" >&2
				echo "hint: scripts/gen-proto.sh writes it" >&2
				exit 1
			}
		else
			cp "$file" "$root/$folder"
		fi
	done
}

mode=${1-}
generate shared/stagepb stage.proto --go-grpc_out=. --go-grpc_opt=paths=source_relative
generate ortgraphs/onnxpb onnx.proto --go_opt=Monnx.proto=github.com/xtts-host/xtts-host/ortgraphs/onnxpb
