# With make, Python >= 3.11 and a package index, every target sets up what it needs by itself.
#
#   make demo        the guided tour: fits real data and writes what it shows to demo-output/
#   make test        all that a change must pass: ruff, pyright, import-linter, pytest; ends with the ten slowest tests
#   make test-all    the same with the slow tests, and with every case of the tests of which it runs a part
#   make lint        only ruff, pyright and import-linter
#   make docs        the documentation as HTML, in site/
#   make examples    run the scripts of examples/ and the code of the documentation anew: outputs and pictures
#   make bench       the tables of benchmarks/
#   make clean       remove what the targets above wrote; make distclean removes .venv as well
#
# PYTHON=python3.13 chooses the interpreter for .venv, WORKERS=1 the number of pytest processes,
# PYTEST_ARGS='-k wishart' the tests.

PYTHON      ?=
WORKERS     ?= 2
PYTEST_ARGS ?=
VENV        := .venv
BIN         := $(VENV)/bin
SHELL       := /bin/sh

.NOTPARALLEL:
.PHONY: help demo test test-all lint style docs examples bench clean distclean broken-venv copy-of-caviar

help:
	@sed -n 's/^#   //p' Makefile

# ---- The virtual environment -------------------------------------------------------------------
#
# .installed-EXTRA is touched last, so that an interrupted installation is not taken for a finished
# one, and is out of date when pyproject.toml is newer. .made-for holds the folder for which make
# built the environment: a copied or moved one would run the code of another folder. .unfinished
# stands while packages are written. An environment that make did not build is used as it is; where
# .venv is a link to one of another folder, the link is replaced, and that one stays.

VENV_WORKS := [ -x $(BIN)/python ] && $(BIN)/python -m pip --version >/dev/null 2>&1 && { \
	[ ! -e $(VENV)/.made-for ] || { [ "$$(cat $(VENV)/.made-for)" = "$(CURDIR)" ] && [ ! -e $(VENV)/.unfinished ]; }; }

RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

define CREATE_VENV
python='$(PYTHON)'; \
for candidate in python3 python python3.14 python3.13 python3.12 python3.11; do \
  [ -n "$$python" ] || ! $$candidate $(RECENT) >/dev/null 2>&1 || python=$$candidate; \
done; \
if [ -z "$$python" ]; then \
  echo "caviar needs Python 3.11 or newer, and there is none on the PATH; python3 is: $$(python3 --version 2>&1)" >&2; \
  echo "Install one, or say where it is: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; \
elif ! "$$python" $(RECENT) 2>/dev/null; then \
  echo "caviar needs Python 3.11 or newer; PYTHON=$$python is: $$("$$python" --version 2>&1)" >&2; exit 1; \
elif ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
  echo "$$python cannot make virtual environments: its modules venv and ensurepip are missing." >&2; \
  echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; \
fi; \
echo "==> make $(VENV) with $$("$$python" --version)"; \
{ [ ! -L $(VENV) ] || rm $(VENV); } && "$$python" -m venv --clear --without-pip $(VENV) && touch $(VENV)/.unfinished \
  && echo "$(CURDIR)" > $(VENV)/.made-for && $(BIN)/python -m ensurepip --default-pip >/dev/null
endef

# A copy of the package in .venv, as "pip install ." makes it, would run in place of the code of this folder.
COPY_OF_CAVIAR := $(wildcard $(VENV)/lib/python*/site-packages/caviar/__init__.py)

# Python compiles modules when they are first imported: to compile all of them here takes half of the installation.
$(VENV)/.installed-%: pyproject.toml
	@{ $(VENV_WORKS); } || { $(CREATE_VENV); }
	@echo "==> install caviar[$*] into $(VENV)"
	@touch $(VENV)/.unfinished
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[$*]'
	@rm $(VENV)/.unfinished
	@touch $@ $(if $(filter test,$*),$(VENV)/.installed-cli)

ifneq ($(shell { $(VENV_WORKS); } && echo works),works)
$(VENV)/.installed-cli $(VENV)/.installed-test $(VENV)/.installed-docs $(VENV)/.installed-bench: broken-venv
endif

ifneq ($(COPY_OF_CAVIAR),)
$(VENV)/.installed-cli $(VENV)/.installed-test $(VENV)/.installed-docs $(VENV)/.installed-bench: copy-of-caviar
endif

# ---- Targets -----------------------------------------------------------------------------------

# $(call step,what it is,command): one step of a target; the first that fails ends the target.
step = @echo "==> $(1)"; $(2) || { echo "make $@: failed at: $(1)" >&2; exit 1; }

# Files stay whole, since fixtures are shared within them, and keep their order: the many small ones of src/ come last,
# so that no process waits for a long one of another. What is compiled is kept, for the programs that tests start.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=10 $(PYTEST_ARGS)

demo: $(VENV)/.installed-cli
	$(call step,caviar demo,$(BIN)/caviar demo --output-dir demo-output)

style: $(VENV)/.installed-test
	$(call step,ruff check,$(BIN)/ruff check .)
	$(call step,ruff format --check,$(BIN)/ruff format --check .)
	$(call step,lint-imports,$(BIN)/lint-imports --no-logo)

lint: style
	$(call step,pyright,$(BIN)/pyright --threads $(WORKERS))

# $(call beside_pyright,what it is,command): a step with pyright beside it, which takes the cores that tests leave idle
# and needs a quarter less of them with one thread. It tells what it found at the end.
define beside_pyright
@found=$$(mktemp) && { $(BIN)/pyright >"$$found" 2>&1 & types=$$!; }; \
trap 'kill $$types 2>/dev/null; rm -f "$$found"' EXIT; trap 'exit 130' INT TERM; \
echo "==> $(1), and pyright beside it"; $(2); tests=$$?; \
wait $$types; status=$$?; echo "==> pyright"; cat "$$found"; \
[ $$status = 0 ] || { echo "make $@: failed at: pyright" >&2; exit 1; }; \
[ $$tests = 0 ] || { echo "make $@: failed at: $(1)" >&2; exit 1; }
endef

test: style
	$(call beside_pyright,pytest,$(PYTEST))

test-all: style $(VENV)/.installed-docs $(VENV)/axe.min.js $(VENV)/.has-torch
	$(call beside_pyright,pytest with the slow tests,$(PYTEST) -m "")

# What the tests of the report check accessibility with; without npm, or without a network, they skip that.
AXE_VERSION := 4.14.1
$(VENV)/axe.min.js: | $(VENV)/.installed-test
	@echo "==> axe-core $(AXE_VERSION)"
	@folder=$$(mktemp -d) && { (cd $$folder && npm pack --silent axe-core@$(AXE_VERSION) >/dev/null \
	  && tar -xzf axe-core-*.tgz package/axe.min.js) && cp $$folder/package/axe.min.js $@ \
	  || echo "axe-core cannot be had; the checks of accessibility are skipped" >&2; rm -rf $$folder; }

# torch on the processor, for the tests of devices; its own index has packages without CUDA, which are a tenth of the size.
$(VENV)/.has-torch: | $(VENV)/.installed-test
	@$(BIN)/python -c 'import torch, array_api_compat' 2>/dev/null || { echo "==> torch"; \
	  $(BIN)/python -m pip install --quiet array-api-compat && \
	  { $(BIN)/python -m pip install --quiet --index-url https://download.pytorch.org/whl/cpu torch 2>/dev/null \
	    || $(BIN)/python -m pip install --quiet torch; }; } \
	  || echo "torch cannot be had; its tests are skipped" >&2
	@touch $@

docs: $(VENV)/.installed-docs
	$(call step,mkdocs build,NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet)
	@echo "open site/index.html"

examples: $(VENV)/.installed-docs $(VENV)/.installed-test
	@for script in examples/*.py; do echo "==> $$script"; MPLBACKEND=Agg $(BIN)/python "$$script" || exit 1; done
	$(call step,build_examples.py,$(BIN)/python docs/build_examples.py)

bench: $(VENV)/.installed-bench
	@for script in benchmarks/*.py; do \
	  [ -e "$$script" ] || { echo "there is no benchmarks/*.py" >&2; exit 1; }; \
	  echo "==> $$script"; $(BIN)/python "$$script" || exit 1; \
	done

clean:
	rm -rf demo-output dist build site .coverage .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests docs examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV)
