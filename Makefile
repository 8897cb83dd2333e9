# The project's commands. Needed: Python >= 3.11 with venv, make; make installs everything else.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DIST := dist
# A package is a folder with a pyproject.toml: nothing lists them a second time.
PACKAGES := $(patsubst %/pyproject.toml,%,$(sort $(wildcard */pyproject.toml dev/*/pyproject.toml providers/*/pyproject.toml examples/*/pyproject.toml llamastack/*/pyproject.toml)))
SOURCES := $(wildcard $(PACKAGES:%=%/src)) dev/benchmarks dev/charts dev/dashboards dev/images dev/release examples/selector examples/selectors examples/kopf-provider examples/kopf-selector dev/lint requirements/build_wheels.py
TESTS := tests $(wildcard $(PACKAGES:%=%/tests))
empty :=
export MYPYPATH := $(subst $(empty) ,:,$(wildcard $(PACKAGES:%=%/src)) conformance/tests/plain_kopf tests dev requirements)

# Where Python may not keep what it compiled, pytest compiles every test file again in each of its processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-llamastack test test-all check test-unit test-integration test-oldest test-helm3 test-upstream test-pods transcript llamastack-releases hostile-packages test-faults test-operators test-kueue chaos predictions differential test-go test-ray lint behaviours accept-llamastack conformance mutations bench truth wheels crds manifests docs images test-images lock lock-debian clean engine-options simulate simulate-known test-conversion test-compatibility release test-release test-monitoring site

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 26

setup: $(STAMP) ## the virtual environment, from the lock

$(STAMP): requirements/dev.txt $(PACKAGES:%=%/pyproject.toml)
	@echo "setup: virtual environment and locked packages (some minutes when nothing is cached)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(PACKAGES:%=-e ./%)
	@touch $@

demo: setup ## the whole suite on this machine, until Ctrl-C
	@$(BIN)/kubefoundry-demo

demo-llamastack: setup ## two external providers from their sources to a llama-stack that answers; KEEP=1 leaves it up; PROVIDER=FOLDER:ID:API adds one; root
	@tests/pods/demo $(if $(KEEP),--keep) $(if $(PROVIDER),--provider "$(PROVIDER)")

test: setup ## static checks, unit, integration and upstream rungs, and pods where that can be
	@dev/devcluster/build > /dev/null
	@dev/devcluster/build helm4 > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m support.rungs test

test-all: setup ## as make test, with Go, measured lines, thorough tests, and all generated cases: two to three times as long
	@dev/devcluster/build > /dev/null
	@dev/devcluster/build helm4 > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m support.rungs all

check: setup ## static checks and unit tests, in a minute: before each commit
	@PYTHONPATH=tests $(BIN)/python -m support.rungs check

test-unit: setup ## what needs no Go, under 30 s
	@PYTHONPATH=tests $(BIN)/python -m support.rungs unit

test-integration: setup ## real processes against a real kube-apiserver
	@dev/devcluster/build > /dev/null
	@dev/devcluster/build helm4 > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m support.rungs integration

test-upstream: setup ## rendered objects against the real upstream CRDs of ../shared
	@dev/devcluster/build > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m support.rungs upstream

test-pods: setup ## a real llama-stack and a real llama-server in real pods; root
	tests/pods/run

llamastack-releases: setup ## writes docs/llamastack/releases.md: each release of llama-stack in a real pod; root; some minutes
	dev/nodes/inside
	@dev/devcluster/build > /dev/null
	PYTHONPATH=tests $(BIN)/python -m pods.images.releases
	PYTHONPATH=tests dev/nodes/inside $(BIN)/python -m pods.releases

hostile-packages: setup ## writes docs/llamastack/hostile-packages.md: each hostile package, its expected and its seen code; three minutes
	@PYTHONPATH=tests $(BIN)/python -m hostile_packages

test-operators: setup ## the real KubeRay operator on simulated nodes, and the real cert-manager; root; not part of `make test`
	tests/operators/run

test-kueue: setup ## models in queues of the real Kueue, on simulated nodes; root; not part of `make test`
	tests/kueue/run

chaos: setup ## a long run of random faults and edits, each time another (KUBEFOUNDRY_CHAOS_SEED repeats one)
	@dev/devcluster/build > /dev/null
	KUBEFOUNDRY_CHAOS_ROUNDS=$${KUBEFOUNDRY_CHAOS_ROUNDS:-60} KUBEFOUNDRY_CHAOS_SEED=$${KUBEFOUNDRY_CHAOS_SEED:-$$(date +%s)} \
	  KUBEFOUNDRY_NAME_EDITS=4 $(BIN)/python -m pytest -q tests/integration/faults/test_chaos.py \
	    tests/integration/selection/test_provider_name_sequences.py

test-faults: setup ## core, selector and each provider killed after each write for a model, their leaders killed and frozen; ten minutes
	@dev/devcluster/build > /dev/null
	KUBEFOUNDRY_FAULTS=all $(BIN)/python -m pytest -q -n 2 tests/integration/faults/test_crash_points.py \
	  tests/integration/faults/test_replicas.py

predictions: setup ## 1,000 random edits: what the command line predicts is what the controllers do
	@dev/devcluster/build > /dev/null
	KUBEFOUNDRY_PREDICTIONS_EDITS=$${KUBEFOUNDRY_PREDICTIONS_EDITS:-1000} \
	  KUBEFOUNDRY_PREDICTIONS_SEED=$${KUBEFOUNDRY_PREDICTIONS_SEED:-$$(date +%s)} \
	  $(BIN)/python -m pytest -q tests/integration/commands/test_predictions.py

simulate: setup ## random histories of all components in memory, with faults and a simulated clock; SEED=1 HISTORIES=1000
	@PYTHONPATH=tests $(BIN)/python -m simulation --seed $(or $(SEED),1) --histories $(or $(HISTORIES),1000)

simulate-known: setup ## puts each known defect back, and shows after how many histories it is found; HISTORIES=300 ONLY=T1,F1
	@PYTHONPATH=tests $(BIN)/python -m simulation --known --seed $(or $(SEED),1) \
	  --histories $(or $(HISTORIES),300) $(if $(ONLY),--only $(ONLY))

differential: setup ## random requests to the API server in memory and to a real one, with equal answers; SEED=1 SEQUENCES=10000
	@dev/devcluster/build > /dev/null
	PYTHONPATH=tests $(BIN)/python -m support.differential $(if $(SEED),--seed $(SEED)) $(if $(SEQUENCES),--sequences $(SEQUENCES))

test-oldest: setup ## the integration rung on Kubernetes 1.26, the oldest supported version
	@export KUBEBUILDER_ASSETS="$$(dirname "$$(dev/devcluster/build oldest)")" && dev/devcluster/build > /dev/null && \
	  PYTHONPATH=tests $(BIN)/python -m support.rungs integration

test-helm3: setup ## the tests of the charts with Helm 3; make test runs them with Helm 4
	@dev/devcluster/build > /dev/null
	@for helm in helm3 helm4; do dev/devcluster/build $$helm > /dev/null || exit; done
	KUBEFOUNDRY_TEST_HELM=helm3 $(BIN)/python -m pytest -q -n 2 tests/integration/charts

test-conversion: setup ## the conversion between versions of the API on 1,000 models under edits; some minutes
	@dev/devcluster/build > /dev/null
	KUBEFOUNDRY_CONVERSION_MODELS=1000 $(BIN)/python -m pytest -q -k edits tests/integration/upgrade/test_conversion.py

test-go: ## vet and tests of what is written in Go
	dev/devcluster/build test

test-ray: setup ## serveConfigV2 against Ray's own classes, in an environment of its own
	$(PYTHON) -m venv build/ray
	build/ray/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ray.txt
	build/ray/bin/python -m pip install --quiet --disable-pip-version-check --no-deps ./sdk ./providers/kuberay
	build/ray/bin/python -m pytest -p no:cacheprovider -c /dev/null --rootdir . --noconftest providers/kuberay/tests/test_ray_schema.py

lint: setup site ## ruff, mypy --strict on sources and tests, import boundaries, the word list, links of the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(SOURCES) $(TESTS)
	$(BIN)/python dev/lint/imports.py
	$(BIN)/python dev/lint/public_names.py
	$(BIN)/python dev/lint/lengths.py
	$(BIN)/python docs/words.py

behaviours: setup ## runs the tests of what is promised, and prints each promise with its outcome
	@dev/devcluster/build > /dev/null
	PYTHONPATH=tests $(BIN)/python -m behaviours

engine-options: setup ## the options of vLLM and SGLang, read from their wheels (460 MB), for the tests of provider direct
	PYTHONPATH=tests $(BIN)/python -m engines

accept-llamastack: setup ## each point of llamastack/acceptance.txt has a test that ran and passed; root
	@dev/devcluster/build > /dev/null
	PYTHONPATH=tests $(BIN)/python -m acceptance

conformance: setup ## the conformance kit on our providers and our selector, functions and processes
	@dev/devcluster/build > /dev/null
	@failed=0; for name in $(notdir $(wildcard providers/*)); do \
	  crd=dev/simulators/crds/$$name.yaml; [ -f $$crd ] || crd=; \
	  echo "provider $$name"; \
	  $(BIN)/kubefoundry-conformance provider --functions $$name --manifest manifests/providers/$$name.yaml \
	    $${crd:+--crd $$crd} --cases providers/$$name/cases.yaml || failed=1; \
	done; echo selector; \
	$(BIN)/kubefoundry-conformance selector --manifest manifests/provider-selector.yaml || failed=1; exit $$failed

test-compatibility: setup ## kit, core, providers and selector of this version and the one before, mixed; a quarter of an hour
	@dev/devcluster/build > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m compatibility

mutations: setup ## changes the code in random places, and shows the changes that no unit test sees; MUTANTS=100 SEED=1 ONLY=merge
	PYTHONPATH=tests $(BIN)/python -m support.mutations $(if $(MUTANTS),--mutants $(MUTANTS)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

bench: setup ## measures, and writes docs/benchmarks.md
	PYTHONPATH=dev $(BIN)/python -m benchmarks

truth: setup ## how long Ready is wrong after each kind of edit; writes docs/truth.md, ten minutes
	@dev/devcluster/build > /dev/null
	PYTHONPATH=dev $(BIN)/python -m benchmarks.truth --write

wheels: setup ## dist/: our packages and all that they need, for `pip install --no-index --find-links`; DIST=another folder
	@$(BIN)/python requirements/build_wheels.py "$(DIST)" $(PACKAGES)

crds: setup ## writes crds/, and the schemas that core reads, from the typed models
	$(BIN)/python -m kubefoundry_sdk._api.crd crds sdk/src/kubefoundry_sdk/_api
	$(BIN)/python -m kubefoundry_llamastack.api.crd crds/llamastack

manifests: setup ## writes manifests/core.yaml, install.yaml, images.txt and the dashboards, and charts/ from all manifests
	$(BIN)/python manifests/bundle.py
	PYTHONPATH=dev $(BIN)/python -m dashboards
	$(BIN)/python manifests/images.py
	PYTHONPATH=dev $(BIN)/python -m charts

docs: setup ## writes docs/crd-reference.md from crds/, docs/compatibility.md and docs/behaviours.md from providers, ../shared and tests
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/sdk.py
	$(BIN)/python docs/rules.py
	$(BIN)/python docs/steps.py
	$(BIN)/python docs/compatibility.py
	$(BIN)/python docs/cli_output.py
	$(BIN)/python docs/functions_schema.py
	$(BIN)/python docs/llamastack/errors.py
	PYTHONPATH=tests $(BIN)/python -m behaviours.document

site: setup build/site/venv/.installed ## dist/site/: the documentation as a site; fails if a link or an anchor leads nowhere
	$(BIN)/python docs/pages.py
	build/site/venv/bin/mkdocs --quiet build --clean --config-file docs/mkdocs.yml

build/site/venv/.installed: requirements/site.txt $(STAMP)
	$(BIN)/python -m venv build/site/venv
	build/site/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@touch $@

transcript: setup ## writes docs/cli-transcript.md: what each command of the command line prints, on good and bad days
	@dev/devcluster/build > /dev/null
	KUBEFOUNDRY_WRITE_TRANSCRIPT=1 $(BIN)/python -m pytest -q tests/integration/commands/test_transcript.py

images: setup ## dist/images/: an OCI layout of each component for amd64 and arm64; IMAGES="core selector" ARCHITECTURES=amd64
	PYTHONPATH=dev:requirements $(BIN)/python -m images build "$(DIST)/images" $(IMAGES) $(if $(ARCHITECTURES),--architecture $(ARCHITECTURES))

release: setup ## dist/release/: every file of a release; VERSION=0.2.0 IMAGES="core selector" ARCHITECTURES=amd64 SIGN_KEY=cosign.key
	PYTHONPATH=dev:requirements $(BIN)/python -m release "$(DIST)/release" $(if $(VERSION),--version "$(VERSION)") \
	  $(if $(IMAGES),--component $(IMAGES)) $(if $(ARCHITECTURES),--architecture $(ARCHITECTURES)) $(if $(SIGN_KEY),--sign-key "$(SIGN_KEY)")

test-release: setup ## a signed release of one image, and the commands of docs/release.md; builds cosign; some minutes
	@for program in cosign crane helm4; do dev/devcluster/build $$program > /dev/null || exit; done
	$(BIN)/python -m pytest -q tests/make_release

test-monitoring: setup ## alerts in promtool, and each panel's query in a real Prometheus that scrapes our processes; three minutes
	@dev/devcluster/build > /dev/null
	@for program in promtool prometheus; do dev/devcluster/build $$program > /dev/null || exit; done
	$(BIN)/python -m pytest -q tests/monitoring

test-images: setup ## the images of all components for both architectures, and each of them in a pod; root; some minutes
	KUBEFOUNDRY_TEST_IMAGES=all $(BIN)/python -m pytest -q tests/image/test_layouts.py
	KUBEFOUNDRY_TEST_IMAGES=all tests/pods/run tests/pods/test_components.py

lock-debian: setup ## writes requirements/debian.txt: the newest packages of Debian for the images
	PYTHONPATH=dev:requirements $(BIN)/python -m images lock

lock: setup ## writes requirements/*.txt
	PATH="$(abspath $(BIN)):$$PATH" requirements/lock

clean: ## forgets environment and builds (the control plane stays cached)
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
