# airpath, from a clean clone: `make demo` sets up the build and runs the main job, `make test` sets
# it up and runs the tests. Needs Python 3.11 or newer, Rust 1.90 or newer, and make. All files that
# it makes are in .venv and target.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

# Tests and benchmarks of the crates are no part of the package.
RUST_SOURCES := $(shell find crates presets -type f -not -path '*/tests/*' -not -path '*/benches/*' 2>/dev/null) \
    Cargo.toml Cargo.lock
DEMO := runs/demo
# Cargo's profile and features of the Python module; the test of the wheel builds with the same. In
# CI, the Rust tests have them too, so that one build of the crates serves both.
export AIRPATH_PROFILE ?= $(if $(CI),checked,release)
export AIRPATH_FEATURES ?= $(strip extension-module $(if $(CI),shared-with-tests))
export AIRPATH_TEST_PROFILE ?= $(if $(CI),checked,dev)
RUST_TESTS := cargo test --workspace --locked --quiet --profile $(AIRPATH_TEST_PROFILE)
# Tests start hundreds of commands: some machines forbid Python to keep compiled modules.
export PYTHONDONTWRITEBYTECODE :=
# A single build has no use for what Cargo keeps for the next one. A warning of any build is an
# error.
ifdef CI
export CARGO_INCREMENTAL := 0
export RUSTFLAGS := -D warnings
endif

.PHONY: setup demo test soak lint lint-rust lint-python lint-dependencies rust-tests run-rust-tests docs wheel wheels deny bench validate captures fresh mutants clean

setup: $(VENV)/.packages $(VENV)/.native

demo: setup
	@# A run does not replace the result of another scenario, as of an earlier version of an example.
	@rm -rf $(DEMO)/hs-dsch $(DEMO)/dch $(DEMO)/no-proxy $(DEMO)/proxy $(DEMO)/curl
	@$(BIN)/airpath run examples/hs-dsch.toml --out $(DEMO)/hs-dsch
	@$(BIN)/airpath run examples/dch.toml --out $(DEMO)/dch
	@# Short downloads beside a long one, without a proxy and with one.
	@$(BIN)/airpath run examples/short-transfers.toml --out $(DEMO)/no-proxy
	@$(BIN)/airpath run examples/short-transfers.toml --set proxy.budget=adaptive --set name="GPRS, proxy" --out $(DEMO)/proxy
	@# Real curl on the bearer of hs-dsch.toml, in real time, where the host allows it.
	@sh examples/curl.sh $(DEMO)/curl $(BIN)/airpath || rm -rf $(DEMO)/curl
	@$(BIN)/airpath report $(DEMO)/hs-dsch $$(ls -d $(DEMO)/curl 2>/dev/null) $(DEMO)/dch -o $(CURDIR)/$(DEMO)/report.html
	@$(BIN)/airpath report $(DEMO)/no-proxy $(DEMO)/proxy -o $(CURDIR)/$(DEMO)/proxy.html

# One core builds while the other lints. In CI, the crates of the module are built with the Rust
# tests: the module is linked, and Python linted, while these run. The property tests have one seed:
# their result is the same on every machine. Tests in real time run at the end, where no other test
# takes both cores. They mostly wait, so four run at a time. The last lines are a list of all
# skipped tests.
test: export AIRPATH_SKIPPED := $(CURDIR)/target/skipped.txt
test:
	@$(MAKE) --no-print-directory --jobs=2 lint-rust lint-dependencies rust-tests $(if $(CI),$(VENV)/.packages,lint-python)
	@rm -f $(AIRPATH_SKIPPED)
	@$(MAKE) --no-print-directory --jobs=2 run-rust-tests $(if $(CI),lint-python)
	$(BIN)/pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder -m 'not soak and not real_time'
	$(BIN)/pytest --numprocesses=4 --dist=worksteal --reruns 1 -r fER -m 'not soak and real_time'

rust-tests: lint-rust
	$(RUST_TESTS) --no-run

# Cargo is no part of this Makefile's jobs.
run-rust-tests: export MAKEFLAGS :=
run-rust-tests:
	PROPTEST_RNG_SEED=1 $(RUST_TESTS)

# The property tests with new seeds and twenty times the cases, and the long tests of emulated
# links.
soak: setup
	PROPTEST_CASES=$${PROPTEST_CASES:-5000} $(RUST_TESTS)
	$(BIN)/pytest -m soak

lint: lint-rust lint-python lint-dependencies

lint-rust: $(VENV)/.compilers
	cargo fmt --all --check
	@# With the profile of the tests, both have one build of build scripts and procedural macros.
	cargo clippy --workspace --all-targets --locked --quiet --profile $(AIRPATH_TEST_PROFILE) -- -D warnings
	@# The shipped features only: the crates' tests enable further ones in each other. In CI the module
	@# has those, too, and this second check is left out.
	$(if $(CI),,cargo clippy --workspace --locked --quiet -- -D warnings)

# Without the advisories, which need the network and change from day to day: `make deny`.
lint-dependencies: $(VENV)/.python
	PATH="$(CURDIR)/$(BIN):$$PATH" cargo deny --log-level error --workspace --locked check licenses bans sources

lint-python: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/python tools/words.py

# The documentation as a site in target/site.
docs: $(VENV)/.native
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel and the source distribution in target/wheels, and a user's first commands with the wheel
# in an empty environment. `make wheel PGO=--pgo` optimises by a profile, as for a release, and
# takes three times as long.
PGO ?=
wheel: setup
	@rm -rf target/wheels
	$(if $(PGO),rustup component add llvm-tools)
	$(BIN)/maturin build --release --locked $(PGO) --out target/wheels
	$(BIN)/maturin sdist --out target/wheels
	AIRPATH_WHEELS=target/wheels $(BIN)/pytest -m "" tests/repository/test_wheel.py

# The wheels of a release, for a C library as old as that of manylinux_2_28 and for both
# architectures: Zig cross-compiles the C code and links.
wheels: setup
	rustup target add x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
	$(BIN)/python -m pip install --quiet 'ziglang>=0.13'
	@for architecture in x86_64 aarch64; do \
	    PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --zig --compatibility manylinux_2_28 \
	        --target $$architecture-unknown-linux-gnu --interpreter python3.11 --out target/wheels || exit; \
	done

# Licences, sources and advisories of the dependencies. Fetches the database of advisories.
deny: $(VENV)/.python
	PATH="$(CURDIR)/$(BIN):$$PATH" cargo deny --workspace --locked check

bench: setup
	@sh .ci/system-packages peers
	$(BIN)/python benches/compare.py
	$(BIN)/python benches/radio.py
	$(BIN)/python benches/emulators.py

# Random scenarios in airpath, ns-2 and ns-3, and formulas: docs/validation.md. More of them:
# make validate SCENARIOS=100 SEED="1 2 3"
SCENARIOS ?= 30
SEED ?= 1
validate: setup
	@sh .ci/system-packages peers
	$(BIN)/python benches/validation --scenarios $(SCENARIOS) $(addprefix --seed ,$(SEED)) $(ARGUMENTS)

# The captures of tests/captures, from the scenarios there.
captures: setup
	$(BIN)/python tests/captures/make.py

# `make demo` and `make test` in a new Debian, as root and as an ordinary user: docs/testing.md.
fresh:
	@sh .ci/fresh $(ARGUMENTS)

# Number of mutants that the tests catch: make mutants CRATES="tcp radio" SAMPLE=40 SEED=1
CRATES ?= tcp link radio observe trace
SAMPLE ?= 40
mutants:
	@$(PYTHON) .ci/mutants --sample $(SAMPLE) --seed $(SEED) $(CRATES)

clean:
	rm -rf $(VENV) target runs

# The tests' tools from Debian, where they are missing and may be installed.
$(VENV)/.packages: .ci/system-packages | $(VENV)/.python
	@sh .ci/system-packages tests
	@touch $@

# What builds need from Debian, where it is missing and may be installed.
$(VENV)/.compilers: .ci/system-packages
	@sh .ci/system-packages build $(PYTHON)
	@mkdir -p $(VENV)
	@touch $@

# The environment with the development tools; re-created parts follow pyproject.toml. In CI, a
# module is compiled at its first import: most of those of the tools are never imported.
$(VENV)/.python: pyproject.toml $(VENV)/.compilers
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet $(if $(CI),--no-compile) --group dev
	@touch $@

# The package itself, editable: only a change of the Rust sources needs a build.
$(VENV)/.native: $(VENV)/.python $(RUST_SOURCES)
	@PIP_QUIET=1 $(BIN)/maturin develop --profile $(AIRPATH_PROFILE) --features "$(AIRPATH_FEATURES)" --locked --quiet
	@touch $@
