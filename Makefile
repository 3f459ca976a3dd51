PYTHON ?= python3
CXX ?= c++
BIN := .venv/bin
OLD := .venv-oldest/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*.cpp native/mcce/*.hpp)

SANITIZED := .venv-sanitized/bin

.PHONY: demo test test-oldest test-predictors check check-native format bench bench-search experiments clean

demo: .venv/demo.stamp  ## explain declined applicants of the bundled data
	$(BIN)/python examples/german_credit.py

test: .venv/dev.stamp  ## all tests, newest supported libraries
	$(BIN)/python -m pytest -n 2 -q

test-oldest: .venv-oldest/dev.stamp  ## all tests, oldest supported libraries
	$(OLD)/python -m pytest -n 2 -q tests src

test-predictors: .venv/predictors.stamp  ## the tests of black boxes, with every library they are for
	$(BIN)/python -m pytest -n 2 -q tests/test_predictor*.py

check: .venv/dev.stamp  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check-native: .venv-sanitized/dev.stamp  ## kernel tests under the address and undefined-behaviour sanitizers
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	  $(SANITIZED)/python -m pytest -q tests/test_native.py tests/test_golden.py

format: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/dev.stamp  ## how fast, against a vectorised scikit-learn + NumPy implementation
	$(BIN)/python benchmarks/speed.py

bench-search: .venv/dev.stamp  ## how good the searches are, against NICE
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/supports.py

experiments: .venv/predictors.stamp  ## the paper's experiments, its figures beside ours; DATA=folder
	$(BIN)/mcce bench all $(if $(DATA),--data $(DATA))

.venv/demo.stamp: $(SOURCES) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all]"
	touch $@

.venv/dev.stamp: $(SOURCES) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ .venv/demo.stamp

.venv/predictors.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,predictors,deep]"
	touch $@

.venv-oldest/dev.stamp: $(SOURCES) constraints-oldest.txt
	test -x $(OLD)/python || $(PYTHON) -m venv .venv-oldest
	$(OLD)/python -m pip install --quiet -c constraints-oldest.txt -e ".[dev]"
	touch $@

.venv-sanitized/dev.stamp: $(SOURCES) constraints.txt
	test -x $(SANITIZED)/python || $(PYTHON) -m venv .venv-sanitized
	$(SANITIZED)/python -m pip install --quiet -c constraints.txt -C cmake.define.MCCE_SANITIZE=ON -C build-dir=build/sanitized -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-sanitized out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
