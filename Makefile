# Every target does its own set-up: a virtual environment in .venv and the project in it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := out
PINNED := --generate-hashes --universal --python-version 3.10 --no-emit-index-url --no-header --quiet
DOCS := README.md $(wildcard docs/*.md docs/mechanisms/*.md)  # some parts are generated

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint docs bench lock locked sbom wheel clean

help: ## Show this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(BIN)/.installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip 2>/dev/null || true  # --group needs pip 25.1
	@$(BIN)/python -m pip install --quiet -e . --group dev
	@touch $@

demo: $(BIN)/.installed ## Release a sample table, verify it, judge it, show the report
	@mkdir -p $(DEMO)
	@echo '$$ dpsynth check configs/people_joint.yaml'
	@$(BIN)/dpsynth check configs/people_joint.yaml
	@echo '$$ dpsynth release configs/people_joint.yaml'
	@$(BIN)/dpsynth release configs/people_joint.yaml --ledger $(DEMO)/ledger.sqlite
	@echo '$$ dpsynth verify out/people_joint.audit.public.json'
	@$(BIN)/dpsynth verify $(DEMO)/people_joint.audit.public.json --ledger $(DEMO)/ledger.sqlite
	@echo '$$ dpsynth evaluate configs/people_joint.yaml out/people_joint.csv'
	@$(BIN)/dpsynth evaluate configs/people_joint.yaml $(DEMO)/people_joint.csv
	@echo; echo "The first synthetic people:"
	@head -n 6 $(DEMO)/people_joint.csv
	@echo; echo '$$ dpsynth report out/people_joint.audit.json'
	@$(BIN)/dpsynth report $(DEMO)/people_joint.audit.json
	@echo "Open it in a browser: $(CURDIR)/$(DEMO)/people_joint.report.html"

test: $(BIN)/.installed lint ## Run all tests
	@# Noise is never seeded, so a right program may fail a statistical test once in a great while.
	@$(BIN)/python -m pytest -n auto --dist worksteal || { test $$? -eq 1 && echo "What failed, once more:" && \
	  $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; }

lint: $(BIN)/.installed ## Format, lint, types, import contracts, generated docs
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/cog -P -I docs --verbosity=1 --check $(DOCS)

slow: $(BIN)/.installed ## Run the long statistical tests
	@$(BIN)/python -m pytest -n auto --dist worksteal -m slow

docs: $(BIN)/.installed ## Write the generated parts of docs/ and configs/ again
	@$(BIN)/cog -P -I docs --verbosity=1 -r $(DOCS)
	@$(BIN)/python -m dpsynth_cli.spec.schema > configs/spec.schema.json

lock: ## Pin the versions of all dependencies, with hashes (needs uv)
	@uv pip compile pyproject.toml --group dev $(PINNED) -o requirements-dev.lock
	@uv pip compile pyproject.toml -c requirements-dev.lock --no-annotate $(PINNED) -o requirements.lock
	@echo 'setuptools>=77' | uv pip compile - --no-annotate $(PINNED) -o requirements-build.lock

locked: ## Install exactly the pinned versions, each checked by its hash, in .venv-locked
	@test -x .venv-locked/bin/python || $(PYTHON) -m venv .venv-locked
	@.venv-locked/bin/pip install --quiet --require-hashes -r requirements-build.lock -r requirements.lock
	@.venv-locked/bin/pip install --quiet --no-deps --no-build-isolation .
	@.venv-locked/bin/dpsynth --version

sbom: ## Write the bill of materials (CycloneDX) of the pinned versions to dist/
	@mkdir -p dist && $(PYTHON) .ci/sbom.py > dist/dpsynth-cli.cdx.json && echo dist/dpsynth-cli.cdx.json

wheel: $(BIN)/.installed ## Build a wheel twice (same bytes), install it in an empty environment, release with it
	@$(BIN)/python -m pytest -q -m slow tests/test_packaging.py

bench: $(BIN)/.installed ## Measure speed and memory; or NAME=joint DATA=DIR TOOLS=DIR ARGS=... (benchmarks/README.md)
	@DPSYNTH_DATA=$(or $(DATA),$(DPSYNTH_DATA)) DPSYNTH_TOOLS=$(or $(TOOLS),$(DPSYNTH_TOOLS)) \
	  $(BIN)/python -m benchmarks $(or $(NAME),scale --write) $(ARGS)

clean: ## Remove the virtual environment and everything made
	rm -rf $(VENV) .venv-locked dist $(DEMO) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
