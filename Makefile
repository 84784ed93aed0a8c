PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORT := $(VENV)/installed.json
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	-c constraints.txt --report $(REPORT)
CHECK := $(BIN)/python tools/wheel_hashes.py check $(REPORT)
TEST_WORKERS ?= 2
MINUTES ?= 10
N ?= 100
RESULTS := experiments/results

.PHONY: setup demo test docs lint clean fuzz torture load sbom

setup: $(VENV)/.installed

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing graphkin into $(VENV) ..."
	$(PIP) -e .
	$(CHECK)
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing what the tests need ..."
	$(PIP) -e '.[test]'
	$(CHECK)
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) -e '.[docs]'
	$(CHECK)
	touch $@

$(VENV)/.installed-fuzz: $(VENV)/.installed-test
	$(PIP) -e '.[fuzz]'
	$(CHECK)
	touch $@

demo: setup
	$(BIN)/graphkin demo

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One thread in each worker: two processes with two threads each would fight for the cores.
test: lint
	tools/chromium.sh
	OMP_NUM_THREADS=1 tools/clean_room.sh $(BIN)/python -m pytest -n $(TEST_WORKERS)

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

sbom: $(VENV)/.installed-test
	$(BIN)/python tools/sbom.py -o graphkin.cdx.json

# Every reader of files from outside, by a fuzzer that follows coverage, and the HTTP API; findings go
# to fuzz-findings, and fuzz-corpora has what the next run begins with.
fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python tools/fuzz/run.py --minutes $(MINUTES) --output $(RESULTS)/fuzz.json
	$(BIN)/python tools/reliability.py

# Kills, full disks and cuts of the power, N of each.
torture: $(VENV)/.installed-test
	$(BIN)/python tools/torture/run.py --trials $(N) --output $(RESULTS)/torture.json
	$(BIN)/python tools/reliability.py

# Readers and writers on one library, clients of a server, machines that are killed; MINUTES of each.
load: $(VENV)/.installed-test
	$(BIN)/python tools/load/run.py --minutes $(MINUTES) --output $(RESULTS)/load.json
	$(BIN)/python tools/reliability.py

clean:
	rm -rf $(VENV) docs/_build build dist
