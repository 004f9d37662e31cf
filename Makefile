# The commands of this checkout; `make` alone lists them. Settings: PYTHON=, PORT=, NO_BROWSER=1,
# MODEL=, JOBS=.

VENV := .venv
STAMPS := $(VENV)/.stamps
BIN := $(VENV)/bin
WORKSPACE := workspace
PYTHON ?=
PORT ?=
NO_BROWSER ?=
MODEL ?=
JOBS ?= logical
PYTEST_ARGS ?=

PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt
PYTEST := $(BIN)/python -m pytest --numprocesses=$(JOBS) --maxprocesses=4 --dist=loadfile \
	--no-loadscope-reorder --timeout=900 $(PYTEST_ARGS)

# Runs in the workspace, so a model's path is made absolute first; a sample's name stays as it is.
export MODEL
define launch
mkdir -p $(WORKSPACE); \
case "$$MODEL" in /*) ;; *) [ ! -f "$$MODEL" ] || MODEL="$$PWD/$$MODEL" ;; esac; \
cd $(WORKSPACE) && exec ../$(BIN)/python -m explorer $(1) $${MODEL:+"$$MODEL"} \
	$(if $(PORT),--port $(PORT)) $(if $(NO_BROWSER),--no-browser)
endef

# An editable install and the scripts in $(BIN) hold the checkout's place; if it has moved since,
# the environment is made again.
PLACE := $(shell cat $(STAMPS)/place 2>/dev/null)
ifneq ($(PLACE),)
ifneq ($(PLACE),$(CURDIR))
MOVED := moved
endif
endif

.PHONY: help explore app test test-fast lint format bench notebooks clean moved
.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

explore: $(STAMPS)/run ## Open JupyterLab on the app; works in workspace/ (MODEL=, PORT=, NO_BROWSER=1)
	@$(call launch,lab)

app: $(STAMPS)/run ## Show the same app as a page of its own, by Voila (same settings)
	@$(call launch,app)

test: $(STAMPS)/test $(STAMPS)/chromium ## Install what the tests need, Chromium included, and run them all
	$(PYTEST)

test-fast: $(STAMPS)/test ## Run the tests that need no browser and take no more than seconds
	$(PYTEST) -m "not browser and not slow"

lint: $(STAMPS)/lint ## Check style, formatting and types
	@status=0; set -x; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/ruff format --check . || status=1; \
	$(BIN)/mypy || status=1; \
	exit $$status

format: $(STAMPS)/lint ## Repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMPS)/run ## Run the benchmarks (BENCH= one of them)
	$(BIN)/python -m explorer bench $(BENCH)

notebooks: $(STAMPS)/test ## Execute every notebook from top to bottom
	$(PYTEST) tests/test_notebooks.py

clean: ## Remove what make has made, except workspace/
	rm -rf $(VENV) build dist test-results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find explorer tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python: $(MOVED)
	@sh tools/make_venv.sh $(VENV) "$(PYTHON)"
	@mkdir -p $(STAMPS) && echo "$(CURDIR)" > $(STAMPS)/place

moved:
	rm -rf $(VENV)

$(STAMPS)/run: pyproject.toml constraints.txt $(BIN)/python
	@echo "Installing explorer into $(VENV); the first time takes a few minutes ..."
	@$(PIP_INSTALL) -e .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test: pyproject.toml constraints.txt $(BIN)/python
	@echo "Installing explorer and its test tools into $(VENV); the first time takes a few minutes ..."
	@$(PIP_INSTALL) -e ".[test]"
	@mkdir -p $(STAMPS) && touch $@ $(STAMPS)/run

# The types of what the tests need are checked too.
$(STAMPS)/lint: $(STAMPS)/test
	@echo "Installing explorer's lint tools into $(VENV) ..."
	@$(PIP_INSTALL) -e ".[lint]"
	@touch $@

$(STAMPS)/chromium: $(STAMPS)/test tests/ui/chromium.py
	@$(BIN)/python -m tests.ui.chromium
	@touch $@
