# Two commands are all a newcomer needs: `make demo` and `make test`. Both set themselves up in .venv.
PYTHON  ?= $(shell command -v python3.11 || command -v python3)
VENV    := .venv
BIN     := $(VENV)/bin
DICE    := .venv-dice
PEERS   := .venv-peers
LOWEST  := .venv-lowest
INSTALL := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PIP     := $(BIN)/python $(INSTALL)
PYTEST  := $(BIN)/python -m pytest
# The doors of the package and what lies behind them: files and models of foreign libraries, the command line, the paper, the report.
OLDEST  := $(addprefix tests/,models report paper $(addprefix log/test_,dice.py files.py formats.py store.py) $(addprefix cli/test_,audit.py certify.py extract.py log.py main.py map.py model.py monitor.py points.py probe.py serve.py verify.py))
KERNELS := $(addprefix tests/,geometry oracles knowledge extraction baselines paper auditing golden)

.PHONY: demo test check test-system test-dice test-lowest test-kernels soak soak-tests bench-extraction bench-certify bench-robust bench-imperfect bench-audit bench-logs bench-multiclass bench-peers bench-scale bench-solvers docs figures readme schemas goldens clean

demo: $(VENV)/.runs
	$(BIN)/overexplain demo

test: $(VENV)/.tests
	$(PYTEST) -n auto -m "not system"

check: $(VENV)/.checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/readme_table.py --check
	$(BIN)/python benchmarks/certify.py --check
	$(BIN)/python benchmarks/robust_tables.py --check
	$(BIN)/python benchmarks/monitor.py --check
	$(BIN)/python benchmarks/audit_tables.py --check
	$(BIN)/python benchmarks/logs.py --check
	$(BIN)/python benchmarks/long_logs.py --check
	$(BIN)/python benchmarks/peers.py --check
	$(BIN)/python benchmarks/multiclass.py --check
	$(BIN)/python benchmarks/scale.py --check
	$(BIN)/python benchmarks/solvers.py --check
	$(BIN)/python benchmarks/campaigns.py --check
	$(BIN)/python docs/write_paper_to_code.py --check

test-system: $(VENV)/.tests
	$(PYTEST) -m system

# Live dice-ml, in an environment of its own: it brings much that nothing else here needs.
test-dice: $(DICE)/.tests
	$(DICE)/bin/python -m pytest tests_live/dice

# A part of the tests, and the README's commands, with the lowest versions that pyproject.toml allows, in an environment of its own.
test-lowest: $(LOWEST)/.tests
	$(LOWEST)/bin/python -m pytest -n auto $(OLDEST)
	$(LOWEST)/bin/python -m pytest tests/test_docs.py -k README

# The mathematics with the matrix products of older processors, whose sums end in other digits; x86 only, elsewhere it changes nothing.
test-kernels: $(VENV)/.tests
	for kernel in Nehalem Haswell; do OPENBLAS_CORETYPE=$$kernel $(PYTEST) -n auto $(KERNELS) || exit 1; done

# Long campaigns, not part of CI: what they count stands in docs/regions.md. One that was stopped goes on where it was.
soak: $(VENV)/.tests
	$(BIN)/python benchmarks/campaigns.py

# New random examples of the other tests, many times as many.
soak-tests: $(VENV)/.tests
	SOAK=30 $(PYTEST) -n auto tests/extraction/test_properties.py tests/extraction/test_label_certificates.py tests/campaigns/test_solvers.py tests/oracles/test_exact.py tests/knowledge tests/log tests/crash tests/faults

bench-extraction: $(VENV)/.runs
	$(BIN)/python benchmarks/extraction.py

# OVEREXPLAIN_DATA=directory with german_credit.csv, taiwan_credit_default.csv, adult.csv adds these to the tables.
bench-certify: $(VENV)/.tests
	$(BIN)/python benchmarks/certify.py
	$(BIN)/python benchmarks/certify.py --proofs

bench-robust: $(VENV)/.tests
	$(BIN)/python benchmarks/robust_tables.py
	$(BIN)/python benchmarks/robust.py

# Labels only, then every wrapper and imitation, then dice-ml itself.
bench-imperfect: $(VENV)/.tests $(DICE)/.tests
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/imperfect.py
	$(DICE)/bin/python benchmarks/imperfect.py --live

# The audit of 10,000 cases of 30 features, and the demo's output for the README; audits of the tables in the directory that
# OVEREXPLAIN_DATA names, beside another program; then the monitor on a million rows.
bench-audit: $(VENV)/.tests
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/audit_tables.py
	$(BIN)/python benchmarks/monitor.py

# A million rows of every format beside pandas, the figures in docs/logs.md; then what long logs give away, read beside one pass over
# their arrays (hours; OVEREXPLAIN_DATA=directory adds its tables).
bench-logs: $(VENV)/.tests
	$(BIN)/python benchmarks/logs.py
	$(BIN)/python benchmarks/long_logs.py

# What the commands show, in tests/golden/shown, written anew: review the diff. FROZEN=--frozen freezes cases that are new.
goldens: $(VENV)/.tests
	PYTHONPATH=tests $(BIN)/python -m golden.write $(FROZEN)

schemas: $(VENV)/.runs
	$(BIN)/python docs/schemas/write.py

# Every known attack beside ours, and IBM's ART in an environment of its own. OVEREXPLAIN_DATA=directory adds its CSV files.
bench-peers: $(VENV)/.tests $(PEERS)/.runs
	$(BIN)/python benchmarks/peers.py
	$(PEERS)/bin/python benchmarks/peers.py --live

bench-multiclass: $(VENV)/.tests
	$(BIN)/python benchmarks/multiclass.py

# Bounds on models behind solvers' answers, with and without confirmation; the figures in docs/services.md.
bench-solvers: $(VENV)/.tests
	$(BIN)/python benchmarks/solvers.py

bench-scale: $(VENV)/.tests
	$(BIN)/python benchmarks/scale.py

# The site, in build/docs; warnings and dead links are errors.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -n -q -E -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# The paper's figures and the tutorial's, drawn by the library.
figures: $(VENV)/.docs
	$(BIN)/python docs/figures/write.py
	$(BIN)/python benchmarks/robust_figure.py

readme: $(VENV)/.runs
	$(BIN)/python benchmarks/readme_table.py

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("overexplain needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/.tests: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.runs

$(VENV)/.checks: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[test,check]'
	@touch $@ $(VENV)/.runs $(VENV)/.tests

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[test,docs]'
	@touch $@ $(VENV)/.runs $(VENV)/.tests

$(PEERS)/.runs: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(INSTALL) --editable '.[peers]'
	@touch $@

$(LOWEST)/.tests: pyproject.toml benchmarks/lowest_versions.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check packaging
	$(LOWEST)/bin/python benchmarks/lowest_versions.py test > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/lowest.txt --editable '.[test]'
	@touch $@

$(DICE)/.tests: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DICE)
	$(DICE)/bin/python $(INSTALL) --editable '.[dice]' pytest
	@touch $@

clean:
	rm -rf build $(VENV) $(DICE) $(PEERS) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
