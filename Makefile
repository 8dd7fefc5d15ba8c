# Two commands do everything on a fresh machine: make run, make test.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# The test of the system's key ring is for Linux, with a secret service on a session bus.
KEYRING = $(if $(filter Linux,$(shell uname -s)),1)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: run build test lint bench soak eval demo screenshot generate clean

## run: install what is missing, build, and start `hubbub live`; ARGS="--input meeting.wav" passes arguments on
run: build
	@exec bin/hubbub live $(ARGS)

## build: bin/hubbub; without PortAudio's headers and no way to install them, everything but the microphone
build:
	@.ci/install build >&2 || true
	@if pkg-config --exists portaudio-2.0 2>/dev/null; then \
		CGO_ENABLED=1 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/hubbub ./cmd/hubbub; \
	else \
		echo 'PortAudio could not be installed: this build has no microphone. Everything else works.' >&2; \
		CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/hubbub ./cmd/hubbub; \
	fi

## test: install what the tests need and run all of them
test:
	@.ci/install test >&2
	@$(MAKE) --no-print-directory lint
	HUBBUB_REQUIRE_AUDIO=1 HUBBUB_REQUIRE_TMUX=1 HUBBUB_REQUIRE_KEYRING=$(KEYRING) HUBBUB_REQUIRE_CLIENTS=$(if $(shell command -v apt-get),1) $(GO) test -race -timeout 14m ./...

## lint: go vet and staticcheck, both without a finding
lint:
	@.ci/install build >&2
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

## bench: every benchmark of the repo
bench:
	@.ci/install build >&2
	$(GO) test -run '^$$' -bench . -benchmem ./...

## soak: what the console costs over an hour with 8 speakers (memory, CPU, bytes to the terminal); ARGS="-for 10m"
soak: build
	@.ci/install test >&2
	@$(GO) run ./cmd/soak $(ARGS) -- bin/hubbub

## eval: the sets of ../shared/speech, by the whole program, then by the engine alone at four latencies; or the engine over REF=x.rttm WAV=x.wav, or as ARGS say
ifeq ($(WAV)$(ARGS),)
eval: build
	@CGO_ENABLED=0 $(GO) run ./cmd/eval --program bin/hubbub
	@CGO_ENABLED=0 $(GO) run ./cmd/eval --latency 0.5,1,2,5
else
eval:
	@CGO_ENABLED=0 $(GO) run ./cmd/eval $(if $(WAV),-ref '$(REF)' -wav '$(WAV)') $(ARGS)
endif

## demo: synthesise the demo conversation again (flite, espeak-ng, festival, sox); needed neither to build nor to test
demo:
	$(GO) run ./capture/demo/synthesise -dir capture/demo

## screenshot: docs/screen.png, from a real run in a terminal
screenshot: build
	@.ci/install test >&2
	$(GO) run ./cmd/shot -o docs/screen.png -size 120x34 -until '1:0[0-9] / ' -- bin/hubbub live --input capture/demo/demo.flac

## generate: the assembly of the engine's kernels
generate:
	$(GO) generate ./localserver/engine/...

clean:
	rm -rf bin
