# One command for each thing a developer or CI does; `make help` lists them. Set-up is incremental: what is up to date is left alone.

MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
WHEELS := .make/wheels
NATIVE_LOG := .make/native.log
CARGO := cargo
NATIVE := --manifest-path native/Cargo.toml
NATIVE_SOURCES := $(shell find native \( -name target -o -name fuzz \) -prune -o -type f ! -name '*.so' ! -name '*.pyc' ! -name '*.md' -print) \
	rust-toolchain.toml
# The first of these that runs; another one: make setup PYTHON=python3.13
PYTHON = $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
	if "$$name" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$name"; break; fi; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Cargo and maturin must build for the same interpreter, or each builds everything again.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_NO_INPUT := 1
# Each process would compile every module that it imports: two seconds for Beam alone.
unexport PYTHONDONTWRITEBYTECODE
# uv installs the locked packages in seconds; pip, which comes with Python, installs uv.
UV := $(BIN)/uv --quiet --system-certs
COMPILE = $(UV) pip compile --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"
# One lock for each purpose, all exported from the one resolution in requirements.lock.
GROUPS := run test lint docs bench release

DEMO_OUT := out/demo
DEMO_SOURCES = $(shell $(BIN)/python -c 'import numpy, pyarrow; print(numpy.get_include(), pyarrow.get_include())') \
	$(wildcard /usr/include/c++/*)
HOSTILE_OUT := out/hostile
# The training corpora of the ready tokenizer, 5 GB, are kept outside: CORPORA=DIR.
CORPORA := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cppmill/corpora
READY_OUT := out/ready
SITE := out/site
DATAFLOW_CONTEXT := dist/dataflow
DATAFLOW_FILES = $(addprefix deploy/dataflow/,Containerfile requirements.lock launcher.py scheduled.py) \
	$(foreach name,cppmill cppmill_core,dist/$(name)-$(VERSION)-*.whl)
IMAGE = localhost/cppmill-worker:$(VERSION)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

# What torch needs on a GPU but not to be imported, about 1 GB: the other libraries of CUDA are linked into it.
NOT_IMPORTED := cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cuda-cccl nvidia-cusolver nvidia-nvtx triton

# The oldest C library that the wheels of a release run with, and their time: that of the commit, so that the bytes are the same wherever they are built.
MANYLINUX := manylinux_2_28
X86_64 := x86_64-unknown-linux-gnu
AARCH64 := aarch64-unknown-linux-gnu
wheels wheels-aarch64: export GLIBC := $(subst _,.,$(MANYLINUX:manylinux_%=%))
wheels wheels-aarch64: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
# No path of this machine is in the core: a release links the crates that setup compiled and `cargo test` ran. Where the registry's
# crates lie is known once they are fetched. Cargo names our own files by their path in the workspace; a flag with the path of the
# checkout would make each checkout compile all crates again.
REMAPPED = RUSTFLAGS="$$(printf -- '--remap-path-prefix=%s=/crates ' $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src/*)"
# Both links of the core, with this machine's linker and with Zig's, have this name; cargo would take one for the other.
LINKED := $(or $(CARGO_TARGET_DIR),native/target)/release/deps/lib_native.so

# cargo-fuzz is kept outside: it takes minutes to build and nothing else needs it.
CARGO_FUZZ_VERSION := 0.13.2
CARGO_FUZZ_HOME := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cppmill/cargo-fuzz-$(CARGO_FUZZ_VERSION)
FUZZ_TARGETS := encode load lex scan platform readers
FUZZ_OUT := out/fuzz
FUZZ_TOKENIZERS := words lines words-2 lines-2
SECONDS := 60

.PHONY: help setup packages demo tokenizer test engines test-engines fuzz fuzz-readers sanitize check chaos lint docs format bench bench-scan bench-filters bench-train bench-engines bench-encode bench-loader equal-encode bench-patterns bench-units ablations lexer-agreement licenses wheels wheels-aarch64 test-release test-aarch64 dataflow-context image test-image lock clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMPS)/native $(STAMPS)/project ## Make .venv with cppmill and what it needs to run
	@echo "$(if $(DID),.venv is ready: $(BIN)/cppmill,Nothing to do: .venv is up to date)"

packages: $(GROUPS:%=$(STAMPS)/%) ## Install the packages of all purposes: tests, lint, docs, benchmarks, releases

demo: setup ## Run the main job on the C++ headers of installed packages, into out/demo
	$(BIN)/cppmill run $(DEMO_SOURCES) --out $(DEMO_OUT) --profile demo
	@echo
	@echo "The tokenizer is in $(DEMO_OUT)/tokenizer, the dataset in $(DEMO_OUT)/tokens. Next:"
	@echo "  $(BIN)/cppmill report $(DEMO_OUT) --out $(DEMO_OUT)-report.html      # see the run on one page"
	@echo "  $(BIN)/cppmill run YOUR/SOURCES --out out/mine --profile demo  # run on your own code"
	@echo "  less docs/tutorials/after-the-demo.md                             # more commands to try on this run"

tokenizer: setup ## Build the ready tokenizer into out/ready, from 5 GB of sources in CORPORA=DIR; missing ones are fetched (LATEST=1: the newest versions)
	$(BIN)/python -m deploy.corpora fetch $(CORPORA) --pip $(BIN)/pip $(if $(LATEST),--latest)
	@for stage in ingest scan build; do \
		$(BIN)/cppmill $$stage $(CORPORA)/TRAIN $(CORPORA)/PYPI --out $(READY_OUT) --profile hybrid-64k-2 || exit; done
	@$(BIN)/python -m deploy.corpora released $(READY_OUT)/tokenizer
	@echo "Use it: $(BIN)/cppmill run YOUR/SOURCES --tokenizer $(READY_OUT)/tokenizer --out out/mine"

test: setup $(STAMPS)/test ## Run the tests of the native core and of the Python packages
	@# The whole workspace, so that dependencies have the features, and so the builds, that the wheel has.
	$(REMAPPED) $(CARGO) test $(NATIVE) --workspace --release --locked --quiet
	$(BIN)/python -m pytest -n auto --dist loadfile --durations=20 -m "not engines and not release"

engines: setup $(STAMPS)/test ## Fetch Flink, Spark, Prism, two object stores, torch and megatron-core into a cache outside the checkout, and a browser (NAME=flink: only this one)
	@$(BIN)/python -m deploy.local fetch $(NAME)

test-engines: engines ## Run the tests that need what `make engines` fetches, or take long: engines, faults, object stores, torch, examples, benchmarks
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=20 -m "engines and not image"

fuzz: setup $(CARGO_FUZZ_HOME)/bin/cargo-fuzz ## Fuzz the native core, and all that reads files, for SECONDS=60 per target (TARGET=encode: only this one)
	@for target in $(or $(TARGET),$(FUZZ_TARGETS)); do $(MAKE) fuzz-$$target; done

fuzz-readers: setup $(STAMPS)/test ## Try the properties of everything that reads files with more and more examples, for SECONDS=60
	@end=$$(( $$(date +%s) + $(SECONDS) )); while [ $$(date +%s) -lt $$end ]; do \
		$(BIN)/python -m pytest -n auto -q -m fuzz --hypothesis-profile fuzz --timeout 0 || exit 1; done

# No sanitizer, which slows each execution: `make sanitize` has one. The flags that count branches are unstable, so the stable compiler must be allowed to take them.
fuzz-%: $(FUZZ_TOKENIZERS:%=$(FUZZ_OUT)/%/receipt.json)
	@mkdir -p $(FUZZ_OUT)/corpus/$*
	@if [ -d native/fuzz/seeds/$* ]; then cp native/fuzz/seeds/$*/* $(FUZZ_OUT)/corpus/$*; \
	elif [ -z "$$(ls $(FUZZ_OUT)/corpus/$*)" ]; then \
		find $(DEMO_SOURCES) -type f -size -4 | LC_ALL=C sort | head -n 500 | xargs cp --backup=numbered -t $(FUZZ_OUT)/corpus/$*; fi
	CPPMILL_FUZZ_TOKENIZERS=$$(printf '%s:' $(FUZZ_TOKENIZERS:%=$(CURDIR)/$(FUZZ_OUT)/%/tokenizer) | sed 's/:$$//') RUSTC_BOOTSTRAP=1 \
		$(CARGO_FUZZ_HOME)/bin/cargo-fuzz run --fuzz-dir native/fuzz --target-dir native/target/fuzz --sanitizer none $* \
		$(FUZZ_OUT)/corpus/$* -- -max_total_time=$(SECONDS) -timeout=10 -print_final_stats=1

sanitize: ## Run the tests of the native core with AddressSanitizer, which watches its unsafe code and its dependencies
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address $(CARGO) test $(NATIVE) --package cppmill-core --lib --release --locked \
		--target $(X86_64) --target-dir native/target/asan

$(FUZZ_OUT)/words/receipt.json:
	$(BIN)/cppmill run $(DEMO_SOURCES) --out $(FUZZ_OUT)/words --profile demo --quiet

$(FUZZ_OUT)/lines/receipt.json: native/fuzz/superwords.toml
	$(BIN)/cppmill run $(DEMO_SOURCES) --out $(FUZZ_OUT)/lines --config $< --rebuild-tokenizer --quiet

$(FUZZ_OUT)/words-2/receipt.json:
	$(BIN)/cppmill run $(DEMO_SOURCES) --out $(FUZZ_OUT)/words-2 --profile demo --set 'scan.pattern="cpp-words-2"' --quiet

$(FUZZ_OUT)/lines-2/receipt.json: native/fuzz/superwords.toml
	$(BIN)/cppmill run $(DEMO_SOURCES) --out $(FUZZ_OUT)/lines-2 --config $< \
		--set 'scan.pattern="cpp-words-2"' --set 'scan.unit_pattern="cpp-lines-2"' --quiet

$(CARGO_FUZZ_HOME)/bin/cargo-fuzz:
	$(CARGO) install cargo-fuzz --version $(CARGO_FUZZ_VERSION) --locked --quiet --root $(CARGO_FUZZ_HOME)

check: demo ## Check the demo's output, and a hostile corpus, with the independent checker
	$(BIN)/python checks/check_run.py $(DEMO_OUT)
	rm -rf $(HOSTILE_OUT)
	$(BIN)/python checks/hostile_corpus.py $(HOSTILE_OUT)/corpus --big
	$(BIN)/cppmill run $(HOSTILE_OUT)/corpus/files $(HOSTILE_OUT)/corpus/archives --out $(HOSTILE_OUT)/run \
		--tokenizer $(DEMO_OUT)/tokenizer --max-dead-fraction 1
	$(BIN)/python checks/check_run.py $(HOSTILE_OUT)/run --expect $(HOSTILE_OUT)/corpus/expect.json

chaos: setup $(STAMPS)/test ## Fail system calls of commands at random for SECONDS=60, then damage files of a run for as long, and check that all recovers (SEED=7)
	$(BIN)/python -m tests.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.chaos.corruption --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# Types are checked with the packages that the code of every purpose imports.
lint: setup $(STAMPS)/test $(STAMPS)/lint ## Check style, types, stubs, the direction of imports, and the Rust code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest cppmill_core --mypy-config-file pyproject.toml --allowlist native/py/stubtest-allowlist.txt
	$(BIN)/lint-imports
	$(REMAPPED) $(CARGO) clippy $(NATIVE) --all-targets --release --locked -- -D warnings
	@if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt $(NATIVE) --all --check; \
	else echo "Rust formatting not checked: no rustfmt here"; fi

docs: setup $(STAMPS)/docs ## Build the site of docs/ into out/site; a broken link is an error
	@$(BIN)/python -m deploy.site $(SITE)
	@echo "Open $(SITE)/index.html"

format: setup $(STAMPS)/lint ## Format the Python code, and the Rust code where rustfmt is installed
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	@if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt $(NATIVE) --all; else echo "Rust code left alone: no rustfmt here"; fi

bench: needs-CORPUS setup $(STAMPS)/bench ## Measure every stage on CORPUS=DIR; JSON=FILE writes one line per row
	$(BIN)/python -m benches $(CORPUS) $(if $(JSON),--json $(JSON))

bench-scan: needs-CORPUS setup $(STAMPS)/bench ## Measure the native scanner, its speed and memory, on CORPUS=DIR
	$(BIN)/python -m benches.speed.scanning $(CORPUS) $(if $(JSON),--json $(JSON))

bench-filters: needs-CORPUS setup $(STAMPS)/bench ## Measure what each filter of ingest drops from CORPUS=DIR, and its speed (BENCHMARK=PATH)
	$(BIN)/python -m benches.speed.filters $(CORPUS) $(foreach place,$(BENCHMARK),--benchmark $(place)) --show

bench-train: needs-CORPUS setup $(STAMPS)/bench ## Measure training beside public trainers on CORPUS=DIR, how it grows, and superwords (ROUNDS=3)
	$(BIN)/python -m benches.speed.training $(CORPUS) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

bench-engines: needs-CORPUS setup $(STAMPS)/bench ## Measure whole runs on engines on more and more of CORPUS=DIR, what Beam costs and what is shuffled (GB=4 ROUNDS=1)
	$(BIN)/python -m benches.speed.engines $(CORPUS) $(foreach size,$(GB),--gb $(size)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

bench-encode: needs-CORPUS setup $(STAMPS)/bench ## Measure encoding beside public encoders and datatrove on CORPUS=DIR (TOKENIZER=DIR SUPERWORDS=DIR ROUNDS=3 PUBLISHED=only)
	@$(BIN)/python -m deploy.local fetch tokenizers
	$(BIN)/python -m benches.speed.encode $(CORPUS) $(if $(PUBLISHED),--only-published) $(if $(TOKENIZER),--tokenizer $(TOKENIZER)) $(if $(SUPERWORDS),--superwords $(SUPERWORDS)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

bench-loader: needs-CORPUS setup $(STAMPS)/test ## Measure the loader in torch beside MosaicML streaming and `datasets` on CORPUS=DIR (ROUNDS=3)
	@$(BIN)/python -m deploy.local fetch torch streaming
	$(BIN)/python -m benches.speed.loading $(CORPUS) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

equal-encode: needs-RUN needs-REFERENCES setup $(STAMPS)/bench ## Compare the ids of every document of RUN=DIR with those of `tokenizers`, kept in REFERENCES=DIR (TOKENIZER=DIR)
	$(BIN)/python -m benches.agreement.equality $(RUN) $(REFERENCES) $(if $(TOKENIZER),--tokenizer $(TOKENIZER))

bench-patterns: needs-CORPUS needs-HELD_OUT setup $(STAMPS)/bench ## Compare pre-token patterns, trained on CORPUS=DIR, in bytes per token of HELD_OUT=DIR
	$(BIN)/python -m benches.studies.patterns $(CORPUS) $(HELD_OUT) $(if $(JSON),--json $(JSON))

bench-units: needs-CORPUS needs-HELD_OUT setup $(STAMPS)/bench ## Compare superwords of several cuts of lines, trained on CORPUS=DIR, in bytes per token of HELD_OUT=DIR
	$(BIN)/python -m benches.studies.lines $(CORPUS) $(HELD_OUT) $(if $(JSON),--json $(JSON))

ablations: needs-CORPUS needs-HELD_OUT setup $(STAMPS)/bench ## Measure what each part of a build is worth, trained on CORPUS=DIR, in bytes per token of HELD_OUT=DIR
	$(BIN)/python -m benches.studies.ablations $(CORPUS) $(HELD_OUT) $(if $(JSON),--json $(JSON))

lexer-agreement: needs-CORPUS setup $(STAMPS)/test ## Compare the lexer with libclang's tokens on CORPUS=DIR, a folder with one folder per project
	$(BIN)/python -m benches.agreement.lexer $(CORPUS)

licenses: setup $(STAMPS)/release ## Regenerate native/py/THIRD_PARTY_LICENSES from Cargo.lock; a licence that is not allowed is an error
	$(BIN)/python -m deploy.release licenses

# The native wheel, with its bill: $(1) names the bill, $(2) is the target, $(3) are arguments of maturin.
define BUILD_CORE
$(BIN)/python -m deploy.release crates-bill --target $(2) --out dist/$(1).cdx.json
PATH="$(CURDIR)/$(BIN):$(CURDIR)/deploy/release/zig:$$PATH" $(REMAPPED) $(BIN)/maturin build --release --locked --quiet --compatibility $(MANYLINUX) \
	--manifest-path native/py/Cargo.toml --sbom-include $(CURDIR)/dist/$(1).cdx.json --out dist $(3)
endef

# Only the binding is compiled again, and linked by Zig: without `--target` and `--zig` the crates are those of setup. The linker
# is given by name, as cargo hashes it into the code.
wheels: setup $(STAMPS)/release $(STAMPS)/zig ## Build a release into dist/: manylinux wheels, sources, bills of materials, SHA256SUMS
	rm -rf dist && mkdir -p dist
	@rm -f $(LINKED)
	$(call BUILD_CORE,cppmill-core-$(VERSION),$(X86_64),-- -C strip=symbols -C linker=zigcc)
	@rm -f $(LINKED)
	$(BIN)/maturin sdist --manifest-path native/py/Cargo.toml --out dist
	$(BIN)/python -m build --no-isolation --quiet --sdist --outdir dist .
	$(BIN)/python -m deploy.release normalize dist/cppmill-$(VERSION).tar.gz
	umask 022 && $(BIN)/python -m build --no-isolation --quiet --wheel --outdir dist dist/cppmill-$(VERSION).tar.gz
	$(BIN)/python -m deploy.release packages-bill --core dist/cppmill_core-$(VERSION)-*.whl --out dist/cppmill-$(VERSION).cdx.json
	$(BIN)/python -m deploy.release sums dist

wheels-aarch64: wheels ## Add the native core for aarch64, cross-compiled, to the release in dist/
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(AARCH64)" ] || rustup target add $(AARCH64) || { \
		echo "The standard library of Rust for $(AARCH64) is missing: rustup target add $(AARCH64)" >&2; exit 1; }
	$(call BUILD_CORE,cppmill-core-$(VERSION)-aarch64,$(AARCH64),--strip --zig --target $(AARCH64))
	$(BIN)/python -m deploy.release packages-bill --core dist/cppmill_core-$(VERSION)-*.whl --out dist/cppmill-$(VERSION).cdx.json
	$(BIN)/python -m deploy.release sums dist

test-release: wheels ## Run the tests of what `make wheels` makes, in an environment without compilers too
	$(BIN)/python -m pytest tests/release tests/unit/deploy/release -m "release and not aarch64"

# What it needs is checked first: the build takes minutes.
test-aarch64: setup $(STAMPS)/release $(STAMPS)/test ## Run the tests of what `make wheels-aarch64` adds, under QEMU
	$(BIN)/python -m deploy.release emulator
	@$(MAKE) wheels-aarch64
	$(BIN)/python -m pytest tests/release -m aarch64

dataflow-context: wheels ## Gather the inputs of the image of deploy/dataflow into dist/dataflow
	@rm -rf $(DATAFLOW_CONTEXT) && mkdir -p $(DATAFLOW_CONTEXT)
	cp $(DATAFLOW_FILES) $(DATAFLOW_CONTEXT)
	@echo "What the image is built from is in $(DATAFLOW_CONTEXT)"

image: dataflow-context ## Build the image of Dataflow's workers with buildah (BASE=beam: from Beam's own image, not from a base made here)
	$(BIN)/python -m deploy.image build $(DATAFLOW_CONTEXT) --tag $(IMAGE) $(if $(BASE),--base $(BASE)) \
		$(if $(LAUNCHER),--launcher $(LAUNCHER)) $(if $(SNAPSHOT),--snapshot)

test-image: image $(STAMPS)/test ## Run the demo on Prism with the workers of the image, and a run through a stand-in for Dataflow's API
	$(BIN)/python -m deploy.local fetch prism gcs versitygw dataflow
	CPPMILL_IMAGE=$(IMAGE) CPPMILL_DEMO_SOURCES="$(DEMO_SOURCES)" $(BIN)/python -m pytest -m image

lock: $(STAMPS)/uv ## Resolve the requirements of pyproject.toml again, and export a lock for each purpose
	$(COMPILE) pyproject.toml --extra plots --extra near-duplicates --group dev --universal --no-emit-package cppmill-core --output-file requirements.lock
	@for name in $(GROUPS); do $(MAKE) lock-$$name; done
	$(COMPILE) --group uv --universal --output-file requirements/uv.lock
	$(COMPILE) pyproject.toml --extra dataflow --constraint requirements.lock --python-platform x86_64-$(MANYLINUX) \
		--no-emit-package cppmill-core --output-file deploy/dataflow/requirements.lock
	$(COMPILE) --group torch --constraint requirements.lock --universal $(foreach name,$(NOT_IMPORTED),--no-emit-package $(name)) \
		--output-file deploy/local/torch_requirements.lock
	@for name in streaming megatron; do $(COMPILE) --group $$name --no-deps --universal --output-file deploy/local/$${name}_requirements.lock; done
	$(COMPILE) --group zig --universal --output-file deploy/release/requirements.lock

# The tests import the benchmarks, the code of a release and that of the site.
lock-%:
	$(COMPILE) pyproject.toml --extra plots --extra near-duplicates --group native $(addprefix --group ,$(if $(filter test,$*),test bench release docs,$(filter-out run,$*))) \
		--constraint requirements.lock --universal --no-emit-package cppmill-core --output-file requirements/$*.lock

clean: ## Delete everything that make made
	rm -rf $(VENV) .make native/target native/fuzz/artifacts dist build *.egg-info $(FUZZ_OUT) $(HOSTILE_OUT) $(SITE)
	rm -rf $(addprefix out/,demo demo-* demo.npz adopted byte-tables.npz card config.json hello.cpp lineage.jsonl mask.json numpy os.json sources store tokens.html)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# A folder that must be given, checked before anything is installed.
needs-%:
	@$(if $($*),,echo "Which folder? make $(firstword $(MAKECMDGOALS)) $*=DIR" >&2; exit 2)

# Set-up, one stamp a step.

$(STAMPS)/venv:
	@[ -n "$(PYTHON)" ] || { echo "No Python 3.11 or newer with venv was found. On Debian or Ubuntu: apt-get install python3 python3-venv" >&2; \
		echo "Elsewhere, or for another one: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Making $(VENV) with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv --clear $(VENV)
	@mkdir -p $(STAMPS) && touch $@$(eval DID := 1)

$(STAMPS)/uv: requirements/uv.lock $(STAMPS)/venv
	@$(PIP) install --require-hashes --no-deps --only-binary :all: --requirement $<
	@touch $@$(eval DID := 1)

# jsonpath-rw, which mlcroissant needs, has no wheel: its hash is checked, and it is built.
$(GROUPS:%=$(STAMPS)/%): $(STAMPS)/%: requirements/%.lock $(STAMPS)/uv
	@echo "Installing what is missing of the $$(grep -c '^[a-z].*==' $<) packages of $<"
	@$(UV) pip install --python $(BIN)/python --require-hashes --no-deps --only-binary :all: --no-binary jsonpath-rw --requirement $<
	@touch $@$(eval DID := 1)

$(STAMPS)/native: $(NATIVE_SOURCES) $(STAMPS)/run
	@command -v $(CARGO) >/dev/null || { echo "No cargo was found. Install Rust with rustup (https://rustup.rs), then open a new shell." >&2; exit 1; }
	@$(CARGO) --version >/dev/null 2>&1 || { echo "The Rust version of rust-toolchain.toml is missing: rustup toolchain install" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "No C compiler was found to link with. On Debian or Ubuntu: apt-get install build-essential" >&2; exit 1; }
	@echo "Building the native core (a first build takes a minute or two)"
	@rm -rf $(WHEELS) && mkdir -p $(WHEELS)
	@crates=$$($(CARGO) tree $(NATIVE) --package cppmill-core-py --edges normal,build --prefix none --locked 2>/dev/null | cut -d' ' -f1,2 | sort -u | wc -l); \
	$(REMAPPED) $(BIN)/maturin build --release --locked --manifest-path native/py/Cargo.toml --out $(WHEELS) 2>&1 | tee $(NATIVE_LOG) \
		| { n=0; while IFS= read -r line; do case "$$line" in *Compiling*) n=$$((n + 1)); \
			[ $$((n % 20)) -ne 0 ] || echo "  $$n of $$crates crates";; esac; done; } \
		|| { cat $(NATIVE_LOG) >&2; exit 1; }
	@$(UV) pip install --python $(BIN)/python --no-index --no-deps --reinstall $(WHEELS)/*.whl
	@touch $@$(eval DID := 1)

$(STAMPS)/project: pyproject.toml setup.py $(STAMPS)/run
	@echo "Installing cppmill, editable"
	@$(UV) pip install --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@$(eval DID := 1)

$(STAMPS)/zig: deploy/release/requirements.lock $(STAMPS)/uv
	@echo "Installing the linker of deploy/release/requirements.lock"
	@$(UV) pip install --python $(BIN)/python --require-hashes --no-deps --only-binary :all: --requirement $<
	@touch $@
