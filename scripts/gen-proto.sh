#!/usr/bin/env bash
# Generates the *.pb.go of shared/stagepb/stage.proto and ortgraphs/onnxpb/onnx.proto, and stage_pb2.py of the Python SDK. The
# second .proto is from the onnx wheel, version 1.23.2.
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
		keep "$folder" "$proto" "$file"
	done
}

# keep FOLDER FILE.proto GENERATED: writes a generated file into the folder, or compares it.
keep() {
	if [ "$mode" = --check ]; then
		diff -u "$root/$1/$(basename "$3")" "$3" || {
			echo "error: $1/$(basename "$3") differs from the file generated from $2" >&2
			echo "hint: scripts/gen-proto.sh writes it" >&2
			exit 1
		}
	else
		cp "$3" "$root/$1"
	fi
}

# python writes the messages of the protocol for Python. Their file has the package's folder in its name, so that they do not
# collide with another stage.proto in the process. Without protoc's check of versions, which refuses any protobuf that is older
# than protoc, it works with the oldest that the SDK names: make python-sdk tests it.
python() {
	local package=xtts_plugin folder=shared/python/xtts_plugin
	"$tools/venv/bin/python" -m grpc_tools.protoc -I "$package=$root/shared/stagepb" --python_out="$out" "$package/stage.proto"
	sed -i '/^_runtime_version.Validate/,/^)/d; /runtime_version/d' "$out/$package/stage_pb2.py"
	keep "$folder" stage.proto "$out/$package/stage_pb2.py"
}

mode=${1-}
generate shared/stagepb stage.proto --go-grpc_out=. --go-grpc_opt=paths=source_relative
generate ortgraphs/onnxpb onnx.proto --go_opt=Monnx.proto=github.com/xtts-host/xtts-host/ortgraphs/onnxpb
python
