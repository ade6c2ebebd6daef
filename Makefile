# Every target does its own set-up in .venv; nothing outside the checkout is touched except by `make test-all` (see tools/install-extras).
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
READY  := $(VENV)/.ready
CODE   := src tests tools examples
PROSE := README.md SECURITY.md CONTRIBUTING.md $(wildcard docs/*.md) docs/howto docs/reference src/atlasbridge/cli
TOOL   ?=
# A test that starts the program mostly waits: for a screen that comes to rest, for a process that ends.
JOBS   ?= $(shell expr 3 \* $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))
ARGS   ?=
# On Linux collected once, and run in forks of that process (tests/support/forked_workers.py); a Mac's libraries do not bear a fork.
WORKERS := $(if $(filter Linux,$(shell uname)),-p tests.support.forked_workers --forks,--dist worksteal -n)
PYTEST  = $(BIN)/python -m pytest -q $(WORKERS) $(JOBS)
# What `make test` leaves to a landing.  schemathesis is a plugin that takes seconds to load, for one file of a landing.
QUICK  := -p no:schemathesis -m "not browser and not tools and not heavy and not landing and not lint"
# Its Python counts from the start of every process, also of one whose environment was emptied.
COUNTED := .venv-coverage
OF_RUN := $(filter-out %/test_run_zygote.py,$(wildcard tests/integration/test_run_*.py)) tests/integration/test_job_control.py tests/integration/test_attach_sessions.py
MAIN_PATHS := tests/fleet_server/test_server_path.py tests/fleet_server/test_server_together.py tests/web/product tests/integration/test_zygote_spare.py tests/trust/test_proof_at_both_ends.py tests/trust/test_the_system_hub.py
# A machine that forbids compiled files would compile all of the program again at every start.
export PYTHONDONTWRITEBYTECODE :=
# Says when a step began and how long it took: the first set-up downloads some 60 packages.
STEP   = @step() { echo "$$1 ..."; shift; begun=$$(date +%s); "$$@" || exit; echo "  done in $$(($$(date +%s) - begun)) s"; }; step

.DEFAULT_GOAL := help
.PHONY: help run test test-landing test-main-paths test-zygote test-all test-tools lint lock format hooks coverage bench lab lab-real torture reference docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: install it, or say make PYTHON=/path/to/python3 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, this is $$($(PYTHON) --version)" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "making an environment in $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@test -z "$$(ls -d $(VENV)/lib*/python3*/site-packages/atlasbridge-[0-9]*.dist-info 2>/dev/null)" || \
	  $(BIN)/python -m pip uninstall --quiet --yes atlasbridge   # our name of before, or another program
	$(STEP) "installing AtlasBridge (about 20 s)" $(PIP) --editable .
	@touch $@

$(READY): $(INSTALLED)
	$(STEP) "upgrading pip" $(PIP) --upgrade "pip>=25.1"
	@$(PIP) --no-deps --force-reinstall --editable .   # an older pip (24.2) writes a command that imports `re` first: 7 ms at every start
	$(STEP) "installing test packages (a minute)" $(PIP) --group dev
	@touch $@

run: $(INSTALLED) ## the demo: a sample agent asks six questions; make run TOOL=claude runs a real tool
	@if [ -n "$(TOOL)" ]; then $(BIN)/atlasbridge run $(TOOL) $(ARGS); else $(BIN)/atlasbridge demo || test $$? -eq 130; fi   # 130: Ctrl-C ended it

test: $(READY) ## the tests that need only Python: every promise, with the real program in a real terminal
	$(PYTEST) $(QUICK) $(ARGS)

test-landing test-main-paths: JOBS = $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)
test-landing: $(READY) ## the other tests: long rounds, a fleet server on PostgreSQL, two browsers, full-screen programs
	tools/install-extras landing
	LANDING=1 $(PYTEST) -m "landing or heavy or browser" $(ARGS)

test-main-paths: $(READY) ## the part of test-landing that every change must pass: a fleet server on PostgreSQL, the page in a browser, the zygote's spare host, the system hub
	tools/install-extras main
	LANDING=1 $(PYTEST) -m "landing or heavy or browser" $(MAIN_PATHS) $(ARGS)

test-zygote: $(READY) ## the tests of `run` with the zygote, as users have it
	LANDING=1 WITH_ZYGOTE=1 $(PYTEST) $(QUICK) $(OF_RUN) $(ARGS)

test-all: test test-landing test-zygote ## everything; installs what it needs
	tools/install-extras
	$(BIN)/python -m pytest -q -m tools $(ARGS)

test-tools: JOBS = 2
test-tools: $(READY) ## every dialog of Claude Code and Codex, the main ones of Continue and Kimi Code, real programs on a mock model
	tools/install-extras tools
	$(PYTEST) -m tools tests/tools/test_real_tools.py $(ARGS)

lint: $(READY) ## ruff, mypy, rules for the source (tests/meta), spelling, vulnerable dependencies, and with Node the types of the page
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -p no:schemathesis -m lint tests/meta
	$(BIN)/codespell -D - -D tools/words_not_used.txt --ignore-words-list sie,ans --skip docs/reference/specification.md $(PROSE)
	$(BIN)/codespell --ignore-words-list sie,ans,ths,nd,te,cros --skip '*.json,*.js,*.svg,*.pyc,*.sql,*.toml' src
	$(BIN)/python tools/audit_dependencies.py
	@if command -v npx >/dev/null; then npx --yes --package typescript@5.9.3 tsc -p tools/tsconfig.json && npx --yes --package typescript@5.9.3 tsc -p tools/tsconfig.fleet.json; else echo "no Node here: the page's modules are not type-checked"; fi

lock: $(READY) ## write requirements.lock: the package and its extras, each file by its hash
	@$(PIP) pip-tools
	$(BIN)/pip-compile --quiet --generate-hashes --all-extras --strip-extras --no-emit-index-url --no-header --output-file requirements.lock pyproject.toml

format: $(READY) ## format the code with ruff
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

hooks: $(READY) ## install git hooks that check every commit
	@$(PIP) --group hooks
	$(BIN)/pre-commit install

coverage: ## the branches that the tests take, in every process; fails below the floor in pyproject.toml
	@$(MAKE) VENV=$(COUNTED) $(COUNTED)/.ready
	@$(COUNTED)/bin/python -m pip install --quiet --disable-pip-version-check --group coverage
	@echo 'import os; os.environ.update(COVERAGE_PROCESS_START="$(CURDIR)/pyproject.toml", COVERAGE_FILE="$(CURDIR)/.coverage"); import coverage; coverage.process_startup()' \
	  > "$$($(COUNTED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/counted.pth"
	@rm -f .coverage .coverage.*
	@echo "Some tests fail here: they look at what a process imports and has open, and the counter is part of it.  'make test' judges them."
	-$(COUNTED)/bin/python -m pytest -q -n $(JOBS) --dist worksteal $(QUICK) $(ARGS)
	-$(COUNTED)/bin/coverage combine --quiet
	$(COUNTED)/bin/coverage report

bench: $(READY) ## measure side by side with similar programs; writes docs/benchmarks.md
	@$(PIP) --group bench
	$(BIN)/python -m tests.benchmarks $(ARGS)

lab: $(READY) ## the Prompt Lab: all scenarios
	$(BIN)/atlasbridge lab run --all

lab-real: $(READY) ## the real AI CLIs against a mock model, every dialog
	tools/install-extras tools-all
	ATLASBRIDGE_LAB_REAL=1 $(BIN)/python -m pytest -q -n 2 -m tools tests/tools $(ARGS)

torture: $(READY) ## long attacks on every promise
	$(BIN)/python -m tests.torture $(ARGS)

reference: $(READY) ## write the pages and pictures that are generated from the code
	$(BIN)/python tools/gen_docs.py
	$(BIN)/python tools/gen_states.py
	$(BIN)/python tools/gen_map.py
	$(BIN)/python tools/gen_specification.py

docs: reference ## build the site into build/site; a broken link or a page outside the menu is an error
	@$(PIP) --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

clean: ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
