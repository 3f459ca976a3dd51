PYTHON ?= python3
CXX ?= c++
BIN := .venv/bin
OLD := .venv-oldest/bin
SOURCES := pyproject.toml lab/pyproject.toml CMakeLists.txt $(wildcard native/*.cpp native/*.hpp native/mcce/*.hpp)

SANITIZED := .venv-sanitized/bin

.PHONY: demo test test-slow test-oldest test-predictors test-deep test-engines test-browser check check-workflows docs format
.PHONY: release-check check-native fuzz mutants bench bench-search experiments clean

demo: .venv/demo.stamp  ## explain declined applicants of the bundled data
	$(BIN)/python examples/german_credit.py

# Workers take over from each other, so that files whose tests share a fit mostly stay with one of them.
PYTEST := -m pytest -n 2 --dist worksteal -q

test: .venv/dev.stamp  ## what to run before every commit: all tests but the slow ones, newest supported libraries
	$(BIN)/python $(PYTEST) -m "not slow"

test-slow: .venv/dev.stamp  ## the slow tests, newest supported libraries
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(BIN)/python $(PYTEST) -m slow

test-oldest: .venv-oldest/dev.stamp  ## all tests but the slow ones and those of pages, oldest supported libraries
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-brief} $(OLD)/python $(PYTEST) -m "not slow" --ignore tests/unit/test_docs.py

test-predictors: .venv/predictors.stamp  ## the tests of black boxes, with every library they are for
	$(BIN)/python $(PYTEST) tests/contract/test_predictors.py tests/unit/test_boosters.py \
	  tests/unit/test_predictor_columns.py tests/unit/test_torch_and_onnx.py tests/unit/test_gradients.py \
	  tests/cli/test_predictors.py tests/unit/test_docs.py

test-deep: .venv/deep.stamp  ## the tests of baselines and generators that need torch
	$(BIN)/python $(PYTEST) lab/tests/deep

test-engines: .venv/engines.stamp  ## the tests on Dask, Ray and Spark, which needs Java
	$(BIN)/python -m pytest -n 2 --dist loadfile -q tests/engines

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

check-native: .venv-sanitized/dev.stamp  ## tests that reach compiled code, under the address and undefined-behaviour sanitizers
	$(SANITIZE) $(SANITIZED)/python $(PYTEST) -m "not slow" tests/oracles tests/contract tests/golden tests/invariance tests/unit

fuzz: .venv-sanitized/dev.stamp  ## new inputs that try to break it, with sanitizers; EXAMPLES= of each kind
	MCCE_FUZZ_EXAMPLES=$${EXAMPLES:-300} HYPOTHESIS_PROFILE=fuzz $(SANITIZE) $(SANITIZED)/python $(PYTEST) tests/fuzz

mutants: .venv/dev.stamp  ## plant each bug of tests/mutants in a copy and see that a test notices
	$(BIN)/python tests/mutants control
	$(BIN)/python tests/mutants

release-check: check-native fuzz mutants  ## what only a release needs
	HYPOTHESIS_PROFILE=long $(BIN)/python $(PYTEST) tests/unit/test_criteria.py tests/invariance
	$(BIN)/python benchmarks/service.py soak --minutes 30

docs: .venv/docs.stamp  ## the documentation site, in out/docs; a warning is an error
	rm -rf docs/api/generated  # else the pages of names that are gone stay
	$(BIN)/sphinx-build -b html -d build/doctrees -n -W --keep-going -q docs out/docs

format: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/dev.stamp  ## how fast, against a vectorised scikit-learn + NumPy implementation
	$(BIN)/python benchmarks/speed.py

bench-search: .venv/dev.stamp  ## how good the searches are, against NICE, and what they cost
	PYTHONPATH=benchmarks $(BIN)/python lab/benchmarks/search.py
	PYTHONPATH=benchmarks $(BIN)/python lab/benchmarks/evaluations.py
	$(BIN)/python benchmarks/coverage.py single
	$(BIN)/python benchmarks/widths.py
	$(BIN)/python benchmarks/plausibility_calibration.py

experiments: .venv/predictors.stamp  ## the paper's experiments, its figures beside ours; DATA=folder, REFERENCE=folder
	$(BIN)/mcce-lab experiments all $(if $(DATA),--data $(DATA)) $(if $(REFERENCE),--reference $(REFERENCE))

.venv/demo.stamp: $(SOURCES) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all]"
	touch $@

.venv/dev.stamp: $(SOURCES) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]" -e lab
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
	if $(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,engines]" -e lab; then touch $@; \
	else echo "not installed, so what needs them is skipped: dask, ray, pyspark"; fi

.venv/browser.stamp: .venv/dev.stamp
	if $(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,browser]" -e lab; then touch $@; \
	else echo "not installed, so what needs it is skipped: playwright"; fi

.venv/docs.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs]" -e lab
	touch $@

.venv-oldest/dev.stamp: $(SOURCES) constraints-oldest.txt
	test -x $(OLD)/python || $(PYTHON) -m venv .venv-oldest
	$(OLD)/python -m pip install --quiet -c constraints-oldest.txt -e ".[dev]" -e lab
	touch $@

.venv-sanitized/dev.stamp: $(SOURCES) constraints.txt
	test -x $(SANITIZED)/python || $(PYTHON) -m venv .venv-sanitized
	$(SANITIZED)/python -m pip install --quiet -c constraints.txt -C cmake.define.MCCE_SANITIZE=ON -C build-dir=build/sanitized -e ".[dev]" -e lab
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-sanitized out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf docs/api/generated docs/gallery docs/sg_execution_times.rst
