#!/usr/bin/env bash
# Tests what computes on a GPU on fake GPU libraries (scripts/cuda-fake.sh), and compiles kernels with the real NVRTC (90 MB, fetched
# once). No GPU is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

env=$(scripts/cgo-env.sh)
eval "$env"
fake=$(scripts/cuda-fake.sh)
if [ "$(uname -m)" = x86_64 ]; then
	go run ./cmd/xtts-host fetch nvrtc --dir .cache/nvrtc/13.0.88
	export XTTS_HOST_TEST_NVRTC=$PWD/.cache/nvrtc/13.0.88/libnvrtc.so.13
	go test -race -vet=off -ldflags=-w ./gpu/nvrtc ./host/train/kernels "$@"
	go test -vet=off -ldflags=-w -run NVRTC ./ortgraphs/fused ./ortgraphs/fuse "$@"
fi
export LD_LIBRARY_PATH=$fake XTTS_HOST_TEST_NVRTC=$fake/nvrtc/libnvrtc.so.13
export XTTS_PLUGIN_TEST_FAKE_ORT=$PWD/.cache/ort/1.29.0/libonnxruntime.so.1.29.0 XTTS_HOST_ORT_LIB=$fake/libonnxruntime.so
gpu=GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf
XTTS_HOST_TEST_GPU=$gpu go test -race -vet=off -ldflags=-w ./gpu/cuda "$@"
XTTS_PLUGIN_TEST_FAKE_CARDS=1024,1024 XTTS_HOST_TEST_GPUS=2 go test -race -vet=off -ldflags=-w ./gpu/nccl "$@"
XTTS_HOST_TEST_GPU=$gpu go test -race -vet=off -ldflags=-w -run Processes ./gpu/peers "$@"
XTTS_HOST_TEST_CUBLAS=fake go test -race -vet=off -ldflags=-w ./gpu/cublas "$@"
XTTS_HOST_TEST_GPU=$gpu go test -race -vet=off -ldflags=-w -run 'UpdateKernel|SquaresKernel|WeighKernel' -bench Update -benchtime 1x ./host/train "$@"
XTTS_HOST_TEST_GPU=$gpu go test -vet=off -ldflags=-w -run GPU ./ortgraphs/fuse "$@"
# Under the race detector the scripts take twice the time or more: make nightly runs them so.
go test ${XTTS_NIGHTLY:+-race} -vet=off -ldflags=-w -run 'TestFakeGPU$' ./cmd/xtts-host "$@"
