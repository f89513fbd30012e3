# Two commands set everything up on a machine with Python ≥ 3.11 and git: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
ROOMS := evaluators instrumentation replay collector_processor

.PHONY: demo faults fuzz ingest soak reproduce lab test matrix conformance lint typecheck contracts coverage wheel clean .rooms captures stored determinism incidents decorators secrets unreachable

demo: $(VENV)/.installed ## a day of an agent's failures becomes tests that have been seen to fail
	@$(BIN)/redfirst demo

reproduce: $(VENV)/.installed ## published figures on agents' reliability, ours beside theirs
	@cd benchmarks && $(BIN)/python -m reproductions --json reproductions/results.json

lab: $(VENV)/.installed ## which metric notices which break of the sample agent
	@cd benchmarks && $(BIN)/python -m lab

captures: $(VENV)/.installed ## CAPTURES=folder: recorded bodies through the service as through score, in any order
	@$(BIN)/python benchmarks/captures.py $(CAPTURES) --served 3

stored: $(VENV)/.installed ## read times, size and start of a store of a million runs
	@$(BIN)/python benchmarks/stored.py --runs 20000 --copies $(or $(COPIES),50)

determinism: $(VENV)/.installed ## a hundred programs proven, and planted chance found and named
	@cd benchmarks && $(BIN)/python -m determinism

incidents: $(VENV)/.installed ## published failed runs as scenarios: make incidents DATA=… (tau_bench, tau2_bench)
	@cd benchmarks && $(BIN)/python -m incidents $(abspath $(DATA))

test: $(VENV)/.installed ## the tests
	$(BIN)/python -m pytest

faults: $(VENV)/.installed ## the faults of the service at full size: fifty kills of each of two kinds, giant traces, stalled senders
	REDFIRST_FAULT_KILLS=$${REDFIRST_FAULT_KILLS:-50} REDFIRST_FAULTS=full $(BIN)/python -m pytest tests/faults -q --durations=10

fuzz: $(VENV)/.installed ## a million mutated bodies in process, ten thousand requests to a service
	$(BIN)/python -m tests.fuzzing

ingest: $(VENV)/.installed ## what receiving, judging and storing costs, beside Phoenix, MLflow and rotel where they are installed
	$(BIN)/python benchmarks/ingest.py $(if $(ONLY),--only $(ONLY))

soak: $(VENV)/.installed ## half an hour (SECONDS=) at half of what is sustained: nothing lost, memory and series bounded
	$(BIN)/python benchmarks/soak.py $(if $(SECONDS),--seconds $(SECONDS))

decorators: $(VENV)/.installed ## what a traced call costs, beside openinference, traceloop, langfuse and mlflow, which are installed for it
	$(BIN)/python benchmarks/decorators.py --gate

secrets: $(VENV)/.installed ## ten thousand payloads with planted secrets: none in the exported bytes, the verdicts as without redaction
	$(BIN)/python benchmarks/planted_secrets.py

unreachable: $(VENV)/.installed ## 200,000 spans and no collector: memory, drops, and what the host notices
	$(BIN)/python benchmarks/unreachable.py --gate

matrix: $(VENV)/.installed ## the table of facts by dialect in docs/dialects.md
	$(BIN)/python -m tests.evaluators.conformance

conformance: $(VENV)/.installed ## what the receiver does, in docs/conformance.md, from the tests that show it
	$(BIN)/python -m tests.otlp.conformance

lint: $(VENV)/.installed ## style, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(MAKE) --no-print-directory typecheck contracts

typecheck: $(VENV)/.installed .rooms
	MYPYPATH=.rooms $(BIN)/mypy --explicit-package-bases --namespace-packages $(foreach room,$(ROOMS),-p redfirst.$(room))
	cd examples && MYPYPATH=../.rooms $(BIN)/mypy --config-file ../pyproject.toml --explicit-package-bases --namespace-packages -p bookshop
	cd benchmarks && MYPYPATH=../.rooms $(BIN)/mypy --config-file ../pyproject.toml --explicit-package-bases --namespace-packages -p reproductions -p lab -p determinism -p incidents

contracts: $(VENV)/.installed
	$(BIN)/lint-imports

coverage: $(VENV)/.installed ## branch coverage, one table a room
	$(BIN)/coverage erase
	COVERAGE_FILE=$(CURDIR)/.coverage $(BIN)/coverage run -m pytest -q
	$(BIN)/coverage combine -q
	@rm -f .coverage.* # what processes killed by the tests left half written
	@for room in $(ROOMS); do printf '%-22s' $$room; $(BIN)/coverage report --include="*/$$room/*" | tail -1; done

wheel: $(VENV)/.installed
	$(BIN)/python -m build --wheel --outdir dist

# mypy and editors do not follow the editable install's import hook; they follow links
.rooms:
	mkdir -p .rooms/redfirst
	for room in $(ROOMS) examples; do ln -sfn ../../$$room .rooms/redfirst/$$room; done

# setuptools warns of folders named like an editable package; ours are all below one name that no folder has
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("redfirst needs Python 3.11 or newer; set PYTHON=…") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	PYTHONWARNINGS='ignore:Editable installation' $(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .rooms build dist *.egg-info .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
