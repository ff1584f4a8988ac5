SHELL := /bin/bash

# Everything that is fetched or built lies below this folder: nothing is written to HOME.
CACHE := $(CURDIR)/.cache
export GOPATH := $(CACHE)/go
export GOCACHE := $(CACHE)/go-build
export GOENV := $(HOME)/.config/go/env
export XDG_CONFIG_HOME := $(CACHE)/config
export XDG_CACHE_HOME := $(CACHE)
export ORT_DISABLE_TELEMETRY := 1
export GORACE := atexit_sleep_ms=0
# As scripts/build.sh, so that what it compiles is compiled once for the program, the tests and go run, in every folder.
# Nothing here reads debugging information, and without it Go compiles in seven eighths of the time.
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false $(GOFLAGS)
# As scripts/cgo-env.sh has them, which says why.
CUDA := $(shell readlink -m .cache)/cuda
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations '-I$(CUDA)/compat' '-I$(CUDA)/include'
export CGO_LDFLAGS := -O2 -g -Wl,-z,lazy '-L$(CUDA)/lib'

# Every package: shared is a module of its own, in this repository.
ALL := ./... github.com/xtts-host/xtts-host/shared/...
# Packages without goroutines: under the race detector their tests take several times as long, and it has nothing to
# find. The scripts of cmd/xtts-host run the whole program. Tests of host/run do so with the detector, and make nightly
# runs the scripts with it.
PURE := . ./cmd/xtts-host ./host/command/inspect ./host/speak/synthesize/sampling \
	./host/data/dataset/internal/layout \
	$(addprefix github.com/xtts-host/xtts-host/shared/audio/internal/,flac layer3 mp3 ogg opus vorbis wav) \
	github.com/xtts-host/xtts-host/shared/resample \
	$(addprefix ./host/,run/plan settings/schedule settings/selection settings/texts train/kernels) \
	$(addprefix ./ortgraphs/,fuse fuse/cost fuse/cudac fuse/cudac/cudactest fused leaves lifetime lint prune safetensors shapes) \
	$(addprefix ./ortgraphs/,steady variant)

PLATFORM = $(shell go env GOOS)_$(shell go env GOARCH)
# Relative, since the name of a target ends at a space.
ORT := .cache/ort/1.29.0/libonnxruntime.so.1.29.0

.PHONY: run need build plugins help test test-go test-python go-sdk python-sdk test-export test-checkpoints check torture faults soak fuzz nightly bench docs generate notices release test-release clean

run: ## fetch what is missing, build, and train on the embedded sample
	@scripts/run.sh

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

need:
	@scripts/need.sh
	@scripts/cgo-env.sh >/dev/null

build: need $(ORT) ## bin/xtts-host and the first-party plugins, each in its own folder
	scripts/build.sh

plugins: need
	scripts/build.sh plugins

$(ORT):
	scripts/fetch-ort.sh

test: test-go test-python check build ## everything that needs no PyTorch
	scripts/test-build.sh
	scripts/test-cuda.sh
	scripts/test-template.sh
	scripts/test-plugins-pack.sh
	@$(MAKE) --no-print-directory torture KILLS=13
	scripts/test-ranks.sh
	scripts/test-launchers.sh
	scripts/test-docs.sh
	scripts/test-audio.sh
	scripts/test-hostile.sh
	scripts/test-findings.sh --tested
	scripts/faults.sh 4

# First everything is compiled, while what the tests need is fetched: several packages build the plugins at the same time.
# Without debugging information the tests link in half the time, and one package more than two cores have room for uses the time in
# which others wait for processes. check vets them.
test-go: need
	@scripts/venv-plugin.sh & venv=$$!; $(MAKE) --no-print-directory $(ORT) & \
		go list -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' $(ALL) | xargs -r go build -race && \
		go build -trimpath -buildvcs=false ./plugins/features ./plugins/augment ./plugins/inference && \
		wait $$venv && wait $$!
	go list $(ALL) | grep -vxFf <(go list $(PURE)) | \
		xargs go test -race -vet=off -ldflags=-w -p $$(($$(nproc) + 1)) -timeout 20m
	go test -vet=off -ldflags=-w -timeout 20m $(PURE)

test-python: ## the Python SDK's tests
	@scripts/venv-plugin.sh
	cd shared/python && $(CURDIR)/.cache/venv-plugin/bin/python -B -m pytest tests ../../plugins/testdata/python

go-sdk: need ## the module of the Go SDK in .cache/go-sdk, a folder for GOPROXY; prints its version
	@go run ./scripts/gosdk shared .cache/go-sdk

python-sdk: build ## the wheel of the Python SDK in .cache/python-sdk, which runs a stage in a new environment
	scripts/python-sdk.sh

check: need ## format, vet, generated files, spelling, staticcheck and govulncheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'error: not gofmt-clean'; exit 1; }
	go vet $(ALL) # without -race, so that it compiles what staticcheck needs, too
	scripts/gen-proto.sh --check
	scripts/kernels.sh --check
	go run ./scripts/notices -check
	scripts/lint.sh

test-export: build ## the exporter's tests, in their own PyTorch environment (5.5 GB); commit the record that they write
	scripts/xtts_export/test.sh
	scripts/test-pytorch.sh
	scripts/test-torchrun.sh
	scripts/export-tested.sh --write

test-checkpoints: build ## those of the exporter's tests that run the program; commit the record of the checkpoint format
	scripts/test-checkpoints.sh

faults: build ## fail operations on files at PLACES (all) places in the code, one at a time, with ERROR (EIO), TIMES (once; always)
	$(if $(ERROR),ERROR=$(ERROR)) $(if $(TIMES),TIMES=$(TIMES)) scripts/faults.sh $(PLACES)

torture: build ## stop and kill KILLS (200) runs from SEED (1), or the one of CASE, and two runs AGAIN times together (a quarter)
	go run ./scripts/torture -kills $(or $(KILLS),200) -seed $(or $(SEED),1) $(if $(CASE),-case $(CASE)) $(if $(AGAIN),-again $(AGAIN))

soak: build ## MINUTES (20) of training with a plugin killed every 10 s; JSON=FILE takes the figures
	go run ./scripts/torture -soak $(or $(MINUTES),20)m $(if $(JSON),-json $(JSON))

fuzz: build ## every fuzz target for FUZZTIME (1m)
	scripts/fuzz.sh $(or $(FUZZTIME),1m)

# The packages with parts of two sizes, then the commands of which make test takes a part.
nightly: build ## what is random or repeated, in full; make test has a small fixed part of it
	@scripts/venv-plugin.sh
	go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' $(ALL) | sed -n 's| .*scripts/nightly.*||p' | \
		XTTS_NIGHTLY=1 xargs go test -vet=off -ldflags=-w -timeout 2h
	go test -race -vet=off -ldflags=-w -timeout 60m ./cmd/xtts-host
	XTTS_NIGHTLY=1 scripts/test-cuda.sh
	scripts/fuzz.sh $(or $(FUZZTIME),10s)
	XTTS_NIGHTLY=1 scripts/test-findings.sh
	scripts/test-hostile.sh --all
	scripts/test-tensorboard.sh
	scripts/test-prometheus.sh
	scripts/python-sdk.sh --lowest
	scripts/test-compatibility.sh
	scripts/test-examples.sh
	scripts/faults.sh
	scripts/test-ranks.sh --all
	scripts/test-slurm.sh
	scripts/test-systemd.sh
	scripts/test-container.sh
	@$(MAKE) --no-print-directory torture

bench: build
	go test -run '^$$' -bench . $(ALL)

docs: ## manual pages in .cache/man
	go run ./cmd/xtts-docs .cache/man

# The tests compare each of these files with the code; with -update they write it.
generate: need ## the pages, the schema and the pictures of docs that are made from the code
	go test -vet=off . -run '^TestArchitectureDrawsShelves$$' -update
	go test -vet=off ./cmd/internal/cli -run '^TestCommandsPage$$' -update
	go test -vet=off ./host/settings/config -run '^TestSchema$$' -update
	go test -vet=off ./host/settings/schedule -run '^TestPicture$$' -update
	go test -vet=off ./host/command/inspect -run '^TestWhichBatchPage$$' -update
	go test -vet=off ./plugins/augment -run '^TestSettingsPage$$' -update

notices: need ## THIRD_PARTY_NOTICES.md: the linked modules and their licenses
	go run ./scripts/notices

release: need $(ORT) ## dist/xtts-host-VERSION-linux-*.tar.gz, with VERSION=v0.2.0 or what git describe says
	scripts/release.sh $(VERSION)

test-release: need $(ORT) ## that an archive is complete, runs without Go and a compiler, and has the same bytes in two folders
	scripts/test-release.sh

clean: ## remove what make build makes; runs and .cache stay
	rm -rf bin plugins/*/*_$(PLATFORM) plugins/*/plugin.sum plugins/*/plugin.sources
