# `make demo` and `make test` set everything up from nothing but python3.
#   make demo    train an agent for five minutes, and show what it learned
#   make test    lint, types and all tests
#   make check   the same, in the environment that is there
#   make docs    the documentation as a site, in build/site
#   make soak    kill 200 training runs at random moments, with all agents and settings, and offer 5,000 damaged, swapped
#                and malicious files; at most 15 minutes on two cores. The last line is the summary, and the exit code is
#                not 0 unless it reads "200 kills, 0 differing bytes; 5000 hostile files, 0 tracebacks". The first line
#                names the seed, which repeats the same files: python -m tests.soak --seed SEED
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
KILLS ?= 200
FILES ?= 5000

.PHONY: demo test setup check types docs soak clean

demo: setup
	$(BIN)/skipper demo

test: setup
	sh scripts/browser.sh
	$(MAKE) check

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; point to one with: make PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

check:
	@test -e $(READY) || { echo "there is no environment yet; run: make setup"; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs 2 types $(COMPILED)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 12

types:
	$(BIN)/mypy

# Compiled functions are cached beside their sources: done once here, while the types are checked, and not by both test
# processes at the same time. An error is left for the tests to report.
$(COMPILED): $(shell find skipper -name '*.py')
	-OMP_NUM_THREADS=1 $(BIN)/python -m tests.soak.compile >/dev/null && touch $@

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

soak: setup
	$(MAKE) $(COMPILED)
	$(BIN)/python -m tests.soak --kills $(KILLS) --files $(FILES)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache demo
