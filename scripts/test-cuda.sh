#!/usr/bin/env bash
# Vets and links the programs with the tag `cuda`, tests them on fake GPU libraries (scripts/cuda-fake.sh), and compiles kernels with
# the real NVRTC (90 MB, fetched once). No GPU is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

env=$(scripts/cuda-env.sh)
eval "$env"
fake=$(scripts/cuda-fake.sh)
# The other packages are the same without the tag; the tests compile those that import these.
mapfile -t tagged < <(git grep -l '^//go:build.*cuda' -- '*.go' | xargs -n 1 dirname | sort -u)
go vet -race -tags cuda,fakegpu "${tagged[@]/#/./}"
# As CUDA=1 builds them. Of several programs, go build links each and keeps none.
programs=(./cmd/xtts-host ./plugins/features ./plugins/augment ./plugins/inference)
go vet -tags cuda "${tagged[@]/#/./}" "${programs[@]}"
go build -trimpath -buildvcs=false -tags cuda -ldflags '-s -w -buildid=' "${programs[@]}"
if [ "$(uname -m)" = x86_64 ]; then
	scripts/fetch-ort-gpu.sh --nvrtc
	export XTTS_HOST_TEST_NVRTC=$PWD/.cache/nvrtc/13.0.88/libnvrtc.so.13
	go test -race -vet=off ./gpu/nvrtc ./host/kernels "$@"
	go test -vet=off -run NVRTC ./ortgraphs/fused ./ortgraphs/fuse "$@"
fi
LD_LIBRARY_PATH=$fake XTTS_HOST_TEST_NVRTC=$fake/nvrtc/libnvrtc.so.13 go test -race -vet=off -tags cuda,fakegpu ./gpu/cuda "$@"
LD_LIBRARY_PATH=$fake XTTS_HOST_TEST_CUBLAS=fake go test -race -vet=off ./gpu/cublas "$@"
LD_LIBRARY_PATH=$fake XTTS_HOST_TEST_GPU=GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf \
	go test -race -vet=off -tags cuda,fakegpu -run 'UpdateKernel|SquaresKernel' -bench Update -benchtime 1x ./host/train "$@"
LD_LIBRARY_PATH=$fake XTTS_HOST_TEST_NVRTC=$fake/nvrtc/libnvrtc.so.13 XTTS_HOST_TEST_GPU=GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf \
	go test -vet=off -tags cuda,fakegpu -run GPU ./ortgraphs/fuse "$@"
LD_LIBRARY_PATH=$fake go test -race -vet=off -tags cuda,fakegpu -run 'TestFakeGPU$' ./cmd/xtts-host "$@"
