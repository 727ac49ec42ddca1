# Each target sets up .venv by itself; `make help` lists them.
PYTHON ?= python3
MANAGE = $(PYTHON) manage.py
BIN = .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup audit check fmt test test-exhaustive test-postgresql test-races faults soak bench demo up

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install everything a developer needs into .venv
	@$(MANAGE) test --version

check: setup ## lint, format, types and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: setup ## look for known vulnerabilities of what is installed
	.ci/audit

fmt: setup ## format the code and mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: ## run the tests
	$(MANAGE) test

test-exhaustive: ## run them with all that tries again, at more places, what they prove: takes long
	ARENA_EXHAUSTIVE=1 $(MANAGE) test

test-postgresql: ## run the tests that touch the database on PostgreSQL
	ARENA_TEST_DATABASE=postgresql $(MANAGE) test

RACES = tests/integration tests/unit/tournament/store tests/unit/tournament/leaderboards \
  tests/unit/tournament/competitions/test_dispatching.py tests/unit/tournament/competitions/test_playing.py

test-races: ## run those of them on PostgreSQL where the databases differ most: claims, locks, plans, restarts
	ARENA_TEST_DATABASE=postgresql $(MANAGE) test -n 2 --dist loadgroup -m "not exhaustive" $(RACES)

faults: ## break a site in every way we know of, and see that nothing is lost
	$(MANAGE) test tests/faults

soak: ## the same at random, for thousands of matches: takes long
	ARENA_SOAK="$${ARENA_SOAK:-3000 160}" $(MANAGE) test tests/faults/test_soak.py

bench: setup ## measure the engine, the sandbox and the queue on this machine
	$(BIN)/arena bench engine
	$(BIN)/arena bench sandbox
	$(BIN)/arena bench formats
	$(MANAGE) bench-queue

demo: ## play a small cup on a temporary site
	$(MANAGE) demo

up: ## keep a site running here
	$(MANAGE) up
