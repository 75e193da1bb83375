# `make demo`, `make live` and `make test` set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Waiting OpenMP threads sleep instead of spinning: on shared cores a spinning
# second thread can make a small training step forty times slower.
export OMP_WAIT_POLICY ?= passive

.PHONY: demo live test test-quick test-spark test-oldest check docs dist format benchmark fuzz clean

demo: $(VENV)/.installed
	$(BIN)/dualrank demo --out demo

# A service that learns while simulated users click; it says where to watch it.
live: $(VENV)/.installed-serve
	$(BIN)/dualrank serve --demo

# Each test has a limit (pyproject.toml), the whole run one hour, where there is `timeout`. The same
# examples of property tests in every run; `pytest` alone searches for new ones. One thread for each
# of the two workers. Files begin in the order of tests/conftest.py, so that both end at once.
LIMIT := $(if $(shell command -v timeout 2>/dev/null),timeout --foreground --signal=INT --kill-after=60 3600)
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(LIMIT) $(BIN)/python -m pytest --hypothesis-profile=ci
IN_TWO := -n 2 --dist loadscope --no-loadscope-reorder

test: check
	$(PYTEST) $(IN_TWO) --durations=10

# For the inner loop: without these folders, and without tests that are marked as slow.
NOT_QUICK := cli data/log data/shards docs fuzz online pages report reproduce spark
test-quick: $(VENV)/.installed-dev
	$(PYTEST) $(IN_TWO) -m "not slow" $(addprefix --ignore=tests/,$(NOT_QUICK))

# What needs Spark, on two executors; where there is no Java, nothing is installed.
test-spark:
	@if command -v java >/dev/null || [ -n "$$JAVA_HOME" ]; then \
		$(MAKE) $(VENV)/.installed-spark && \
		DUALRANK_TEST_SPARK=1 $(PYTEST) tests/spark; \
	else echo "there is no Java (such as openjdk-17-jre-headless): Spark is not tested"; fi

# The rooms that hold most of dualrank, on the oldest versions that pyproject.toml claims.
OLDEST := .venv-oldest
OLDEST_ROOMS := clicks contract corrections data decisions evaluation learning propensity rankers
OLDEST_EXTRAS := charts,chinese,onnx,pages,redis,serve,tensorboard,trees
# Not all of the extra dev: some of what tests compare with wants newer versions of the same packages.
OLDEST_TOOLS := httpx hypothesis packaging pandas polars pytest pytest-timeout pytrec-eval-terrier pyyaml scikit-learn zstandard
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest --hypothesis-profile=ci -p no:cacheprovider \
		$(addprefix tests/,$(OLDEST_ROOMS)) tests/cli/test_commands.py tests/test_tables_everywhere.py

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports --no-cache

# The site; a warning is an error. Its notebooks run, which takes some two minutes: not with NOTEBOOKS=off.
docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# What is released, in dist/: built, installed in an environment of its own, and tried there.
dist: $(VENV)/.installed-dev
	$(BIN)/python -m tools.dist $(if $(TAG),--tag $(TAG))

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

# A thousand mutations of every file format; goes on where it was interrupted.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "dualrank needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[charts]'
	@touch $@

$(VENV)/.installed-serve: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[serve]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-serve

$(VENV)/.installed-spark: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[spark]'
	@touch $@

$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) -m tools.oldest > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt \
		--editable '.[$(OLDEST_EXTRAS)]' $(OLDEST_TOOLS)
	@touch $@

clean:
	rm -rf $(VENV) $(OLDEST) demo dist .mypy_cache .ruff_cache .pytest_cache
