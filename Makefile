# make test    check and test everything, from a bare machine with Python 3.11 or newer
# make check   style, types and the direction of imports
# make bench   time Empirisk against its rivals (FAMILY=linear for one family)

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
RIVALS := .venv/.rivals-installed
# One thread per test process: the processes already share out the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1 NUMBA_NUM_THREADS=1

.PHONY: test check format bench clean

test: check
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(RIVALS)
	$(BIN)/python -m benchmarks $(FAMILY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Empirisk needs Python 3.11 or newer; name it with: make PYTHON=python3.12 test"; exit 1; }
	$(PYTHON) -m venv .venv

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(RIVALS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[rivals]'
	@touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
