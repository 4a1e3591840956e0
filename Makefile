# Each of these sets everything up on a machine that has only Python 3.11 (or newer) and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: help demo test test-all check format bench docs pictures clean

help:
	@echo "make demo    set up and run two small private campaigns on real digits, with a report (about a minute)"
	@echo "make test    set up and run the tests"
	@echo "make test-all  the same, and all that takes long; CI runs it"
	@echo "make test-label-studio  install Label Studio (1 GB) and label whole campaigns in it"
	@echo "make test-processes  kill one of several processes at ten random points"
	@echo "make soak    10,000 random faults over whole campaigns, resumable (FAULTS=…, WORKERS=2, SEED=… tells one story)"
	@echo "make test-scale  install Ray and an S3 server (1 GB) and run what needs them"
	@echo "make check   set up and check format, lint and types"
	@echo "make bench   set up and run every benchmark, quickly"
	@echo "make audit   set up and attack five plans with everything there is (some minutes each)"
	@echo "make docs    set up and build the site of the documentation, strictly, in build/site"
	@echo "make pictures  set up and draw the pictures of README and docs again, from real runs"
	@echo "make format  set up and reformat the code"
	@echo "make clean   remove the environment and caches"

# Made again only when the dependencies change. The stamp comes last, so a broken install is tried again.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "dpal needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/dpal demo

# The tests of pages use Chromium; where it is missing and can be had, it is installed, otherwise they say why they skip.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get install -y -q --no-install-recommends chromium >/dev/null 2>&1; } || true

# axe-core looks for what people with disabilities would stumble over; without npm its tests say why they skip.
AXE := $(VENV)/axe/node_modules/axe-core/axe.min.js
.PHONY: axe
axe: $(READY)
	@test -e $(AXE) || { command -v npm >/dev/null && \
	  npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core@4.14.1 >/dev/null 2>&1; } || true

# Without what takes long and finds little that others do not (the marker "exhaustive").
test: $(READY) browser axe
	$(BIN)/python -m pytest -n $(WORKERS) -m "not exhaustive"

test-all: $(READY) browser axe
	$(BIN)/python -m pytest -n $(WORKERS)

# A gigabyte, in an environment of its own.
# Ray and moto's S3 server, in an environment of their own that sees ours.
SCALE := .venv-scale
.PHONY: test-scale
test-scale: $(READY)
	@test -x $(SCALE)/bin/moto_server || { $(PYTHON) -m venv $(SCALE) && \
	  $(BIN)/python -c 'import site; print(site.getsitepackages()[0])' > $(SCALE)/ours.pth && \
	  mv $(SCALE)/ours.pth $$($(SCALE)/bin/python -c 'import site; print(site.getsitepackages()[0])') && \
	  $(SCALE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ray && \
	  $(SCALE)/bin/python -m pip install --quiet --disable-pip-version-check 'moto[server]==5.2.5'; }
	PYTHONPATH=src $(SCALE)/bin/python -m pytest tests/scale

LABEL_STUDIO := .venv-label-studio
.PHONY: test-label-studio
test-label-studio: $(READY) browser
	@test -x $(LABEL_STUDIO)/bin/label-studio || { $(PYTHON) -m venv $(LABEL_STUDIO) && \
	  $(LABEL_STUDIO)/bin/python -m pip install --quiet --disable-pip-version-check label-studio==1.23.2; }
	$(BIN)/python -m pytest tests/end_to_end/test_label_studio.py

# Kills one of several processes at ten random points (some minutes).
.PHONY: test-processes
test-processes: $(READY)
	DPAL_KILLS=10 $(BIN)/python -m pytest tests/faults/test_processes.py

# Random faults over whole campaigns, a tenth of a second each. Started again, it goes on; build/soak.jsonl has a line for each story.
FAULTS ?= 10000
.PHONY: soak
soak: $(READY)
	$(BIN)/python tests/soak/soak.py --faults $(FAULTS) --workers $(WORKERS) --json build/soak.json $(if $(SEED),--seed $(SEED))

check: $(READY)
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/basedpyright

format: $(READY)
	$(BIN)/ruff format src tests benchmarks docs
	$(BIN)/ruff check --fix src tests benchmarks docs

bench: $(READY)
	@set -e; for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file --quick; done

.PHONY: audit
audit: $(READY)
	$(BIN)/python benchmarks/audit.py

# The variable silences an advertisement of the theme.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

pictures: $(READY) browser
	$(BIN)/python docs/loop.py
	$(BIN)/python docs/gallery.py
	$(BIN)/python docs/pages.py
	$(BIN)/python docs/epsilon_curve.py

clean:
	rm -rf $(VENV) build .pytest_cache .ruff_cache .hypothesis
