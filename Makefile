# Every target makes .venv by itself, so each works on a fresh clone. The stamp lets a second run start at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
STAMP := $(VENV)/.installed

# The compilers and thread pools of parallel tests would otherwise fight for the cores.
export OMP_NUM_THREADS ?= 1

# Tests start hundreds of short processes: without bytecode each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

# Edits that `make fuzz` makes.
FUZZ ?= 100000
# Programs that `make fuzz-mends` makes.
FUZZ_MENDS ?= 20000

# Minor versions of torch that `make versions` measures; the newest one is .venv's own.
VERSIONS ?= 2.8 2.9 2.10 2.11 2.12 2.13
# Versions of Python that `make test-pythons` looks for.
PYTHONS ?= 3.10 3.11 3.12 3.13 3.14

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-fast test-pythons versions fuzz fuzz-mends lint format bench docs editors clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

venv: $(STAMP)  ## make .venv with everything that development needs

# torch goes first and alone: whichever build the machine offers (CPU or CUDA) is then kept by everything after it.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]' transformers
	touch $@

demo: $(STAMP)  ## mend T5 and BART through the real server and let TorchDynamo confirm
	$(BIN)/python examples/demo.py

test: $(STAMP)  ## all tests
	$(BIN)/python -m pytest -q -n auto --dist worksteal

test-fast: $(STAMP)  ## the tests of a minute: none imports torch, starts a process, builds anything or goes through hundreds of files
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not torch and not build and not many and not process'

test-pythons: $(STAMP)  ## the tests without torch on each Python that is here; PYTHONS names others
	$(BIN)/python -m bench.versions.pythons $(PYTHONS)

versions: $(STAMP)  ## facts, examples and tests with other versions of torch; VERSIONS="2.10 2.12", PARTS="examples mends", TESTS=test_picked.py, AGAIN=1
	PYTHONPATH=src:. $(BIN)/python -m bench.versions $(VERSIONS) $(if $(PARTS),--only $(PARTS)) $(if $(TESTS),--tests $(TESTS)) $(if $(AGAIN),--again)

lint: $(STAMP)  ## ruff and mypy --strict
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy

format: $(STAMP)  ## rewrite the sources as `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(STAMP)  ## random edits and messages, for half an hour of one core; FUZZ=N sets how many edits
	GRAPHMEND_FUZZ=$(FUZZ) $(BIN)/python -m pytest -q -n auto $(wildcard tests/*/test_fuzz*.py)

fuzz-mends: $(STAMP)  ## random programs, run before and after mending, for most of an hour; FUZZ_MENDS=N sets how many
	PYTHONPATH=tests/transforms$(if $(PYTHONPATH),:$(PYTHONPATH)) $(BIN)/python -m fuzz_mends --programs $(FUZZ_MENDS) --table docs/mends.md

bench: $(STAMP)  ## measure speed and memory
	$(BIN)/python -m bench

docs: $(STAMP)  ## build the documentation site into site/
	$(BIN)/python docs/generate.py
	if command -v npm > /dev/null; then npm ci --prefix docs/playground --no-audit --no-fund --loglevel=error; fi
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

editors: $(STAMP)  ## end-to-end tests in VS Code, Neovim and Emacs
	tests/editors/run.sh

clean:  ## remove what the targets above made
	rm -rf $(VENV) build dist site src/*.egg-info packaging/graphmend-runtime/{build,dist} packaging/graphmend-runtime/src/*.egg-info
