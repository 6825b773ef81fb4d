# make learn   the whole job on a bundled table: installs into .venv, writes a model and a report
# make test    check and test, from a bare machine with Python 3.11 or newer
# make test-all   what takes long by nature: fuzzer, hostile files, whole contests, clocks, loops with checked indices
# make check   style, types and the direction of imports
# make bounds  every compiled loop once with its indices checked
# make fuzz    fit nasty small problems for ten minutes and print what did not hold (MINUTES=60 for an hour)
# make stubs   write the stubs that type checkers read, after a public name or a composed machine has changed
# make docs    build the site into docs/_build/html, without the network
# make notebooks  write the lessons and views as notebooks beside their scripts, after a lesson has changed (the site offers them too)
# make clients try the programs of other people (SHAP, MLflow, skops, Optuna, Torch, ...) in an environment of their own
# make version VERSION=0.2.0   write the next version, and date its section of the changelog
# make golden  write the model files of this version that later ones must load
# make release build wheel and sdist, and try them on each Python that is here
# make bench   time Empirisk against its rivals (FAMILY=linear for one family)

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
RIVALS := .venv/.rivals-installed
LEARNS := .venv/.learns-installed
DOCS := .venv/.docs-installed
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
# One thread per test process: the processes already share out the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1 NUMBA_NUM_THREADS=1

# Tests start many processes: each would compile every module of the library anew (3 of its 4 seconds) where nobody keeps them.
unexport PYTHONDONTWRITEBYTECODE

TABLE ?= breast_cancer
MINUTES ?= 10

.PHONY: notebooks learn test test-all check style types bounds fuzz browser format stubs docs bench clean clients version golden release

learn: $(LEARNS)
	$(BIN)/empirisk learn $(TABLE) --force
	@echo "Look at $(TABLE).report.html, and try: $(BIN)/empirisk serve $(TABLE).model"

# One process more than there are cores: some tests wait for a page, a service or a shell.
PROCESSES := $(shell $(PYTHON) -c 'import os; print(min(8, os.cpu_count() + 1))')
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

# Types and imports are checked while the tests run, because each check alone keeps one core busy; printed at the end.
TYPES := $(BIN)/pyright && $(BIN)/lint-imports

test: style browser
	@{ $(TYPES); } >.venv/types.log 2>&1 & types=$$!; \
	$(PYTEST) -m "not long" $(ARGS); tested=$$?; \
	wait $$types; typed=$$?; cat .venv/types.log; exit $$((tested | typed))

test-all: $(INSTALLED) browser bounds
	$(PYTEST) -m long $(ARGS)

check: style types

style: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(TYPES)

bounds: $(INSTALLED)
	$(ONE_THREAD) $(BIN)/python -m tests.bounds

fuzz: $(INSTALLED)
	$(ONE_THREAD) $(BIN)/python -m tests.files.mutants --count 300
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz --seconds $$((60 * $(MINUTES)))

# The report is read in a real browser: Chromium and its driver, from the system's packages where they are missing.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
		$(AS_ROOT) apt-get update -qq && \
		$(AS_ROOT) apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; \
	} || { echo "The report's test needs Chromium: install the packages chromium and chromium-driver"; exit 1; }

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

stubs: $(INSTALLED)
	$(BIN)/python -m tools.stubs

docs: $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python -m tools.links docs/_build/html
	@echo "Open docs/_build/html/index.html"

notebooks: $(DOCS)
	$(BIN)/python -m tools.notebooks

# Programs of other people, in an environment of their own: MLflow needs older versions of two pinned packages.
clients: $(BIN)/python
	$(PYTHON) -m venv --clear .venv-clients
	grep -vE '^(protobuf|importlib-metadata)==' constraints.txt > .venv-clients/constraints.txt
	.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-clients/constraints.txt -e '.[dev,clients]'
	.venv-clients/bin/python -m clients

version: | $(BIN)/python
	$(BIN)/python -m tools.version $(VERSION)

golden: $(INSTALLED)
	$(BIN)/python -m tests.files.golden

# What builds and checks, in an environment of its own.
release:
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check build twine cyclonedx-bom
	.venv-release/bin/python -m tools.release

bench: $(RIVALS)
	$(BIN)/python -m benchmarks $(FAMILY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Empirisk needs Python 3.11 or newer; name it with: make PYTHON=python3.12 test"; exit 1; }
	$(PYTHON) -m venv .venv

# pip writes bytecode on one core, of the tests of packages too: all cores write it faster, without those.
$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/tests/' .venv/lib src || true
	@touch $@

$(LEARNS): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]'
	@touch $@

$(DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

$(RIVALS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[rivals]'
	@touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist docs/_build docs/reference docs/messages docs/course docs/gallery
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
