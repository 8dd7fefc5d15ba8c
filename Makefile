# Two commands do everything on a fresh machine: make run, make test.

GO      ?= go
# A source archive may be unpacked in the repository of something else.
GIT      = git --git-dir=.git
VERSION ?= $(shell $(GIT) describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell $(GIT) rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# LDFLAGS state the version: go need not ask git, which refuses to read the repository of another user.
BUILD    = $(GO) build -trimpath -buildvcs=false
# The test of the system's key ring is for Linux, with a secret service on a session bus.
KEYRING = $(if $(filter Linux,$(shell uname -s)),1)
GORELEASER = github.com/goreleaser/goreleaser/v2@v2.15.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: run build release reproducible image test check lint bench soak eval calibrate train demo pictures generate help clean

## run: install what is missing, build, and start `hubbub live`; ARGS="--input meeting.wav" passes arguments on
run: build
	@exec bin/hubbub live $(ARGS)

## build: bin/hubbub; without PortAudio's headers and no way to install them, with the machine's recorder as the microphone
build:
	@.ci/install build >&2 || true
	@if pkg-config --exists portaudio-2.0 2>/dev/null; then \
		CGO_ENABLED=1 $(BUILD) -ldflags '$(LDFLAGS)' -o bin/hubbub ./cmd/hubbub; \
	else \
		echo 'PortAudio could not be installed: this build uses a recorder that the machine has, such as parec or arecord.' >&2; \
		CGO_ENABLED=0 $(BUILD) -ldflags '$(LDFLAGS)' -o bin/hubbub ./cmd/hubbub; \
	fi

## release: archives for six systems, Linux packages and checksums in .cache/release, and their test; publishes nothing
release:
	@.ci/install release >&2
	VERSION='$(VERSION)' COMMIT='$(COMMIT)' DATE=$$($(GIT) log -1 --format=%cI) SOURCE_DATE_EPOCH=$$($(GIT) log -1 --format=%ct) \
		$(GO) run $(GORELEASER) release --snapshot --clean
	HUBBUB_RELEASE='$(CURDIR)/.cache/release' $(GO) test -count 1 -run '^TestRelease$$' ./cmd/hubbub

## reproducible: make release twice, and compare the checksums
reproducible:
	@$(MAKE) --no-print-directory release && cp .cache/release/checksums.txt .cache/checksums.first
	@$(MAKE) --no-print-directory release && cmp .cache/checksums.first .cache/release/checksums.txt && echo 'two builds are equal' >&2

# IMAGE is what the container image is called, ARCH its architecture.
IMAGE ?= hubbub
ARCH  ?= $(shell $(GO) env GOARCH)

## image: a container image of the service from scratch, into .cache/image/hubbub.tar, with buildah, and its test; ARCH=arm64
image:
	@.ci/install image >&2
	@rm -rf .cache/image && mkdir -p .cache/image/data
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(BUILD) -ldflags '$(LDFLAGS) -buildid=' -o .cache/image/hubbub ./cmd/hubbub
	@cp /etc/ssl/certs/ca-certificates.crt .cache/image/ && chmod -R a+rX .cache/image
	buildah build --isolation chroot --storage-driver vfs --format docker --platform linux/$(ARCH) --timestamp $$($(GIT) log -1 --format=%ct 2>/dev/null || echo 0) \
		--label org.opencontainers.image.version='$(VERSION)' --tag $(IMAGE) -f docs/Containerfile .cache/image
	@rm -f .cache/image/hubbub.tar
	buildah push --storage-driver vfs $(IMAGE) docker-archive:.cache/image/hubbub.tar:$(IMAGE)
	@[ '$(ARCH)' != '$(shell $(GO) env GOHOSTARCH)' ] || HUBBUB_IMAGE='$(CURDIR)/.cache/image/hubbub.tar' $(GO) test -count 1 -run '^TestImage$$' ./cmd/hubbub

# Without the checks of pointers that -race adds: only tests use unsafe pointers, and the portaudio package passes the
# number of a stream as a pointer.
RACE = -race -gcflags=all=-d=checkptr=0
# These packages start no goroutines, and the race detector makes them up to 30 times slower: the engine, the processing of
# samples, the decoders of FLAC and MP3, regular expressions, the arithmetic of cryptography. They are compiled without it,
# into tests and programs that have it. What streams share of the engine is tested with it. After RACE, because the last
# pattern that matches a package applies.
SERIAL = $(foreach package,hubbub/localserver/engine/... hubbub/capture/signal github.com/mewkiz/flac/... \
	github.com/hajimehoshi/go-mp3/... regexp/... crypto/internal/fips140/...,-gcflags=$(package)=-race=false)

# GORACE: a program with the race detector waits a second at its end, of which the tests start hundreds.
## test: install what the tests need and run all of them; what fails is run again, twice at most
test:
	@.ci/install test >&2
	@$(MAKE) --no-print-directory lint FLAGS='$(RACE) $(SERIAL)'
	$(GO) test $(RACE) -vet=off -run TestStreamsAtOnce ./localserver/engine
	GORACE=atexit_sleep_ms=50 HUBBUB_REQUIRE_AUDIO=1 HUBBUB_REQUIRE_TMUX=1 HUBBUB_REQUIRE_KEYRING=$(KEYRING) HUBBUB_REQUIRE_CLIENTS=$(if $(shell command -v apt-get),1) HUBBUB_REQUIRE_POCKETSPHINX=$(if $(shell command -v apt-get),1) GO=$(GO) .ci/test -p 3 $(RACE) $(SERIAL) -ldflags=-w -vet=off -timeout 14m

# -ldflags=-w: the test binaries are linked faster without debugging information. -p 12: many tests wait, so more packages
# run at once than there are cores.
## check: format, lint, and the tests that start no other program; one to two minutes
check:
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "gofmt -w: $$files" >&2; exit 1; }
	@$(MAKE) --no-print-directory lint
	$(GO) test -short -vet=off -ldflags=-w -p 12 ./...

# FLAGS: make test gives those of its tests, so that nothing is compiled without them as well.
## lint: go vet and staticcheck, both without a finding
lint:
	@.ci/install build >&2
	$(GO) vet $(FLAGS) ./...
	$(GO) run -exec 'env "GOFLAGS=$(GOFLAGS) $(FLAGS)"' $(STATICCHECK) ./...

## bench: every benchmark of the repository
bench:
	@.ci/install build >&2
	$(GO) test -run '^$$' -bench . -benchmem ./...

## soak: memory, CPU and output to the terminal of the console over an hour; ARGS="60 --record DIR"
soak: build
	@.ci/install test >&2
	@.ci/soak $(ARGS)

EVAL = CGO_ENABLED=0 $(GO) run ./cmd/eval
ENROLMENT = /usr/bin/python3 localserver/engine/training/enrolment.py --speech ../shared/speech
CONDITIONS = /usr/bin/python3 ../shared/speech/conditions/make.py

# Without variables: by the whole program, by the engine alone at four latencies, in twelve recording conditions, and the
# names of enrolled people there.
## eval: accuracy on the sets of ../shared/speech; or of the engine on one recording, REF=x.rttm WAV=x.wav; or as ARGS say
ifeq ($(REF)$(WAV)$(ARGS),)
eval: build .cache/conditions .cache/enrolment
	@$(EVAL) --program bin/hubbub
	@$(EVAL) --latency 0.5,1,2,5
	@$(EVAL) --dir .cache/conditions --sets $$(ls .cache/conditions | paste -sd,)
	@$(EVAL) --enrolment .cache/enrolment
	@$(EVAL) --enrolment .cache/enrolment --meetings $$(ls -d .cache/enrolment/conditions/* | paste -sd,)
else
eval:
	@$(EVAL) $(if $(REF)$(WAV),--ref '$(REF)' --wav '$(WAV)') $(ARGS)
endif

# sim-dev as through other microphones, lines and rooms.
.cache/conditions:
	@.ci/install eval >&2
	@rm -rf $@.part && mkdir -p .cache && $(CONDITIONS) ../shared/speech/sim-dev $@.part >&2 && mv $@.part $@

# Meetings of enrolled people, clean and in the same conditions, and their enrolment speech.
.cache/enrolment:
	@.ci/install eval >&2
	@rm -rf $@.part && $(ENROLMENT) --count 32 --seed 2 --out $@.part >&2
	@$(CONDITIONS) $@.part/meetings $@.part/conditions >&2 && mv $@.part $@

## calibrate: what recognising voices has learnt for these weights: writes the matrix and the cohort, prints the calibration
calibrate: .cache/training-enrolment .cache/cohort .cache/calibration
	@/usr/bin/python3 localserver/engine/training/projection.py --weights localserver/engine/weights/engine.hubw \
		--out localserver/engine/voiceprint/projection.bin .cache/training-enrolment
	@$(EVAL) --people .cache/cohort/people --cohort localserver/engine/voiceprint/cohort.bin
	@$(EVAL) --enrolment .cache/calibration --calibrate \
		--meetings $$(ls -d .cache/calibration/meetings .cache/calibration/conditions/* | paste -sd,)

# Meetings and enrolment speech of people of the training data, most of them through channels.
.cache/training-enrolment:
	@.ci/install train >&2
	@rm -rf $@.part && $(ENROLMENT) --split train --people 400 --channels .7 --count 240 --seed 8 --out $@.part >&2 && mv $@.part $@

# Speech of people of the training data, half of it through channels.
.cache/cohort:
	@.ci/install eval >&2
	@rm -rf $@.part && $(ENROLMENT) --split train --people 81 --channels .5 --count 0 --seed 7 --out $@.part >&2 && mv $@.part $@

# Other meetings of enrolled people, clean and in four conditions.
.cache/calibration:
	@.ci/install eval >&2
	@rm -rf $@.part && $(ENROLMENT) --count 48 --seed 3 --out $@.part >&2
	@$(CONDITIONS) $@.part/meetings $@.part/conditions telephone far call noisy >&2 && mv $@.part $@

## train: the engine's networks from ../shared/speech to .cache/train: on a GPU (PYTHON: a Python with PyTorch for it), then an hour or two on two cores; continues where it was interrupted
train:
	@.ci/install train >&2
	@localserver/engine/training/recipe ../shared/speech .cache/train

## demo: synthesise the demo conversation again, with flite, sox and flac; not needed to build or test
demo:
	$(GO) run ./capture/demo/synthesise -dir capture/demo

## pictures: docs/session.svg, the animation in the README: a real session, recorded in a terminal
pictures: build
	.ci/picture docs/session.svg ' 1:00' '' bin/hubbub live --input capture/demo/demo.flac

## generate: the assembly of the engine's kernels
generate:
	$(GO) generate ./localserver/engine/...

## clean: remove what was built
clean:
	rm -rf bin .cache/release .cache/image

## help: the targets of this file
help:
	@sed -n 's/^## \([a-z]*\): /\1\t/p' Makefile | expand -t 14
