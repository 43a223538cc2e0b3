# Everything here sets itself up: a Python >= 3.11 and a package index are all it needs.
# `make PYTHON=...` chooses the Python; otherwise it is the newest one that runs and can make virtual environments.

CANDIDATES := python3.15 python3.14 python3.13 python3.12 python3.11 python3 python
ASK := -c 'import ensurepip, sys; v = sys.version_info[:2]; v < (3, 11) and sys.exit(1); print("%d.%d" % v)' 2>/dev/null
PYTHON := $(shell for python in $(CANDIDATES); do $$python $(ASK) >/dev/null && echo $$python && break; done)
VERSION := $(if $(PYTHON),$(shell $(PYTHON) $(ASK)))
NO_PYTHON := no Python >= 3.11 that runs and has ensurepip; name one with make PYTHON=...

LOCK := requirements/python-$(if $(filter 3.11,$(VERSION)),3.11,3.12).txt
VENV := .venv-$(VERSION)
BIN := $(VENV)/bin
READY := $(VENV)/ready
MATERIALX := $(VENV)/materialx
BOOK := $(VENV)/book
PANDOC := $(BOOK)/pypandoc/files/pandoc
UV := .venv-lock/bin/uv
SIMULATION := .venv-simulation

export NO_MKDOCS_2_WARNING = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

HOST ?= cpu
WITH ?= mkdocs
PORT ?= 8000
JAX_newest := jax
JAX_pre := --pre jax

.PHONY: help serve site book practice setup test test-all test-core coverage elsewhere simulation record upgrade bench audit lock clean

help:
	@echo "make setup   make the virtual environment; the other commands do so by themselves"
	@echo "make serve   build the site, serve it (at PORT=8000), and build again when a file changes"
	@echo "make site    build the site into site/; with WITH=zensical, properdocs or materialx, by that program"
	@echo "make book    build the site, and write the course into build/book as EPUB and, by Chromium, as PDF"
	@echo "make practice  write live-practice.py with a stub for every exercise, and examine it each time you save it;"
	@echo "               with FROM=train, basics/vmap or fit, begin at that part, page or exercise"
	@echo "make test    check the code, run every block of every page, test the engine and the built site"
	@echo "make test-all  the same, and slow checks: every page in a browser, other builders, downloads, hostile pages"
	@echo "make test-core  the part of make test that depends on the versions of Python and JAX: types, pages, engine"
	@echo "make coverage  run the tests of the engine, and list its lines that none of them runs"
	@echo "make elsewhere run every page as other kinds of computer would, and list the blocks that change"
	@echo "make simulation run the pages that need MJX and Brax, in an environment of its own (Python >= 3.12)"
	@echo "make record  run every page, and record its outputs on this host (HOST=cpu) under records/"
	@echo "make upgrade run every page on another JAX (JAX=0.12.1, newest or pre), and list the outputs that differ"
	@echo "make bench   measure the speed of building and serving"
	@echo "make audit   check the built site in a browser: requests, accessibility, bytes, search, Lighthouse"
	@echo "make lock    resolve the dependencies again; with UPGRADE=1, to their newest versions"
	@echo "make clean   delete everything that the other commands made"

setup: $(READY)

serve: export LIVEPAGES_SERVE = make serve PORT={port}
serve: $(READY)
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:$(PORT)

site: $(READY) $(if $(filter materialx,$(WITH)),$(MATERIALX))
	$(if $(filter materialx,$(WITH)),PYTHONPATH=$(MATERIALX)) $(BIN)/livepages build $(WITH)

book: site $(BOOK)
	$(BIN)/python -m course.book site build/book --pandoc $(PANDOC)

practice: $(READY)
	PYTHONPATH=snippets $(BIN)/python -m examiner live-practice.py $(if $(FROM),--from "$(FROM)")

test: $(READY)
	$(BIN)/python -m tests

test-core: $(READY)
	$(BIN)/python -m tests --core

test-all: $(READY) $(MATERIALX) $(BOOK)
	$(BIN)/python -m tests --all

# Only a report: a page's process that is watched is slower, and a few tests see the watching.
coverage: $(READY)
	@mkdir -p .cache/coverage
	$(BIN)/coverage run -m pytest -q -n 3 tests --ignore tests/site --ignore tests/browser || true
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

elsewhere: $(READY)
	$(BIN)/python -m tests.elsewhere

# What needs these packages is not run elsewhere, as they are large.
simulation: $(SIMULATION)/ready
	$(SIMULATION)/bin/pytest -rfEs docs/answers/mjx-and-brax.md

record: $(READY)
	$(BIN)/livepages record --host $(HOST)

# A second environment, with the versions of the lock but for JAX.
upgrade:
	$(if $(VERSION),,$(error $(NO_PYTHON)))
	$(if $(JAX),,$(error Which JAX? make upgrade JAX=0.12.1, JAX=newest or, with pre-releases, JAX=pre))
	@$(PYTHON) -m venv --clear .venv-upgrade
	@.venv-upgrade/bin/python -m pip install --quiet --require-hashes -r $(LOCK)
	@.venv-upgrade/bin/python -m pip install --quiet --no-build-isolation --no-deps -e .
	@.venv-upgrade/bin/python -m pip install --quiet --upgrade $(or $(JAX_$(JAX)),jax==$(JAX)) jaxlib
	.venv-upgrade/bin/livepages record --host upgraded --into .cache/upgrade || true
	.venv-upgrade/bin/livepages compare $(HOST) .cache/upgrade/upgraded $(if $(REPORT),--markdown > $(REPORT))

bench: $(READY)
	$(BIN)/python -m benchmarks.build_speed
	$(BIN)/python -m benchmarks.real_site

audit: $(READY)
	$(BIN)/python -m benchmarks.audit

$(READY): $(LOCK) pyproject.toml
	$(if $(VERSION),,$(error $(NO_PYTHON)))
	@echo "Setting up $(VENV) from $(LOCK); the first time takes some minutes"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r $(LOCK)
	@$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	@touch $@

$(SIMULATION)/ready: requirements/simulation.txt pyproject.toml
	$(if $(filter-out 3.11,$(VERSION)),,$(error MJX and Brax are locked for Python >= 3.12; name one with make PYTHON=...))
	@$(PYTHON) -m venv --clear $(SIMULATION)
	@$(SIMULATION)/bin/python -m pip install --quiet --require-hashes -r requirements/simulation.txt
	@$(SIMULATION)/bin/python -m pip install --quiet --no-deps -e .
	@touch $@

# A theme that has the names of Material's files, and replaces it where PYTHONPATH has this folder; and pandoc.
$(MATERIALX) $(BOOK): $(VENV)/%: requirements/%.txt $(READY)
	@rm -rf $@
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps --target $@ -r $<
	@touch $@

LOCKING := pip compile --universal --generate-hashes --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) --quiet

lock: $(UV)
	for version in 3.11 3.12; do \
		$(UV) $(LOCKING) pyproject.toml --extra site --extra pages --group dev --python-version $$version \
			--output-file requirements/python-$$version.txt || exit; \
	done
	$(UV) $(LOCKING) pyproject.toml --extra test --extra simulation --constraint requirements/python-3.12.txt \
		--python-version 3.12 --output-file requirements/simulation.txt
	$(UV) $(LOCKING) --group materialx --no-deps --python-version 3.11 --output-file requirements/materialx.txt
	$(UV) $(LOCKING) --group book --no-deps --python-version 3.11 --output-file requirements/book.txt

$(UV):
	$(if $(VERSION),,$(error $(NO_PYTHON)))
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet uv

clean:
	rm -rf .venv-* .cache .mypy_cache .pytest_cache .ruff_cache build site *.egg-info
