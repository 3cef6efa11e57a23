# Every target sets up what it needs. The environment is .venv; nothing is installed elsewhere.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUILT  := .venv-compiled
READY  := $(VENV)/.ready
SPARK  := $(VENV)/.spark
PYTEST := $(BIN)/python -m pytest

# A run whose worker stood still in some library and was ended (tests/conftest.py) is made once more.
WHOLE = $(1); status=$$?; \
  if [ $$status -eq 75 ]; then echo "all tests, once more:"; $(1); status=$$?; fi; exit $$status

.PHONY: help demo up test test-all mutants campaign campaigns chaos explore compiled test-compiled lint format bench lab interop docs site scripts-rewrite constraints sim-coverage clean
.DEFAULT_GOAL := help

help:                 ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "cotidal needs Python 3.11 or newer: set PYTHON=python3.12, say")'
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

$(SPARK): $(READY)
	@echo "setting up Spark in $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark]'
	@touch $(SPARK)

# Spark, for the last part of the story, only where it could run.
demo: $(READY) $(if $(or $(JAVA_HOME),$(shell command -v java)),$(SPARK)) ## the story: three brokers, records, a leader killed, nothing lost
	@$(BIN)/python -m demo

up: $(READY)          ## three brokers in the foreground, from localhost:9092 on
	@$(BIN)/cotidal up

test: lint $(SPARK)   ## what CI runs: static checks, unit, processes, clients
	@$(call WHOLE,$(PYTEST) -n 2 --dist loadgroup -m 'not slow and not interop' tests)

test-all: lint $(SPARK) ## and what takes longer
	@$(call WHOLE,$(PYTEST) -n 2 --dist loadgroup -m 'not interop' tests)

mutants: $(READY)     ## plant bugs in copies of the product: scripts and simulator must find them
	@$(BIN)/python -m tests.mutants $(ARGS)

campaign: $(if $(COMPILED),$(BUILT)/.ready,$(READY)) ## simulated clusters under faults: make campaign PLAN=harsh SEEDS=1000 COMPILED=1 TALLY=runs.jsonl
	@$(if $(COMPILED),$(BUILT)/bin,$(BIN))/cotidal sim run --plan $(or $(PLAN),harsh) --seeds $(or $(SEEDS),1000) \
	  $(if $(TALLY),--tally $(TALLY) --commit $$(git describe --always --dirty)) $(ARGS)

campaigns: $(if $(COMPILED),$(BUILT)/.ready,$(READY)) ## so many runs of every plan there is: make campaigns SEEDS=100 COMPILED=1
	@status=0; for plan in $$($(if $(COMPILED),$(BUILT)/bin,$(BIN))/cotidal sim plans | cut -d' ' -f1); do \
	  $(if $(COMPILED),$(BUILT)/bin,$(BIN))/cotidal sim run --plan $$plan --seeds $(or $(SEEDS),20) $(ARGS) || status=1; \
	done; exit $$status

chaos: $(READY)       ## faults on real processes, judged as simulated ones: make chaos [FAULTS=200] [SEED=1] [MUTANT=name]
	@$(BIN)/python -m tests.chaos $(if $(FAULTS),--faults $(FAULTS)) --seed $(or $(SEED),1) $(if $(MUTANT),--mutant $(MUTANT)) $(ARGS)

explore: $(READY)     ## small worlds of the real machines, searched completely (ten minutes each at most)
	@$(BIN)/cotidal sim explore $(ARGS)

compiled: $(BUILT)/.ready ## the compiled build in .venv-compiled: same source, needs a C compiler, takes minutes

$(BUILT)/.ready: pyproject.toml constraints.txt hatch_build.py $(shell find src -name '*.py')
	@test -d $(BUILT) || $(PYTHON) -m venv $(BUILT)
	@echo "compiling into $(BUILT) ..."
	@COTIDAL_COMPILE=1 $(BUILT)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt '.[dev]'
	@touch $@

test-compiled: $(BUILT)/.ready ## the tests of `make test`, against the compiled build
	@$(BUILT)/bin/python -m pytest -n 2 --dist loadgroup -m 'not slow and not interop and not plain' tests

lint: $(READY)        ## ruff, mypy strict, import contracts, generated code up to date
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tools/generate_messages.py --check
	@$(BIN)/python tools/reference_pages.py --check
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/mypy

format: $(READY)      ## ruff's formatting
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY)       ## one table: cotidal beside Apache Kafka (where Java and Maven are there)
	@$(BIN)/python -m bench $(ARGS)

lab: $(READY)         ## which acknowledged records are lost, by settings: one table, lab.svg
	@$(BIN)/cotidal sim lab compare --plot lab.svg $(ARGS)

interop: $(SPARK)     ## Kafka's own tools and classes, other people's client suites (Java 17, Maven; Go, Node)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[pipelines]'
	@COTIDAL_CLIENT_RESULTS=1 $(PYTEST) -m interop tests/interop $(ARGS); status=$$?; \
	  $(BIN)/python tools/reference_pages.py; exit $$status

docs: $(READY)        ## the documentation as a site in site/, with stories that play in it (needs npm)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@$(BIN)/mkdocs build --strict --quiet && echo "site/index.html"
	@$(BIN)/python tools/page_site.py site/page || echo "the stories in it do not play"

site: $(READY)        ## the page with the simulator inside it, as a static site in build/page (needs npm)
	@$(BIN)/python tools/page_site.py build/page

sim-coverage: $(READY) ## how much of core/ and node/ simulation alone reaches, and what it does not
	@$(BIN)/python tools/sim_coverage.py $(ARGS)

scripts-rewrite: $(READY) ## write what happens into tests/scripts; the diff is the review
	@COTIDAL_REWRITE_SCRIPTS=1 $(PYTEST) tests/test_scripts.py

constraints: $(READY) ## write constraints.txt from what is installed now
	@{ head -1 constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > constraints.new
	@mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) $(BUILT) site build dist
