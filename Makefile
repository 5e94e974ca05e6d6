# Every target sets itself up: `make install` runs first where it has not yet.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install quickstart test test-slow test-spark lint docs bench quality audit mutants clean

help: ## show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(STAMP) ## create .venv with the package and its tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

quickstart: install ## run the main job on data it simulates
	$(BIN)/dpals quickstart

# Kernels first, in one process: two that compile one function for different types at once can spoil numba's cache.
test: install lint ## lint, types, import contract and all quick tests
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/kernels
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/kernels

test-spark: install ## tests on Spark, with a cluster of two workers; they need Java
	@command -v java >/dev/null || { echo "Spark needs Java 17 or later: apt-get install default-jre-headless" >&2; exit 1; }
	@$(BIN)/python -c "import pyspark" 2>/dev/null || { echo "PySpark is missing: $(BIN)/pip install 'dpals[spark]'" >&2; exit 1; }
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow or not slow" tests/engines

test-slow: install ## tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: install ## ruff, mypy --strict, the contract between the three zones
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: install ## the documentation, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo Open site/index.html

bench: install ## speed and memory, printed as tables
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/compared.py

quality: install ## accuracy against our goals, about an hour
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/pooled_quality.py

audit: install ## audit every method on every level, half an hour; writes docs/results/audit
	$(BIN)/python benchmarks/audit.py -o docs/results/audit

mutants: install ## plant bugs that would break privacy; tests and audit must catch every one
	$(BIN)/python tests/privacy/planted_bugs.py -o docs/results/planted_bugs/README.md

clean: ## remove what make made
	rm -rf $(VENV) quickstart site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
