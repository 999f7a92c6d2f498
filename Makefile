# The modules are those of go.work: `go list -m` lists them, and the pattern `work` matches every
# package in them.

SHELL       := bash
MAKEFLAGS   += --no-print-directory
unexport GOWORK

FUZZTIME ?= 10s
SEEDS    ?= 2000
FIRST    ?= 1
ARGS     ?=
VERSION  ?=
PUBLISH  ?=

# Tools are pinned here and built once.
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT         := $(CURDIR)/.cache/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

GOVULNCHECK_VERSION := v1.9.0

# Kubernetes' API server, built once from a module outside of go.work, so that it has Kubernetes'
# own dependencies.
KUBERNETES_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2; exit }' integration/servers/kubernetes/apiserver/go.mod)
API_SERVER         := $(CURDIR)/.cache/kubernetes/kube-apiserver-$(KUBERNETES_VERSION)

# The build tag for portable code without assembly, and the packages with files for it.
PORTABLE          := purego
PORTABLE_PACKAGES := ./sparx64 ./internal/entropy ./idgen

MODULES := go list -m -f '{{.Dir}}'

# Tests have no limit that a machine four times slower meets: it only ends a test that hangs.
GO_TEST := go test -timeout 1h

# Runs a command with the servers of the tests in the packages of stores.
WITH_SERVERS := go run ./integration/servers/with

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## run two services, and show what is in the trace ID of a request
	examples/demo.sh

.PHONY: test
test: engines js java python ## run every test of every module; those of Kubernetes only if its API server was built
	@set -euo pipefail; \
	$(WITH_SERVERS) $(GO_TEST) work; \
	[[ -x $(API_SERVER) ]] || echo "the tests of Kubernetes were skipped: make kubernetes builds its API server"

JS := clients/js/node_modules/.package-lock.json
.PHONY: js
js: $(JS) ## test the JavaScript client in Node; TestBrowser of integration/collector tests it in Chromium
	cd clients/js && npm test && cd test/sdk3 && npm ci --loglevel=error && npm test

# NEEDS CHECK,NAME,PROGRAMS: skips a client whose tools are missing; in CI that is an error.
NEEDS = { $(1); } >/dev/null 2>&1 || { echo "the $(2) client was not tested: it needs $(3)"; [[ -z $${CI:-} ]]; exit; };

.PHONY: java
java: ## build and test the Java client, if there is a JDK and Maven
	@$(call NEEDS,mvn --version && javac --release 17 --version,Java,JDK 17 or newer and Maven) \
	clients/java/test.sh

.PHONY: python
python: ## build and test the Python client, if there is Python
	@$(call NEEDS,python3 -c 'import ensurepip; from sys import *; exit(hexversion < 0x30a0000)',Python,Python 3.10 or newer with venv) \
	clients/python/test.sh

.PHONY: api-server
api-server: $(API_SERVER) ## build Kubernetes' API server, once, in about 5 minutes

.PHONY: kubernetes
kubernetes: $(API_SERVER) ## run the tests that need Kubernetes' API server
	$(WITH_SERVERS) $(GO_TEST) -count=1 ./lease/k8sstore ./integration/servers/kubernetes ./integration/lease/k8sstore ./integration/deploy ./integration/upgrade

# ClickHouse as a Python package: the version that tests use by default, and others. Each is 550 MB.
CLICKHOUSE          := $(CURDIR)/.cache/clickhouse-
CLICKHOUSE_DEFAULT  := $(shell awk -F '"' '/^\tversion / { print $$2; exit }' integration/servers/clickhouse.go)
CLICKHOUSE_NEWEST   := 26.9.0
CLICKHOUSE_VERSIONS ?= 26.3.0 $(CLICKHOUSE_NEWEST)
CLICKHOUSE_TESTS    ?= ^Test(DescendingKeys|Function.*|Queries.*|Scripts|OtherServers|MoveADay|EndLingers)$$

$(CLICKHOUSE)%/installed:
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps chdb-core==$* lz4==4.4.5 clickhouse-cityhash==1.0.2.6
	touch $@

.PHONY: bench-clickhouse
bench-clickhouse: engines $(CLICKHOUSE)$(CLICKHOUSE_NEWEST)/installed ## measure tables in ClickHouse into bench/clickhouse, in an hour; ARGS="5-million" for one group, ARGS=check prints a small one
	@set -euo pipefail; cd bench/clickhouse; \
	for group in $(or $(ARGS),100-million 5-million of-the-exporter 1-million older-server); do \
		version=$(CLICKHOUSE_NEWEST); \
		[[ $$group != older-server ]] || version=$(CLICKHOUSE_DEFAULT); \
		page=$$(TRACEFLAKETEST_CLICKHOUSE_VERSION=$$version go run . $$group); \
		if [[ $$group == check ]]; then echo "$$page"; else echo "$$page" >results/$$group.md; fi; \
	done

.PHONY: clickhouse-versions
clickhouse-versions: $(CLICKHOUSE_VERSIONS:%=$(CLICKHOUSE)%/installed) ## test ClickHouse's functions, tables, queries and adoption on the oldest and the newest version
	@set -euo pipefail; \
	for version in $(CLICKHOUSE_VERSIONS); do \
		echo "ClickHouse $$version"; \
		TRACEFLAKETEST_CLICKHOUSE_VERSION=$$version $(GO_TEST) -count=1 -run '$(CLICKHOUSE_TESTS)' ./integration/clickhouse; \
	done

# The packages that services link, and the concurrent tests of stores on real servers. The skipped
# tests are sequential. The other tests with servers have no concurrency of their own, and their
# dependencies take minutes to build with the race detector.
.PHONY: race
race: engines ## run the tests of the packages for users, and of the stores with their servers, under the race detector
	@set -euo pipefail; \
	packages=$$(go list work); \
	$(WITH_SERVERS) $(GO_TEST) -race -skip '^Test(SimulationReplays|RequestsOfAFleet)$$' $$(grep -vE '^[^/]+/[^/]+/[^/]+/(examples|bench|integration|sparx64/_asm)(/|$$)' <<<"$$packages"); \
	$(WITH_SERVERS) $(GO_TEST) -race -run '^TestObjectsThroughPgbouncer$$/^histories$$|Faults' ./integration/lease/...

.PHONY: sim
sim: ## run the simulator of leases with SEEDS seeds from FIRST on; SEEDS=1 replays one
	go test ./lease -run '^TestSimulation$$' -count=1 -timeout 0 -v -args -seeds $(SEEDS) -first $(FIRST)

IDS ?= 1000000000
.PHONY: soak
soak: engines ## generate IDS IDs in processes that are killed, stopped and restarted, on each store, while its server is killed or fails over
	TRACEFLAKETEST_SOAK_IDS=$$(($(IDS) / 5)) go test ./integration/lease/... -p 1 -run '^TestProcesses$$' -count=1 -timeout 0 -v

.PHONY: model
model: ## check the proof and the model of the lease rule, and that every wrong variant fails; needs python3-z3, spin and gcc
	lease/model/check

.PHONY: fuzz
fuzz: ## run every fuzz target of every module for FUZZTIME each
	@set -euo pipefail; \
	files=$$(go list -f '{{$$d := .Dir}}{{range .TestGoFiles}}{{$$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$d}}/{{.}}{{"\n"}}{{end}}' work); \
	targets=$$(grep -EHo '^func Fuzz\w*' $$files); \
	while IFS=: read -r file func; do \
		echo "$${func#func } ($${file#$(CURDIR)/})"; \
		go test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) "$${file%/*}" </dev/null; \
	done <<<"$$targets"

.PHONY: bench
bench: engines ## measure IDs into bench/RESULTS.md, in about 20 minutes, on a quiet machine
	@set -euo pipefail; \
	runs=$$(mktemp); \
	trap 'rm -f "$$runs" "$$runs.others"' EXIT; \
	bench/run all $(ARGS) | tee "$$runs"; \
	benchstat=$$(cd bench && go run golang.org/x/perf/cmd/benchstat -col /gen "$$runs"); \
	section="## $$(sed -n 's/^processor: //p' "$$runs")"; \
	awk -v ours="$$section" '/^## / { skip = $$0 == ours } !skip' bench/RESULTS.md >"$$runs.others"; \
	{ cat "$$runs.others"; printf '%s\n\n' "$$section"; { go run ./bench/report "$$runs" || true; }; printf '\n```\n%s\n```\n' "$$benchstat"; } >bench/RESULTS.md

.PHONY: bench-check
bench-check: ## check the speed targets of this processor, in about 6 minutes: they must be met in two of three runs
	@set -euo pipefail; \
	tmp=$$(mktemp); \
	trap 'rm -f "$$tmp"' EXIT; \
	met=0 missed=0; \
	while ((met < 2 && missed < 2)); do \
		bench/run targets $(ARGS) >"$$tmp"; \
		if go run ./bench/report "$$tmp"; then met=$$((met + 1)); else missed=$$((missed + 1)); fi; \
	done; \
	((met == 2))

.PHONY: bench-cpus
bench-cpus: ## measure NewIDs and NewSpanID on 1, 2, 4, 8 and 16 CPUs, for benchstat -col /gen
	@bench/run cpus $(ARGS)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## run golangci-lint in every module
	@set -euo pipefail; \
	dirs=$$($(MODULES)) failed=0; \
	for dir in $$dirs; do \
		echo "lint $$dir"; \
		(cd "$$dir" && $(GOLANGCI_LINT) run ./...) || failed=1; \
	done; \
	[[ $$failed == 0 ]] || exit 1; \
	echo "lint $(CURDIR) with the tags of the portable code"; \
	$(GOLANGCI_LINT) run --build-tags $(PORTABLE) $(PORTABLE_PACKAGES)

.PHONY: vet-cross
vet-cross: ## run go vet for 386, Windows and macOS, and build for js/wasm, wasip1 and plan9
	set -euo pipefail; \
	GOARCH=386 go vet ./...; \
	GOOS=windows go vet ./... ./cmd/traceflake/...; \
	GOOS=darwin go vet ./... ./cmd/traceflake/...; \
	GOOS=js GOARCH=wasm go build ./...; \
	GOOS=wasip1 GOARCH=wasm go build ./...; \
	GOOS=plan9 go build ./...

# Without the workspace, whose other modules require newer versions than the root's go.mod.
OLDEST := ./idgen ./propagation/... ./lease/fleet ./traceid
.PHONY: oldest
oldest: ## run the tests that need OpenTelemetry with its oldest supported version
	GOWORK=off $(GO_TEST) $(OLDEST)

.PHONY: portable
portable: ## vet and test the packages with portable files, without assembly
	go vet -tags $(PORTABLE) $(PORTABLE_PACKAGES)
	$(GO_TEST) -tags $(PORTABLE) $(PORTABLE_PACKAGES)

# Long tests read TRACEFLAKETEST_NIGHTLY: with any non-empty value they run more rounds.
.PHONY: nightly
nightly: engines ## run every test with many more rounds, new random numbers, with a real Prometheus and a real Jaeger
	prometheus=$$(deploy/prometheus/check) && jaeger=$$(deploy/jaeger/build) && \
	TRACEFLAKETEST_PROMETHEUS=$$prometheus TRACEFLAKETEST_JAEGER=$$jaeger TRACEFLAKETEST_NIGHTLY=1 $(WITH_SERVERS) $(GO_TEST) -count=1 work

.PHONY: arm64
arm64: ## run the tests of the packages with files for arm64 in an emulator
	@set -euo pipefail; \
	command -v qemu-aarch64 >/dev/null || { echo "qemu-aarch64 is not installed: apt-get install qemu-user"; exit 1; }; \
	GOARCH=arm64 $(GO_TEST) -exec qemu-aarch64 $(PORTABLE_PACKAGES) ./internal/vmclock

.PHONY: asm
asm: ## generate the amd64 assembly of the cipher
	cd sparx64/_asm && GOWORK=off go run . -out ../run_amd64.s

.PHONY: generate
generate: asm ## generate the assembly, and the picture in ARCHITECTURE.md
	go test ./internal/repocheck -run '^TestPicture$$' -count=1 -args -update

.PHONY: asm-check
asm-check: ## check that the amd64 assembly is what its generator writes
	@set -euo pipefail; \
	tmp=$$(mktemp -d); \
	trap 'rm -rf "$$tmp"' EXIT; \
	cp -r sparx64/_asm "$$tmp"; \
	(cd "$$tmp/_asm" && GOWORK=off go run . -out ../run_amd64.s); \
	diff -u sparx64/run_amd64.s "$$tmp/run_amd64.s"

.PHONY: alerts
alerts: ## check the alert rules with promtool
	deploy/prometheus/check

.PHONY: consumers
consumers: ## use each package outside of the repository as users do, in the next version
	.ci/release consumers

.PHONY: packages
packages: ## build and check the packages of the Java and Python clients
	.ci/release packages

.PHONY: release
release: ## show what release VERSION=v0.1.0 would do; with PUBLISH=yes create its commit and tags
	@[[ -n "$(VERSION)" ]] || { echo "set the version: make release VERSION=v0.1.0"; exit 1; }
	.ci/release "$(VERSION)" $(if $(filter yes,$(PUBLISH)),publish)

# The modules for users require each other by a version that may not be published yet: .ci/release
# serves that version to go mod tidy.
.PHONY: tidy
tidy: ## run go mod tidy in the modules for users and in others that replace none of them
	.ci/release tidy

.PHONY: commits
commits: ## check the messages of new commits; git config core.hooksPath .ci/hooks installs a hook
	.ci/commit-msg

.PHONY: vulnerabilities
vulnerabilities: ## look up the dependencies in Go's vulnerability database
	@set -euo pipefail; \
	go list work >/dev/null; \
	for dir in $$($(MODULES)); do (cd "$$dir" && go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...); done

.PHONY: clone-check
clone-check: ## check that go list, go vet and go doc change no file in a fresh clone
	@set -euo pipefail; \
	tmp=$$(mktemp -d); \
	trap 'rm -rf "$$tmp"' EXIT; \
	git clone --quiet . "$$tmp/clone"; \
	cd "$$tmp/clone"; \
	go list -m all >/dev/null; \
	go list -deps -test work >/dev/null; \
	go vet ./...; \
	for package in $$(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' work); do \
		go doc "$$package" >/dev/null; \
	done; \
	changes=$$(git status --porcelain); \
	[[ -z $$changes ]] || { echo "files changed:"; git diff --stat; exit 1; }

.PHONY: tidy-check
tidy-check: ## check that all is committed and formatted
	@set -euo pipefail; \
	unformatted=$$(git ls-files '*.go' | xargs gofmt -s -l); \
	[[ -z $$unformatted ]] || { echo "gofmt these files:"; echo "$$unformatted"; exit 1; }; \
	changes=$$(git status --porcelain); \
	[[ -z $$changes ]] || { echo "not committed:"; echo "$$changes"; exit 1; }

.PHONY: tools
tools: $(GOLANGCI_LINT) ## build the linter into .cache, once

.PHONY: engines
engines: $(if $(TRACEFLAKETEST_CLICKHOUSE_DSN),,$(CLICKHOUSE)$(CLICKHOUSE_DEFAULT)/installed) ## fetch ClickHouse and PostgreSQL into .cache, once
	integration/servers/fetch.sh

$(GOLANGCI_LINT):
	set -euo pipefail; \
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION); \
	mv $(@D)/golangci-lint $@

$(JS): clients/js/package-lock.json
	set -euo pipefail; \
	cd clients/js && npm ci --loglevel=error; \
	touch node_modules/.package-lock.json

$(API_SERVER): integration/servers/kubernetes/apiserver/main.go integration/servers/kubernetes/apiserver/go.mod
	set -euo pipefail; \
	cd integration/servers/kubernetes/apiserver; \
	GOWORK=off go build -trimpath -o $@ .
