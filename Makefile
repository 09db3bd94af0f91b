# Start with `make demo` or `make test`. The first run of any target creates .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check nightly test-system test-editors test-agents test-frameworks lint bench against dist docs proof proof-full breaks mutants retention release wheels schema clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

setup: $(STAMP)  ## create a virtual environment in .venv with all dependencies

# What the program itself needs: 105 MB, no development tool, no npm. Nothing is compiled: Python compiles the
# modules that a run imports, once. With WHEELS=FOLDER, it installs from a folder of wheels, without a network
# (`make wheels` fills one).
$(RUNTIME): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "compactd needs Python 3.11 or newer; this is %d.%d. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2])'
	@echo "setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile $(if $(WHEELS),--no-index --find-links '$(WHEELS)') --editable .
	@touch $@

$(STAMP): $(RUNTIME) conformance/pyproject.toml examples/node/package-lock.json
	@echo "adding what the tests need (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./conformance
	@BIN=$(BIN) sh examples/node/setup.sh
	@$(BIN)/python -m compileall -q -j 2 server/compactd conformance "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" || true
	@touch $@

# Here, too, the environment may forbid __pycache__. Then each start would compile everything again.
demo: export PYTHONDONTWRITEBYTECODE =
demo: $(RUNTIME)  ## compact a real session: no key, no network
	@$(BIN)/python -m examples.demo

# pytest writes each test module with its assertions rewritten to __pycache__. Without these files, each worker
# rewrites all of them: 20 seconds of CPU. So they are written even if the environment forbids it.
test check nightly: export PYTHONDONTWRITEBYTECODE =

test: $(STAMP)  ## run the quick tests that need only Python
	@$(BIN)/python -m pytest -n logical --dist worksteal

check: $(STAMP)  ## run some tests in one process: make check ARGS="tests/unit/core -k split"
	@$(BIN)/python -m pytest -m "not system and not editor" $(ARGS)

nightly: $(STAMP)  ## run all tests except editors, with all examples of each law; write the result to docs/proof.md
	@BIN=$(BIN) sh tests/agents/setup.sh
	@BIN=$(BIN) sh tests/frameworks/setup.sh
	@BIN=$(BIN) sh tests/frameworks/openclaw/setup.sh || echo "OpenClaw: left out" >&2
	@$(BIN)/python -m tests.faults.proof.nightly $(ARGS)

test-system: $(STAMP)  ## run tests that need system packages (jq, git, zsh, fish, groff); install them if allowed
	@sh tests/packaging/system-packages.sh
	@$(BIN)/python -m pytest -m "(system or git) and not editor and not nightly"

test-editors: $(STAMP)  ## run the extensions in real editors, without a screen; install the editors if allowed
	@BIN=$(BIN) sh tests/editors/setup.sh
	@COMPACTD_TEST_AGENTS=all $(BIN)/python -m pytest -m editor

# An agent that npm does not give is left out: its tests are skipped, and the last lines say why.
test-agents: $(STAMP)  ## run hooks, plugins and recall in real coding agents; install the agents if allowed
	@BIN=$(BIN) sh tests/agents/setup.sh
	@$(BIN)/python -m pytest -rs -m agent $(ARGS)

# The frameworks have an environment of their own, outside the tree. Without PyPI, their tests are skipped.
test-frameworks: export PYTHONDONTWRITEBYTECODE =
test-frameworks: $(STAMP)  ## run agents of LangChain, OpenAI Agents SDK, Pydantic AI and Claude Agent SDK; install these if allowed
	@BIN=$(BIN) sh tests/frameworks/setup.sh
	@$(BIN)/python -m tests.frameworks $(ARGS)

lint: $(STAMP)  ## run ruff, mypy, pyright, import rules and the phrase linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports
	@$(BIN)/python tools/phrases.py

bench: $(STAMP)  ## measure speed, next to a bare loop, stock pygls and msgspec's decoder
	@$(BIN)/python -m benchmarks

against: $(STAMP)  ## measure other projects at the same work; installs them outside the tree (2 GB)
	@$(BIN)/python -m benchmarks.against

retention: $(STAMP)  ## measure how much of what the agent needs later a compaction keeps, next to other methods
	@$(BIN)/python -m benchmarks.retention

proof: $(STAMP)  ## run faults, attacks, fuzzing and a fleet, two minutes each; writes the results to docs/proof.md
	@$(BIN)/python -m tests.faults.proof

proof-full: $(STAMP)  ## run one of them in full: make proof-full PART=faults, attacks, fuzz or fleet
	@$(BIN)/python -m tests.faults.proof --part $(PART)

breaks: $(STAMP)  ## break the daemon on purpose, and print which test finds each break
	@$(BIN)/python -m tests.faults.breaks

mutants: $(STAMP)  ## make small wrong edits of the core, and run the tests that cover each
	@$(BIN)/python -m tests.faults.mutants $(ARGS)

dist:  ## build the wheels and source archives in build/dist, with the pinned backend only
	@$(PYTHON) -m venv --clear build/backend
	@build/backend/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.lock
	@build/backend/bin/python -m build --no-isolation --outdir build/dist .
	@build/backend/bin/python -m build --no-isolation --outdir build/dist conformance
	@$(PYTHON) -c 'import hashlib, pathlib; [print(hashlib.sha256(f.read_bytes()).hexdigest(), f) for f in sorted(pathlib.Path("build/dist").iterdir())]'

release: $(STAMP)  ## build all that a release consists of in build/release; publish nothing
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/release.py $(ARGS)

wheels: $(RUNTIME)  ## fill build/release/wheels: `make demo WHEELS=build/release/wheels` needs no network then
	@$(BIN)/python tools/release.py --only wheels

schema: $(STAMP)  ## write what is generated from the code: protocol.md, schemas, types, man page, tables in docs
	@$(BIN)/python tests/unit/protocol/record_examples.py
	@$(BIN)/python -m tools.codegen --write
	@for page in man_page settings_page reference_pages; do $(BIN)/python tools/$$page.py --write || exit 1; done
	@$(BIN)/compactd conformance --list --into docs/conformance.md

docs: $(STAMP)  ## build the site of docs/ in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
