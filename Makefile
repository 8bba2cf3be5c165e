# Everything runs in .venv, which the first target makes: python3 (3.10 or newer) and the package
# index are enough. Another interpreter: make PYTHON=python3.12 (after make clean).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
SIZES ?= 2000,10000,100000,1000000
STAMP := $(VENV)/installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The variable silences what the theme tells its users of a future mkdocs; below 2 it is no news.
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

.DELETE_ON_ERROR:
.PHONY: demo test check chaos bench format clean

demo: $(STAMP) ## import sample conversations, ask questions, show what is recalled and why
	$(BIN)/semantic-recall demo

test: check ## everything that CI runs
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile -m 'not alone'
	$(BIN)/python -m pytest -m alone

check: $(STAMP) ## format, lint, types, layers, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(SITE) --quiet || $(SITE)  # quietly, or once more to say what is wrong

chaos: $(STAMP) ## kill, tear, fill and crowd a memory for an hour; a table of what was lost
	$(BIN)/python -m tests.chaos --rounds 216 --seed $(or $(SEED),1)

bench: $(BENCH)/installed ## quality and speed beside other libraries, also on FILE=locomo10.json; writes docs/benchmarks.md
	$(BENCH)/bin/python -m benchmarks.own build/own.json
	$(BENCH)/bin/python -m benchmarks.quality --peers --half report --out build/bench/quality.json \
		--keep benchmarks/results/quality.json \
		--embedder wordllama --embedder multilingual --embedder hash --embedder none \
		--file 'Own set=build/own.json' $(if $(FILE),--file '$(basename $(notdir $(FILE)))=$(FILE)')
	$(BENCH)/bin/python -m benchmarks.speed --sizes $(SIZES) --out build/bench/speed.json
	$(BENCH)/bin/python -m benchmarks.regression benchmarks/results/quality.json build/bench/quality.json
	$(BENCH)/bin/python -m benchmarks.regression benchmarks/results/speed.json build/bench/speed.json
	cp build/bench/quality.json build/bench/speed.json benchmarks/results/
	$(BENCH)/bin/python -m benchmarks.report

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(BENCH) benchmarks/peers/mastra/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet 'pip>=25.1'  # older ones know no dependency groups
	$(PIP) install --quiet --constraint constraints.txt --editable '.[all]' \
		--group test --group lint --group docs --group bench
	touch $@

# mem0 wants an older protobuf than the pins. Mastra needs npm, which brings Node 22; without it the
# report says that it is missing.
$(BENCH)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet 'pip>=25.1'
	grep -v '^protobuf' constraints.txt >$(BENCH)/constraints.txt
	$(BENCH)/bin/python -m pip install --quiet --constraint $(BENCH)/constraints.txt \
		--editable '.[all]' --group bench --group peers
	-cd benchmarks/peers/mastra && npm install --silent --no-audit --no-fund --no-package-lock
	touch $@
