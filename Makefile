# MaxClaw's entry points. Needs make and Python >= 3.11; everything else goes into .venv.

export UV_PYTHON_DOWNLOADS := never
SHELL := /bin/sh
VENV := .venv/bin
RECENT := 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$name -c $(RECENT) 2>/dev/null; then echo $$name; break; fi; done)

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test suite bench lint format types layers lock messages

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv, install the locked packages, compile translations
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or newer was found; install one, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) maxclaw/environment_setup.py

setup-dev: # The same with what checking needs
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or newer was found; install one, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) maxclaw/environment_setup.py --dev

run: setup ## Start MaxClaw (more: make run ARGS="--port 9000"; see manage.py serve --help)
	@exec $(VENV)/python manage.py serve $(ARGS)

test: setup-dev lint layers ## Check everything: lint, layers, types and the whole test suite
	@$(MAKE) --no-print-directory --jobs=2 types suite

suite: setup-dev # The tests alone; `test` checks types beside them
	$(VENV)/pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

bench: setup-dev ## Measure what turns cost (more: make bench NAME=locomo ARGS="--quick --data DIR")
	$(VENV)/python benchmarks/$(or $(NAME),turns).py $(ARGS)

lint: setup-dev ## Check style and formatting
	$(VENV)/ruff check
	$(VENV)/ruff format --check

format: setup-dev ## Format the code
	$(VENV)/ruff format
	$(VENV)/ruff check --fix

types: setup-dev ## Check types
	$(VENV)/mypy .

layers: setup-dev ## Check that each app imports only from lines below its own
	$(VENV)/lint-imports

lock: ## Pin the newest versions that requirements*.in allow, with hashes (needs setup)
	$(VENV)/uv pip compile --quiet --generate-hashes --python-version 3.11 --universal requirements-uv.in -o requirements-uv.txt
	$(VENV)/uv pip compile --quiet --generate-hashes --python-version 3.11 --universal requirements.in -o requirements.txt
	$(VENV)/uv pip compile --quiet --generate-hashes --python-version 3.11 --universal -c requirements.txt requirements-dev.in -o requirements-dev.txt

messages: setup-dev ## Collect translatable text into locale/*/LC_MESSAGES/*.po
	$(VENV)/python -m maxclaw.message_catalogues
