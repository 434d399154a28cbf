# Everything runs in .venv, and every target that needs it sets it up first.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types soak bench screens clean

help: ## say what there is to make
	@sed -nE 's/^([a-z]+):[^#]*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install all that the rest needs; at once when it is all there
	@bash .ci/setup

demo: setup ## show the main job with the real direnv and real kernels
	@.venv/bin/envwatch demo

test: setup ## run every test, and say what the tests did not cover (ARGS= goes to pytest)
	@bash .ci/test $(ARGS)

lint: setup ## format, lint, imports, spelling, docstrings
	@bash .ci/lint

types: setup ## mypy and pyright, both strict
	.venv/bin/mypy
	.venv/bin/pyright

soak: setup ## the state machine for thousands of runs
	.venv/bin/python -m pytest -m soak --hypothesis-profile=soak --timeout=0 $(ARGS)

bench: setup ## measure what the hook and the sidecar cost (ARGS=--quick)
	@.venv/bin/python -m bench $(ARGS)

screens: setup ## print the README's screens, captured from the real thing
	@.venv/bin/python -m tests.support.screens

clean: ## remove what set-up and runs have left here
	rm -rf .venv .direnvs .hypothesis .coverage .coverage.* htmlcov dist build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache bench-report.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
