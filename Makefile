PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test test-fast faults lint types clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,tables,text,onnx,track,frames,hub,cluster]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/nasight find --data digits --budget 90s --seed 0 --out runs/demo --overwrite

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

test: lint types
	$(BIN)/python tools/house.py
	$(BIN)/pytest -n 2

test-fast: lint types
	$(BIN)/pytest -n 2 -m "not slow"

faults: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m faults

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
