#!/usr/bin/env bash
# Runs scripts/gpu-suite.sh from end to end on two fake GPUs (scripts/cuda-fake.sh), in about two minutes, to find its errors before
# it runs on a machine with GPUs, where time is expensive. The figures mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/venv-plugin.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$PWD/.cache/venv-plugin/bin:$PATH
XTTS_HOST_TEST_MIXED=$work/pico go test -count=1 ./ortgraphs/bundletest
BF16_BUNDLES=$work/pico scripts/gpu-suite.sh pack "$work/kit" ortgraphs/testdata/pico
LD_LIBRARY_PATH=$(scripts/cuda-fake.sh)
export XTTS_HOST_TEST_NVRTC=$LD_LIBRARY_PATH/nvrtc/libnvrtc.so.13
export LD_LIBRARY_PATH XTTS_PLUGIN_TEST_FAKE_CARDS=2048,2048 XTTS_PLUGIN_TEST_FAKE_ORT=$PWD/.cache/ort/1.29.0/libonnxruntime.so.1.29.0
export XTTS_HOST_ORT_LIB=${LD_LIBRARY_PATH%%:*}/libonnxruntime.so
export STEPS=20 BATCH_SIZES=4,8 CAP_MB=1500 CAP_BATCH=4 CAP_STEPS=50 BENCHTIME=3x
export KILLS=13 JOBS=2 LIMITS_MB=1500 LIMITS_STEPS=20 LIMITS_PRECISIONS=tf32
for section in tests nccl losses bench cap limits faults torture latency; do
	SECTIONS=$section scripts/gpu-suite.sh run "$work/kit" "$work/$section.json"
done
# PyTorch is in another environment. The bf16 graph of the test computes in f32, so that the CPU can run it.
PATH=$PWD/.cache/venv-export/bin:$PATH BF16_STEPS=12 BF16_HALF=5 SECTIONS=bf16 scripts/gpu-suite.sh run "$work/kit" "$work/bf16.json"
scripts/gpu-suite.sh merge "$work/all.json" "$work"/{tests,nccl,losses,bench,cap,limits,faults,torture,latency,bf16}.json
