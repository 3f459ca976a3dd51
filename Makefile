PYTHON ?= python3
CXX ?= c++
BIN := .venv/bin
OLD := .venv-oldest/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*.cpp native/*.hpp native/mcce/*.hpp)

SANITIZED := .venv-sanitized/bin

.PHONY: demo test test-slow test-oldest test-predictors test-deep test-engines test-browser check check-workflows check-native fuzz docs format
.PHONY: bench bench-search experiments clean

demo: .venv/demo.stamp  ## explain declined applicants of the bundled data
	$(BIN)/python examples/german_credit.py

test: .venv/dev.stamp  ## all tests but the slow ones, newest supported libraries
	$(BIN)/python -m pytest -n 2 -q -m "not slow"

test-slow: .venv/dev.stamp  ## the slow tests, newest supported libraries
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(BIN)/python -m pytest -n 2 -q -m slow

test-oldest: .venv-oldest/dev.stamp  ## all tests but the slow ones, oldest supported libraries
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-brief} $(OLD)/python -m pytest -n 2 -q -m "not slow" tests src --ignore tests/test_pages.py

test-predictors: .venv/predictors.stamp  ## the tests of black boxes, with every library they are for
	$(BIN)/python -m pytest -n 2 -q tests/predictors

test-deep: .venv/deep.stamp  ## the tests of baselines and generators that need torch
	$(BIN)/python -m pytest -n 2 -q tests/baselines/deep tests/model/deep tests/predictors/test_gradients.py tests/test_docs_baselines.py

ENGINES := $(patsubst %,tests/execution/test_%.py,lost_workers ray dask spark)
test-engines: .venv/engines.stamp  ## the tests on Dask, Ray and Spark, which needs Java
	$(BIN)/python -m pytest -n 2 --dist loadfile -q $(ENGINES)
	$(BIN)/python -m pytest -n 2 -q tests/cli/test_sharing.py -k "dask or ray or spark"

test-browser: .venv/browser.stamp  ## the tests of pages in a real browser; needs Chromium
	$(BIN)/python -m pytest -n 0 -q tests/browser

check: .venv/dev.stamp check-workflows  ## format, lint, types, layers, workflows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check-workflows: .venv/dev.stamp  ## the files that GitHub reads; needs no network
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*_*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet .github

# Little quarantine, or memory that is measured would grow with every free.
SANITIZE := ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 \
  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)"
NATIVE_TESTS := tests/kernels tests/boosting tests/model tests/search tests/plausibility tests/postprocess tests/saving \
  tests/runtime tests/test_golden.py

check-native: .venv-sanitized/dev.stamp  ## tests that reach compiled code, under the address and undefined-behaviour sanitizers
	$(SANITIZE) $(SANITIZED)/python -m pytest -n 2 -q -m "not slow" $(NATIVE_TESTS)

SECONDS := 180
fuzz: .venv-sanitized/dev.stamp  ## new inputs that try to break it, with sanitizers; SECONDS=, KIND=, SEED=, ARGS=
	$(SANITIZE) $(SANITIZED)/python tests/fuzz $(KIND) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

docs: .venv/docs.stamp  ## the documentation site, in out/docs; a warning is an error
	rm -rf docs/api/generated  # else the pages of names that are gone stay
	$(BIN)/sphinx-build -b html -d build/doctrees -n -W --keep-going -q docs out/docs

format: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/dev.stamp  ## how fast, against a vectorised scikit-learn + NumPy implementation
	$(BIN)/python benchmarks/speed.py

bench-search: .venv/dev.stamp  ## how good the searches are, against NICE, and what they cost
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/evaluations.py
	$(BIN)/python benchmarks/single_changes.py
	$(BIN)/python benchmarks/widths.py
	$(BIN)/python benchmarks/plausibility_calibration.py

experiments: .venv/predictors.stamp  ## the paper's experiments, its figures beside ours; DATA=folder, REFERENCE=folder
	$(BIN)/mcce experiments all $(if $(DATA),--data $(DATA)) $(if $(REFERENCE),--reference $(REFERENCE))

.venv/demo.stamp: $(SOURCES) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all]"
	touch $@

.venv/dev.stamp: $(SOURCES) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ .venv/demo.stamp

.venv/predictors.stamp: .venv/dev.stamp
	missing=; for library in torch xgboost catboost; do \
	  $(BIN)/python -m pip install --quiet -c constraints.txt $$library || missing="$$missing $$library"; \
	done; \
	if test -n "$$missing"; then echo "not installed, so what needs it is skipped:$$missing"; else touch $@; fi

.venv/deep.stamp: .venv/dev.stamp
	if $(BIN)/python -m pip install --quiet -c constraints.txt torch; then touch $@; \
	else echo "not installed, so what needs it is skipped: torch"; fi

.venv/engines.stamp: .venv/dev.stamp
	if $(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,engines]"; then touch $@; \
	else echo "not installed, so what needs them is skipped: dask, ray, pyspark"; fi

.venv/browser.stamp: .venv/dev.stamp
	if $(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,browser]"; then touch $@; \
	else echo "not installed, so what needs it is skipped: playwright"; fi

.venv/docs.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs]"
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
	rm -rf docs/api/generated docs/gallery docs/sg_execution_times.rst
