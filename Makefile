# On a fresh machine Python 3.11 and make are enough: `make demo`, `make test`.
# uv comes from PATH, or pip puts one into a private environment, .uv/. The project's own environment is
# .venv/ (or UV_PROJECT_ENVIRONMENT); one that exists is used as it is and brought up to date.

PYTHON ?= python3
UV ?= $(shell command -v uv || echo .uv/bin/uv)
WORKERS ?= 2
ARGS ?=

RUN := $(UV) run --frozen

export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help demo test e2e clients screenshots check lint types walls exam bench search prove faults docs format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(UV) ## three instances on one SQLite file; one is killed; watch the takeover
	@$(RUN) --no-dev tenure demo $(ARGS)

test: check ## check, then the whole suite (ARGS="-k lease" narrows it)
	$(RUN) pytest -n $(WORKERS) $(ARGS)

e2e: $(UV) ## the web page in a real browser (Chromium, TENURE_TEST_CHROMIUM names another)
	$(RUN) --group e2e pytest -m e2e -n $(WORKERS) tests/e2e $(ARGS)

screenshots: $(UV) ## pictures of the web page, into docs/images
	$(RUN) --group e2e python docs/screenshots.py

check: lint types walls ## lint, types and walls, without running a test

lint: $(UV) ## ruff: rules and format
	$(RUN) ruff check
	$(RUN) ruff format --check

types: $(UV) ## mypy, strict, on src
	$(RUN) mypy

walls: $(UV) ## import-linter: who may import whom
	$(RUN) lint-imports --no-logo

# Seeds are taken from the commit, so that no two runs search the same ones.
SEEDS ?= $(shell printf '%d00000..' 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || date +%s))
MINUTES ?= 30

search: $(UV) ## half an hour of simulated faults: SEEDS, MINUTES and WORKERS change that
	$(RUN) tenure prove --seeds $(SEEDS) --minutes $(MINUTES) --workers $(WORKERS)

clients: $(UV) ## the MCP door with clients of others and the conformance suite; needs pip and npm
	$(RUN) pytest -m clients tests/mcp $(ARGS)

prove: search ## half an hour of simulated faults, then the long proofs that `make test` leaves out
	$(RUN) pytest -m long -n $(WORKERS) --timeout 3600 $(ARGS)

faults: $(UV) ## the long fault tests: real processes and servers, an hour and more; figures at the end
	$(RUN) pytest tests/faults -m long -v -rP -n $(WORKERS) --timeout 3600 $(ARGS)

exam: $(UV) ## the stores' exam; writes its table into docs/stores.md
	$(RUN) pytest -n $(WORKERS) tests/stores -k "r40_question or r40_random" --exam-table docs/stores.md $(ARGS)

bench: $(UV) ## measure, beside the peers too; writes docs/benchmarks.md (ARGS="--quick" writes nothing)
	$(RUN) python -m bench $(or $(ARGS),--page docs/benchmarks.md)

docs: $(UV) ## draw the diagrams and tables of the documentation anew
	$(RUN) python docs/draw.py

format: $(UV) ## let ruff rewrite what it can
	$(RUN) ruff check --fix
	$(RUN) ruff format

clean: ## remove caches, build output and the private uv; .venv stays
	rm -rf .uv dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.uv/bin/uv:
	@echo 'uv is not on PATH: putting one into .uv/'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tenure needs Python 3.11 or later. Name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'
