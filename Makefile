# Everything runs in a virtual environment of its own, .venv, made on first use.
# Choose another interpreter with `make demo PYTHON=python3.13`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet install
DATA   := src/likely/data
OUT    := build/demo
WORKERS ?= 2
SECONDS ?= 60

# A kept bytecode file saves each process that a test starts 0.7 s of parsing.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test suite lint fuzz bench docs clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: $(VENV)/.base ## learn, judge and explain on a small table, from nothing
	@mkdir -p $(OUT)
	@printf '\n== Learn who repays a loan, judged by 5-fold cross-validation\n\n'
	$(BIN)/likely learn $(DATA)/loans.csv --target outcome --folds 5 -o $(OUT)/loans.likely
	@printf '\n== Explain the prediction for one new application\n\n'
	$(BIN)/likely explain $(OUT)/loans.likely $(DATA)/loans_new.csv --row 1
	@printf '\n== What the model file holds\n\n'
	$(BIN)/likely inspect $(OUT)/loans.likely
	@printf '\nThe model is in %s. The table is made, not measured: see docs/tables.md.\n' $(OUT)/loans.likely

test: $(VENV)/.dev ## lint, and beside it the whole test suite
	@$(MAKE) --no-print-directory --jobs 2 lint suite

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

lint: $(VENV)/.dev ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: $(VENV)/.dev ## odd model files, CSV, Arrow, JSON and text, SECONDS=60 of each
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS)

bench: $(VENV)/.dev ## speed and memory, as ratios measured in one run
	$(BIN)/python bench/run.py

docs: $(VENV)/.dev ## references of Python API and command line from the code, then the site in build/site
	$(BIN)/python scripts/make_api_reference.py
	$(BIN)/python scripts/make_cli_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove the virtual environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Likely needs Python 3.11 or newer; name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps make a second call fast; a changed pyproject.toml installs again.
$(VENV)/.base: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.base
