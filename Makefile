# What a person may run here. The lab and its tests need Go and Python; `make demo` and `cargo test`
# need Rust alone.

CARGO ?= cargo
TOOLS := $(or $(ZONE_ROLLOUT_TOOLS),$(HOME)/.cache/zone-rollout-tools)
CARGO_DENY_VERSION := 0.20.2
CARGO_ZIGBUILD_VERSION := 0.24.1
ZIG_VERSION := 0.17.1
LAB := $(CARGO) run --quiet -p zone-lab --bin lab --

.PHONY: bench campaign demo dist help install lab lab-down record test test-all tools

help:
	@echo 'make demo      show a release on a simulated cluster; SCENARIO=bad-release and others'
	@echo 'make install   build the plugin and put it where kubectl finds it'
	@echo 'make dist      archives for Linux and the krew manifest, in dist/'
	@echo 'make lab       build and start a real control plane with three Rollouts, and leave it up'
	@echo 'make lab-down  end it'
	@echo 'make bench     measure it next to what there is today'
	@echo 'make campaign  more schedules of faults on the simulated cluster than the tests try; N=2000'
	@echo 'make record    record on it the stories that the simulated cluster is compared with'
	@echo 'make test      everything that is checked before a change lands'
	@echo 'make test-all  that, and what takes too long for it'

demo:
	@$(CARGO) run --quiet --locked --bin kubectl-zone_rollout -- demo $(SCENARIO)

install:
	$(CARGO) install --quiet --locked --path .

dist: $(TOOLS)/bin/cargo-zigbuild $(TOOLS)/zig
	PATH="$(TOOLS)/bin:$(TOOLS)/zig/bin:$$PATH" plugin-manifest/dist.sh

lab:
	$(CARGO) build --quiet --bin kubectl-zone_rollout
	$(LAB) up

record:
	mkdir -p tests/lab/recordings
	ZONE_LAB_RECORD=1 $(LAB) test the_recordings

lab-down:
	$(LAB) down

bench:
	$(CARGO) build --quiet --locked --release --bin kubectl-zone_rollout
	$(CARGO) build --quiet --locked -p zone-lab --bin bench
	$(LAB) run -- sh -c 'PATH="$(CURDIR)/target/release:$$PATH" exec target/debug/bench'

campaign:
	CAMPAIGN=$(or $(N),2000) $(CARGO) test --quiet --locked --profile campaign -p zone-rollout-core --lib promotions

test: tools
	PATH="$(TOOLS)/bin:$$PATH" tests/phases.sh

test-all: tools
	PATH="$(TOOLS)/bin:$$PATH" ZONE_LAB_LONG=1 tests/phases.sh

tools: $(TOOLS)/bin/cargo-deny

$(TOOLS)/bin/cargo-deny:
	CARGO_TARGET_DIR=$(TOOLS)/target $(CARGO) install --quiet --locked --root $(TOOLS) cargo-deny --version $(CARGO_DENY_VERSION)
	rm -rf $(TOOLS)/target

$(TOOLS)/bin/cargo-zigbuild:
	CARGO_TARGET_DIR=$(TOOLS)/target $(CARGO) install --quiet --locked --root $(TOOLS) cargo-zigbuild --version $(CARGO_ZIGBUILD_VERSION)
	rm -rf $(TOOLS)/target

$(TOOLS)/zig:
	python3 -m venv $@
	$@/bin/pip install --quiet ziglang==$(ZIG_VERSION) || { rm -rf $@; exit 1; }
