# Everything a user or CI runs. Each target sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

.PHONY: lab demo test check bench clean

lab: $(VENV)/.ready  ## open JupyterLab on the explorer with the sample run
	$(PY) -m packtools.notebook notebooks/01_explore_packing.ipynb $(LAB)

demo: $(VENV)/.ready  ## pack the sample run: cost-versus-quality table and figures, no browser
	$(PY) -m packtools.cli report --output-dir build/demo

test: $(VENV)/.test  ## the whole suite, with the notebooks under nbmake
	$(PY) -m pytest --nbmake --nbmake-timeout=60 --nbmake-kernel=python3 tests packtools notebooks $(ARGS)

check: $(VENV)/.dev  ## format, lint, types, notebooks
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/nbstripout --verify notebooks/*.ipynb

bench: $(VENV)/.test  ## ratios against named rivals; some minutes
	$(PY) benchmarks/run.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "packtools needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(PIP) -e '.[notebooks]' && touch $@

$(VENV)/.test: $(VENV)/.ready
	$(PIP) -e '.[test]' && touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) -e '.[test,dev]' && touch $@

clean:
	rm -rf $(VENV) build dist
