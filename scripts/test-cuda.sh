#!/usr/bin/env bash
# Vets and tests what stands behind the build tag `cuda`, on a fake driver: gpu/cuda/fakecuda/fake.c. No GPU is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

env=$(scripts/cuda-env.sh)
eval "$env"
fake=$PWD/.cache/cuda/fake
scripts/cuda-stub.sh "$XTTS_HOST_CUDA_INCLUDE" "$fake" gpu/cuda/fakecuda/fake.c
go vet -race -tags cuda ./gpu/cuda
LD_LIBRARY_PATH=$fake go test -race -vet=off -tags cuda ./gpu/cuda "$@"
