# Tasks of this repository. Most people need only `make run` and `make test`.

CARGO ?= cargo
# Passed to the server by `make run`, for example ARGS="--port 6380 --concurrent".
ARGS ?=
# Seconds each fuzz target runs in `make fuzz-short`.
FUZZ_SECONDS ?= 30
# Seconds the stress test runs in each mode in `make test-long` and `make test-asan-server`.
STRESS_SECONDS ?= 60
# Numbers of servers killed, and of simulated power cuts, in the crash tests of `make test-long`.
CRASH_KILLS ?= 1000
CRASH_SEEDS ?= 2000
# Random writes during live queries there, in each mode, and the number of watchers.
LIVE_CHANGES ?= 1000000
LIVE_WATCHERS ?= 1000
# Servers killed there during live queries, for each of three ways to run them.
LIVE_KILLS ?= 350
# Failovers by Sentinel in each of four tests in `make test-long`.
SENTINEL_FAILOVERS ?= 50
# Tests of replication in `make test-long`: commands for each pair of servers; broken links of each pair; MB of data in
# a full sync under writes; seconds for which a replica is stopped.
REPLICA_COMMANDS ?= 100000
LINK_CUTS ?= 200
COPY_MEGABYTES ?= 5000
STOPPED_SECONDS ?= 60
# Destinations of values in tests of servers that demote values as early as possible (ember-testkit's `DEMOTION_TARGETS`).
VALUE_PLACES = tiers redb lmdb fjall
# The test programs of ember-peers, which need other programs installed. All targets select the whole workspace and name
# the programs to run: with other packages, dependencies would have other features and be built again.
PEERS_MAINS = $(wildcard crates/ember-peers/tests/*/main.rs)
PEERS_PROGRAMS = $(filter-out redis8,$(patsubst crates/ember-peers/tests/%/main.rs,%,$(PEERS_MAINS)))
PEERS_TESTS = $(addprefix --test ,$(PEERS_PROGRAMS))
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
IMAGE ?= ember

.PHONY: help run build release check fmt lint check-features check-dependencies bless build-tests test test-peers \
	test-redis8 test-stack test-model \
	test-asan test-tsan test-asan-server test-long \
	deb dist fuzz-short bench bench-quick bench-compare bench-cpu bench-memory bench-types bench-documents bench-encryption \
	bench-replication bench-latency bench-persistence bench-tails bench-threads bench-neighbours bench-live-queries \
	bench-cache bench-limit bench-memtier bench-load bench-parallel bench-workers \
	bench-stores bench-engines bench-tiers bench-kvbench bench-vectors bench-vector-latency charts \
	docker-build clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A quicker build than that of `make release`, 5 minutes on two cores instead of 8: without optimization across crates, and
# without the line numbers of backtraces. A GET at P=16 takes 6 % more CPU time.
run: export CARGO_PROFILE_RELEASE_LTO ?= off
run: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS ?= 16
run: export CARGO_PROFILE_RELEASE_DEBUG ?= none
run: release ## Build and start the server; ARGS="--port 6380" passes arguments.
	"$$(scripts/server-path.sh release)" $(ARGS)

build: ## Debug build.
	$(CARGO) build --workspace

release: ## Release build of ember-server and ember-cli.
	$(CARGO) build --release -p ember-server -p ember-cli

deb: release ## Build Debian packages of the release build, one with debug symbols, in target/packages.
	scripts/package-deb.sh "$$(dirname "$$(scripts/server-path.sh release)")" target/packages

dist: release ## Build an archive of the release build with its checksum, in target/packages.
	scripts/package-tar.sh "$$(dirname "$$(scripts/server-path.sh release)")" target/packages

check: fmt lint test ## Format, lints and tests: the gate for every change. Modifies no file.

fmt: ## Check the format.
	$(CARGO) fmt --all --check

lint: check-features ## Check the lints.
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace $(PEERS_TESTS) -- -D warnings

check-features: ## Check the lints of the server without its optional features, for example without jemalloc.
	$(CARGO) clippy -p ember-server --no-default-features -- -D warnings

check-dependencies: ## Check licences and sources of all dependencies with cargo-deny; installs it if missing.
	scripts/check-dependencies.sh

bless: ## Rewrite the files that tests generate: reference pages, ember.conf, manual pages, completions, licences.
	EMBER_BLESS=1 $(CARGO) test --workspace --lib --bins --test dependencies generated_one

build-tests: ## Build all test programs and benchmarks, and the ember-server and ember-cli that they start.
	$(CARGO) test --workspace --all-targets --no-run
	$(CARGO) test --workspace $(PEERS_TESTS) --no-run

test: ## All tests that need only Rust and a C compiler.
	$(CARGO) test --workspace --no-fail-fast
	EMBER_VALUES=tiers $(CARGO) test --workspace --test data --no-fail-fast

test-peers: build-tests ## Tests against redis-server, Redis Stack, real clients and a browser; installs those first.
	scripts/setup-peers.sh
	EMBER_SERVER="$$(scripts/server-path.sh debug)" CARGO=$(CARGO) scripts/test-peers.sh $(PEERS_PROGRAMS)

test-redis8: ## Compare vector sets with a redis-server 8, which is built first (a minute of CPU time).
	$(CARGO) build -p ember-server -p ember-cli
	EMBER_SERVER="$$(scripts/server-path.sh debug)" REDIS8_SERVER="$$(scripts/setup-redis8.sh)" \
		$(CARGO) test --workspace --test redis8

test-stack: ## Compare JSON and sketches with Redis Stack, which is installed first; STACK_COMMANDS=1000000 lengthens it.
	$(CARGO) build -p ember-server -p ember-cli
	scripts/setup-redis-stack.sh
	EMBER_SERVER="$$(scripts/server-path.sh debug)" $(CARGO) test --workspace --test stack

test-model: ## Model check of shard locks, forwarding between workers and parallel apply: thousands of schedules of each.
	RUSTFLAGS="--cfg shuttle" $(CARGO) test -p emberkv-core --test model --target-dir target/model

test-asan: ## The tests of the unsafe code under the address sanitizer (needs a nightly compiler).
	RUSTFLAGS="-Zsanitizer=address" $(CARGO) +nightly test -p emberkv-core -p ember-protocol -p ember-vector \
		--lib --tests --target $(HOST) --target-dir target/asan
	RUSTFLAGS="-Zsanitizer=address" $(CARGO) +nightly test -p ember-server --no-default-features --bin ember-server scripting \
		--target $(HOST) --target-dir target/asan

test-tsan: ## The tests of ember-vector's threads under the thread sanitizer (needs a nightly compiler with rust-src).
	RUSTFLAGS="-Zsanitizer=thread" $(CARGO) +nightly test -Zbuild-std -p ember-vector --test index threads \
		--target $(HOST) --target-dir target/tsan

test-asan-server: ## The stress test against a server under the address sanitizer (needs a nightly compiler).
	RUSTFLAGS="-Zsanitizer=address" $(CARGO) +nightly build -p ember-server --no-default-features \
		--target $(HOST) --target-dir target/asan
	EMBER_SERVER="$(CURDIR)/target/asan/$(HOST)/debug/ember-server" STRESS_SECONDS=$(STRESS_SECONDS) \
		$(CARGO) test -p ember-server --test stress -- --nocapture

test-long: ## The tests with many more random cases (half an hour).
	STRESS_SECONDS=$(STRESS_SECONDS) CRASH_KILLS=$(CRASH_KILLS) CRASH_SEEDS=$(CRASH_SEEDS) PROPTEST_CASES=20000 \
		DAMAGED_PLACES=1000000 REGISTRY_ROWS=all \
		LIVE_CHANGES=$(LIVE_CHANGES) LIVE_WATCHERS=$(LIVE_WATCHERS) LIVE_KILLS=$(LIVE_KILLS) \
		$(CARGO) test --profile test-long --workspace --no-fail-fast
	for place in $(VALUE_PLACES); do \
		EMBER_VALUES=$$place $(CARGO) test --profile test-long --workspace --test data --no-fail-fast || exit 1; done
	scripts/setup-peers.sh
	$(CARGO) build --release -p ember-server
	PEERS_COMMANDS=5000000 EMBER_SERVER="$$(scripts/server-path.sh release)" \
		$(CARGO) test --profile test-long --workspace --test comparison differential
	for place in $(VALUE_PLACES); do \
		EMBER_VALUES=$$place PEERS_COMMANDS=500000 EMBER_SERVER="$$(scripts/server-path.sh release)" \
		$(CARGO) test --profile test-long --workspace --test comparison differential || exit 1; done
	PEERS_COMMANDS=$(REPLICA_COMMANDS) PEERS_CUTS=$(LINK_CUTS) EMBER_SERVER="$$(scripts/server-path.sh release)" \
		COPY_MEGABYTES=$(COPY_MEGABYTES) STOPPED_SECONDS=$(STOPPED_SECONDS) \
		$(CARGO) test --profile test-long --workspace --test replicas -- --nocapture matrix cuts busy
	$(CARGO) build -p ember-server -p ember-cli
	SENTINEL_FAILOVERS=$(SENTINEL_FAILOVERS) $(CARGO) test -p ember-peers --test replicas sentinel -- --nocapture
	WALK_BUILDS=yes $(CARGO) test -p ember-peers --test walks the_readme
	$(MAKE) test-redis8
	$(MAKE) test-stack STACK_COMMANDS=1000000

fuzz-short: ## Each fuzz target for FUZZ_SECONDS (needs a nightly compiler and cargo-fuzz).
	scripts/fuzz-short.sh $(FUZZ_SECONDS)

bench: release ## ember in both modes, compared with redis-server.
	bench/bench.sh

bench-quick: release ## ember alone, about ten seconds.
	bench/bench-quick.sh

bench-compare: release ## The full matrix, compared with redis-server (and dragonfly if installed).
	bench/compare-redis.sh

bench-cpu: release ## Server CPU time per operation, compared with redis-server.
	bench/bench-cpu.sh

bench-replication: release ## Cost and speed of replication, compared with redis-server.
	bench/bench-replication.sh

bench-encryption: release ## Cost of encryption at rest for SET and GET.
	bench/bench-encryption.sh

bench-documents: release ## Memory and CPU time of JSON documents and Bloom filters, compared with Redis Stack.
	bench/bench-documents.sh

bench-types: release ## Memory and CPU time of lists, hashes, sets, sorted sets, streams and scripts.
	bench/bench-types.sh

bench-persistence: release ## Cost of an append-only file, of saving and loading, compared with redis-server.
	bench/bench-persistence.sh

bench-latency: release ## Latency at half load, with and without saving, compared with redis-server.
	bench/bench-latency.sh

bench-tails: release ## Tail latency while memory grows, keys expire or are evicted, and files are written.
	bench/bench-tails.sh

bench-threads: release ## Time of each thread of the server on one busy core, and its longest delay of a worker.
	bench/bench-threads.sh

bench-neighbours: release ## Effect of slow commands on other clients, compared with redis-server and Valkey.
	bench/bench-neighbours.sh

bench-live-queries: release ## Cost of live queries, and latency of their notifications.
	bench/bench-live-queries.sh

bench-memory: release ## Memory per key, compared with redis-server.
	bench/bench-memory.sh

bench-cache: release ## Memory per key at many sizes, and hit rate of a full cache, compared with redis-server and Valkey.
	bench/bench-cache.sh

bench-stores: release ## KVBench's table for every store, next to KVBench's figures.
	bench/bench-stores.sh

bench-engines: release ## Stores in engine files, compared with an append-only file.
	bench/bench-engines.sh

bench-tiers: release ## Cost of tiers, and of data larger than memory.
	bench/bench-tiers.sh

bench-kvbench: release ## ember compared with KVBench; KVBENCH is the path of its program.
	bench/bench-kvbench.sh

bench-limit: release ## Resident memory of a full cache while files are written, compared with redis-server and Valkey.
	bench/bench-limit.sh

bench-memtier: release ## The full matrix driven by memtier_benchmark.
	bench/bench-memtier.sh

bench-load: release ## A load of 1200 connections by memtier_benchmark, and throughput by number of workers.
	bench/bench-load.sh

bench-parallel: release ## Throughput with several load processes at once.
	bench/bench-parallel.sh

bench-workers: release ## Throughput of both modes by number of workers.
	bench/bench-workers.sh

bench-vectors: release ## Recall and speed of vector searches, compared with hnswlib, usearch and faiss.
	bench/bench-vectors.sh

bench-vector-latency: release ## Latency while vectors are added, searched and saved.
	bench/bench-vector-latency.sh

charts: ## Draw the charts of docs/charts from the CSV files next to them.
	bench/chart.sh

docker-build: ## Build the container image.
	docker build --build-arg EMBER_COMMIT="$$(git rev-parse HEAD 2>/dev/null)" -t $(IMAGE) .

clean: ## Remove build output.
	$(CARGO) clean
