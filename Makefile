# Every target does its own set-up in .venv; nothing outside the checkout is touched except by `make test-all` (see tools/install-extras).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
READY  := $(VENV)/.ready
CODE   := src tests tools examples
TOOL   ?=
JOBS   ?= 3
ARGS   ?=
OF_RUN := $(filter-out %/test_run_zygote.py,$(wildcard tests/integration/test_run_*.py)) tests/integration/test_job_control.py tests/integration/test_attach_sessions.py

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-tools lint lock format hooks coverage bench lab lab-real torture reference docs clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: install it, or say make PYTHON=/path/to/python3 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, this is $$($(PYTHON) --version)" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@test -z "$$(ls -d $(VENV)/lib*/python3*/site-packages/atlasbridge-[0-9]*.dist-info 2>/dev/null)" || \
	  $(BIN)/python -m pip uninstall --quiet --yes atlasbridge   # our name of before, or another program
	@echo "installing AtlasBridge into $(VENV) ..."
	@$(PIP) --editable .
	@touch $@

$(READY): $(INSTALLED)
	@echo "installing what the tests need ..."
	@$(PIP) --upgrade "pip>=25.1"
	@$(PIP) --no-deps --force-reinstall --editable .   # an older pip (24.2) writes a command that imports `re` first: 7 ms at every start
	@$(PIP) --group dev
	@touch $@

run: $(INSTALLED) ## the demo: a sample agent that asks questions; make run TOOL=claude runs a real tool
	@if [ -n "$(TOOL)" ]; then $(BIN)/atlasbridge run $(TOOL) $(ARGS); else $(BIN)/atlasbridge demo; fi

test: $(READY) ## the tests that need Python alone, a few minutes
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not browser and not tools and not heavy" $(ARGS)

test-all: $(READY) ## also installs and runs what needs more: two browsers, strace, full-screen programs, real AI CLIs; `run` by the zygote
	tools/install-extras
	$(BIN)/python -m pytest -q -m "browser or tools or heavy" $(ARGS)
	WITH_ZYGOTE=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not browser and not tools and not heavy" $(OF_RUN)

test-tools: JOBS = 2
test-tools: $(READY) ## every dialog of Claude Code and Codex, the main ones of Continue and Kimi Code, real programs on a mock model
	tools/install-extras tools
	$(BIN)/python -m pytest -q -n $(JOBS) -m tools tests/tools/test_real_tools.py $(ARGS)

lint: $(READY) ## ruff and mypy, and known holes in what we depend on
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/python tools/audit_dependencies.py

lock: $(READY) ## write requirements.lock: the package and its extras, each file by its hash
	@$(PIP) pip-tools
	$(BIN)/pip-compile --quiet --generate-hashes --all-extras --strip-extras --no-emit-index-url --no-header --output-file requirements.lock pyproject.toml

format: $(READY) ## let ruff rewrite
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

hooks: $(READY) ## check every commit before it is made
	@$(PIP) --group hooks
	$(BIN)/pre-commit install

coverage: $(READY) ## which branches the tests take in their own process; fails below the floor in pyproject.toml
	@$(PIP) --group coverage
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not browser and not tools and not heavy" --cov --cov-report=term:skip-covered $(ARGS)

bench: $(READY) ## measure side by side with what people use; writes docs/benchmarks.md
	@$(PIP) --group bench
	$(BIN)/python -m tests.benchmarks $(ARGS)

lab: $(READY) ## the Prompt Lab: all scenarios
	$(BIN)/atlasbridge lab run --all

lab-real: $(READY) ## the real AI CLIs against a mock model, every dialog
	tools/install-extras tools-all
	ATLASBRIDGE_LAB_REAL=1 $(BIN)/python -m pytest -q -n 2 -m tools tests/tools $(ARGS)

torture: $(READY) ## long attacks on every promise; prints what was tried and found
	$(BIN)/python -m tests.torture $(ARGS)

reference: $(READY) ## write the pages and pictures that are made from the code
	$(BIN)/python tools/gen_docs.py
	$(BIN)/python tools/gen_states.py
	$(BIN)/python tools/gen_map.py
	$(BIN)/python tools/gen_specification.py

docs: reference ## build the site into build/site; a broken link is an error
	@$(PIP) --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site

clean: ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
