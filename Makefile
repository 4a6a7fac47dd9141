# One verb a line of work; CI and CONTRIBUTING.md use the same ones.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install fmt check test golden conformance bench page pictures editors

install: $(BIN)/topos
$(BIN)/topos: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

fmt: install
	$(BIN)/ruff format topos_core topos_lsp topos_web tests examples benchmarks docs/generate.py
	$(BIN)/ruff check --fix topos_core topos_lsp topos_web tests examples benchmarks docs/generate.py

check: install
	$(BIN)/ruff format --check topos_core topos_lsp topos_web tests examples benchmarks docs/generate.py
	$(BIN)/ruff check topos_core topos_lsp topos_web tests examples benchmarks docs/generate.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

test: install
	$(BIN)/python -m pytest -n 2

golden: install
	TOPOS_GOLDEN=write $(BIN)/python -m pytest tests/golden
	$(BIN)/python docs/generate.py

conformance: install
	$(BIN)/python -m pytest -n 2 -m conformance -rP --timeout 3600

bench: install
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.first_call

page:
	cd web && npm ci && npm run check && npm test && npm run build

# Takes docs/images/viewer-*.png again: needs Chromium, torch and transformers.
pictures: install
	$(BIN)/python -m benchmarks.viewer.pictures

# Packages the VS Code extension, and looks at the server with real editors. VS Code itself is built once, from npm, into CODE_SERVER.
CODE_SERVER ?= .code-server
editors: install $(CODE_SERVER)/built
	cd editors/vscode && npm ci && npm run vsix
	TOPOS_CODE_SERVER=$(abspath $(CODE_SERVER)) $(BIN)/python -m pytest tests/lsp/test_neovim.py tests/lsp/test_emacs.py tests/lsp/test_vscode.py -m 'conformance or not conformance'
$(CODE_SERVER)/built:
	editors/vscode/code-server.sh $(CODE_SERVER)
	@touch $@
