# Everything is done from here; each target works in a fresh clone. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RAGCLI := $(BIN)/ragcli
SOURCES := ragcli tests
DEMO := .demo
SHARED := ../shared
SIZES ?= 10000 100000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint format spec clean
.PHONY: bench-answers bench-lexical bench-start bench-ingest bench-quality bench-dense bench-embedding bench-hybrid bench-stages bench-rerank bench-quality-stages

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: $(VENV)/setup.stamp ## make .venv with ragcli and what its development needs (Python 3.11 or newer)

$(VENV)/setup.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "setup: $(PYTHON) is missing or older than Python 3.11; try: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { \
	  echo "setup: this Python has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@# dependency groups need pip 25.1
	@$(BIN)/python -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (25, 1))' \
	  || $(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@# pip compiles what it installs, but nothing of an editable install
	$(BIN)/python -m compileall -q ragcli
	@# kept in the cache of the user, where every other checkout finds it; without a network nothing else needs it
	$(RAGCLI) --quiet models pull minilm || echo "setup: no model: what needs one will say so, or is skipped" >&2
	@touch $@

$(VENV)/bench.stamp: $(VENV)/setup.stamp
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

demo: setup ## ingest the sample corpus into a fresh index, query it, ask it
	rm -rf $(DEMO)
	$(RAGCLI) ingest sample_corpus --index $(DEMO)
	$(RAGCLI) query "what does error E-43 mean" --index $(DEMO) --format table --top-k 3
	$(RAGCLI) query "reimbursement for accommodation" --index $(DEMO) --format table --top-k 2 --explain
	$(RAGCLI) query "is there pay while I am in hospital" --filter year:=2025 --index $(DEMO) --mode vector --format table --top-k 1
	$(RAGCLI) query "積雪 雨量計" --index $(DEMO) --mode keyword --format table --top-k 3
	$(RAGCLI) query "is painting covered by the warranty" --redundancy-filter --mmr --lambda 0.5 --index $(DEMO) --format table --top-k 3
	$(RAGCLI) query "batteries in winter" --index $(DEMO) --format jsonl --top-k 1
	$(RAGCLI) inspect --index $(DEMO)
	$(RAGCLI) inspect "what does E-43 mean" --why --expect "refuses the certificate" --index $(DEMO)
	$(RAGCLI) ask "how many days of paid leave do I get" --verify --index $(DEMO)
	@echo; echo 'The tour goes on in README.md. To have ragcli on your path: export PATH="$$PWD/$(BIN):$$PATH"'

test: setup lint ## lint, all tests, and the spec's rows where the spec is at hand
	$(BIN)/python -m pytest -n auto --maxprocesses 8
	@if [ -d $(SHARED)/spec ]; then $(BIN)/python -m tests.spec_rows; else echo "spec: no $(SHARED)/spec, rows not checked"; fi

lint: setup ## ruff, its formatter, mypy --strict, import-linter
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

spec: setup ## each row of the spec and each handed case with the tests that prove it
	$(BIN)/python -m tests.spec_rows

bench-lexical: $(VENV)/bench.stamp ## keyword search and its build against tantivy, FTS5, bm25s (SIZES="10000 100000 1000000")
	$(BIN)/python -m tests.bench.lexical $(SIZES)

bench-start: $(VENV)/bench.stamp ## start-up of --help, --version and a query against the barest typer app
	$(BIN)/python -m tests.bench.start

bench-ingest: $(VENV)/bench.stamp ## ingest of 10,000 unchanged files against git status
	$(BIN)/python -m tests.bench.reingest

bench-quality: $(VENV)/bench.stamp ## nDCG@10 of keyword, vector and hybrid search on the collections of ../shared
	$(BIN)/python -m tests.bench.quality $(SETS)

bench-stages: $(VENV)/bench.stamp ## redundancy filter, MMR, reordering beside plain loops and langchain-core
	$(BIN)/python -m tests.bench.stages

bench-rerank: $(VENV)/bench.stamp ## 20 candidates by a cross-encoder, beside sentence-transformers where that is installed
	$(BIN)/python -m tests.bench.rerank

bench-quality-stages: $(VENV)/bench.stamp ## what redundancy filter, MMR and parents cost on the collections of ../shared
	$(BIN)/python -m tests.bench.stages_quality $(SETS)

bench-answers: $(VENV)/bench.stamp ## what extracts, citations checked and a small model give on the sets with answers (PARTS="extracts verify")
	$(BIN)/python -m tests.bench.answers $(PARTS)

bench-dense: $(VENV)/bench.stamp ## dense search against numpy's float32 matmul (SIZES="100000 1000000")
	$(BIN)/python -m tests.bench.dense $(SIZES)

bench-embedding: $(VENV)/bench.stamp ## passages a second: ours against the bare session, and end to end
	$(BIN)/python -m tests.bench.embedding
	$(BIN)/python -m tests.bench.embed_ingest 1000 40000

bench-hybrid: $(VENV)/bench.stamp ## a hybrid query of 100,000 chunks, whole process, against `llm --version`
	$(BIN)/python -m tests.bench.hybrid

clean: ## remove what the other targets made, .venv too
	rm -rf $(VENV) $(DEMO) .bench build dist .hypothesis .mypy_cache .ruff_cache .import_linter_cache *.egg-info
	find ragcli tests -name __pycache__ -type d -prune -exec rm -rf {} +
