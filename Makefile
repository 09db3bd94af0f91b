# What a newcomer types: `make demo`, `make test`. Each sets up what it needs, once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-system test-editors lint bench against dist docs proof proof-full breaks retention schema clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

setup: $(STAMP)  ## a virtual environment in .venv with what the project needs

$(STAMP): pyproject.toml examples/node/package-lock.json
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "compactd needs Python 3.11 or newer; this is %d.%d. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2])'
	@echo "setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@BIN=$(BIN) sh examples/node/setup.sh
	@$(BIN)/python -m compileall -q server/compactd || true
	@touch $@

demo: $(STAMP)  ## the main job on a real session: no key, no network
	@$(BIN)/python -m examples.demo

test: $(STAMP)  ## all tests that need nothing but this machine's Python
	@$(BIN)/python -m pytest -n 3 --dist worksteal

test-system: $(STAMP)  ## tests that need system packages (jq, git, zsh, fish, groff); installs them where it may
	@sh tests/system-packages.sh
	@$(BIN)/python -m pytest -m "(system or git) and not editor"

test-editors: $(STAMP)  ## the extensions in real editors, without a screen; installs them where it may
	@BIN=$(BIN) sh tests/editors/setup.sh
	@$(BIN)/python -m pytest -m editor

lint: $(STAMP)  ## ruff, mypy, pyright, import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

bench: $(STAMP)  ## speed, side by side with a bare loop, stock pygls and msgspec's own decode
	@$(BIN)/python -m benchmarks

against: $(STAMP)  ## the same work by other projects, side by side; sets them up outside the tree (2 GB)
	@$(BIN)/python -m benchmarks.against

retention: $(STAMP)  ## what a compaction keeps of what the agent needs later, beside what others do
	@$(BIN)/python -m benchmarks.retention

proof: $(STAMP)  ## faults, attacks and fuzz, two minutes each; what came of them stands in docs/proof.md
	@PYTHONPATH=tests $(BIN)/python -m proof

proof-full: $(STAMP)  ## one of them in full: make proof-full PART=faults, attacks or fuzz
	@PYTHONPATH=tests $(BIN)/python -m proof --part $(PART)

breaks: $(STAMP)  ## breaks the daemon on purpose, and says what finds each
	@PYTHONPATH=tests $(BIN)/python -m faults.breaks

dist:  ## wheel and source archive in build/dist, made by the pinned backend and nothing else
	@$(PYTHON) -m venv --clear build/backend
	@build/backend/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.lock
	@build/backend/bin/python -m build --no-isolation --outdir build/dist
	@$(PYTHON) -c 'import hashlib, pathlib; [print(hashlib.sha256(f.read_bytes()).hexdigest(), f) for f in sorted(pathlib.Path("build/dist").iterdir())]'

docs: $(STAMP)  ## the site of docs/, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
