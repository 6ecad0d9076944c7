# The README's two commands are `make demo` and `make test`; both set everything up from nothing but python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test setup check clean

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
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 12

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache demo
