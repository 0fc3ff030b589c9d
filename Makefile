# Every target sets up what it needs in .venv; nothing is installed outside this folder.
PYTHON ?= python3
CORPUS ?= data/eurlex57k
FILES ?= 100000
REQUESTS ?= $(FILES)
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet
export PIP_NO_INPUT := 1
# Tests start many processes, and with bytecode each starts sooner.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check fix bench damage kills fuzz journeys docs release audit clean help

help:
	@echo "make demo    train, evaluate and explain on the embedded corpus (offline)"
	@echo "make test    run the tests"
	@echo "make check   ruff, mypy, import-linter"
	@echo "make fix     format, and fix what ruff can fix"
	@echo "make docs    build the documentation site, docs/_build/html"
	@echo "make damage  what 2,000 damaged copies of runs answer; make kills: 1,000 kills at random moments"
	@echo "make fuzz    100,000 changed files read, as many changed requests answered: make fuzz FILES=5000"
	@echo "make journeys  a first day with depl, from pip install on: make journeys CORPORA='data/a data/b'"
	@echo "make release wheel, source archive and list of components (SBOM), the same bytes each time, in dist"
	@echo "make audit   known vulnerabilities of what requirements.lock installs (needs a network)"
	@echo "make bench   compare with the peers: make bench CORPUS=path/to/corpus"

.venv/base: pyproject.toml constraints.txt
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "Installing depl into .venv ..."
	@$(PIP) install -c constraints.txt -e .
	@touch $@

.venv/neural: .venv/base
	@echo "Installing the encoder (PyTorch, transformers) into .venv ..."
	@$(PIP) install -c constraints.txt -e '.[neural]'
	@touch $@

.venv/dev: .venv/base
	@echo "Installing the tools for tests and checks into .venv ..."
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

.venv/docs: .venv/base
	@echo "Installing the tools for the documentation into .venv ..."
	@$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

# From pip install into an environment of its own, on generated files and on corpora if given.
journeys:
	$(PYTHON) tests/journeys/walk.py --fresh --corpora $(CORPORA)

# With tools in an environment of their own, and dates of files from the commit: building twice gives
# the same bytes, and this compares them. The list of components is of what requirements.lock installs.
RELEASE := .venv/release-tools/bin
BUILD = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) PIP_CONSTRAINT=$(CURDIR)/constraints.txt \
  $(RELEASE)/python -m build
release: .venv/release
	rm -rf dist .venv/again
	$(BUILD) --outdir dist .
	$(BUILD) --outdir .venv/again .
	diff -r dist .venv/again
	$(RELEASE)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
	  --output-reproducible --of JSON -o dist/sbom.cdx.json
	cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

audit: .venv/release
	$(RELEASE)/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

.venv/release: constraints.txt
	@$(PYTHON) -m venv .venv/release-tools
	@$(RELEASE)/python -m pip --disable-pip-version-check --quiet install -c constraints.txt \
	  build cyclonedx-bom pip-audit
	@touch $@

demo: .venv/neural
	@.venv/bin/depl demo

test: .venv/dev
	.venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: .venv/dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

fix: .venv/dev
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: .venv/dev
	.venv/bin/python benchmarks/features.py $(CORPUS)
	.venv/bin/python benchmarks/linear.py $(CORPUS)

damage: .venv/dev
	.venv/bin/python benchmarks/damage.py

kills: .venv/dev
	.venv/bin/python benchmarks/kills.py

fuzz: .venv/dev
	.venv/bin/python benchmarks/fuzz.py --files $(FILES)
	.venv/bin/python benchmarks/fuzz_requests.py --requests $(REQUESTS)

# From scratch, because a page that is not built again does not repeat its warnings.
docs: .venv/docs
	.venv/bin/sphinx-build -E -q -W --keep-going docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean:
	rm -rf .venv runs dist build docs/_build benchmarks/.venvs benchmarks/.work
