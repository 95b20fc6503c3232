# Logberg: every task of the house. `make` alone lists them.
# Set-up happens by itself: each task makes the .venv it needs, and only what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Only what a lock file lists, with the hashes that it lists. Nothing else is fetched to build a package.
INSTALL := $(PIP) install --require-hashes --no-build-isolation --use-pep517
# The versions stay that still fit pyproject.toml; `make lock UPGRADE=--upgrade` takes the newest.
LOCK = $(BIN)/python -m uv --quiet --no-config pip compile --universal --generate-hashes --no-annotate --custom-compile-command "make lock" $(UPGRADE)
UPGRADE ?=
PACKAGES := logberg audit controller broker_agent coordination kafka_listener snapshots ledger metadata quorum runtime
# The commit draws the seeds, so a run can be repeated and every commit tries others.
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo 0)
N ?= 1000
RUNS ?= 20
JOBS ?= 2
MINUTES ?= 60
EVERY ?= 3
PARTITIONS ?= 1000000
STATES ?= 100000
LOGS ?= 500
EXAMPLES ?= 50
SECONDS ?= 60
# Which stateful test sees which broken rule: it takes minutes, and runs with the mutants.
CAUGHT := tests/properties/test_caught.py
FIRST ?= $(shell printf '%d' 0x$$(git rev-parse HEAD 2>/dev/null | cut -c1-7 || echo 1))

.DEFAULT_GOAL := help
.PHONY: help demo test unit check format seeds seed cases contention mutants crashpoints same-answers flips kills voter-runs model oracle witness kafka kafka-delete-topic kafka-fuzz kafka-tests openapi fuzz attacks conformance wheel release verify-release advisories kit image image-build evidence docs bench bench-audit bench-console bench-peers bench-kafka lateness large growth soak lock clean

help: ## List the tasks
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

demo: $(VENV)/.ready-run ## Set up, then show the whole story with real processes (first run: minutes)
	@$(BIN)/logberg demo

# Whole files on two workers, those that take longest first (tests/conftest.py).
TWO := -n 2 --dist loadfile --no-loadscope-reorder
# Real processes mostly wait, so two tests of tests/process run at a time, but nothing that computes beside
# them. Spark runs behind it, so that its JVMs are there for its own tests only.
test: check $(VENV)/.ready-dev ## Set up, then run all that a change must pass (about 25 minutes on 2 cores)
	LOGBERG_SEED_BASE=$(COMMIT) $(BIN)/python -m pytest -q $(TWO) tests --ignore tests/process --ignore tests/spark --ignore $(CAUGHT)
	$(BIN)/python -m pytest -q $(TWO) tests/process
	$(BIN)/python -m pytest -q $(TWO) tests/spark

# Tests that need no process, no network and no long simulation.
UNIT := tests/unit tests/checkers tests/conformance tests/golden tests/properties tests/reference tests/scenarios tests/verifier tests/test_conftest.py
unit: $(VENV)/.ready-dev ## The quick tests, for every save of a file (under 2 minutes on 2 cores)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not slow' $(UNIT)

check: $(VENV)/.ready-dev ## Format, lint, types, import floors, spelling (under a minute)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/ci.yml

format: $(VENV)/.ready-dev ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

seeds: $(VENV)/.ready-dev ## Simulate N clusters under faults: make seeds N=1000 [FIRST=1] [KIND=drawn]
	$(BIN)/python -m tests.simulation.many --first $(FIRST) --count $(N) --jobs $(JOBS) $(if $(KIND),--kind $(KIND)) $(if $(RECORD),--record $(RECORD))

seed: $(VENV)/.ready-dev ## Run one seed again, with its trace: make seed SEED=17 [KIND=drawn]
	$(BIN)/python -m tests.simulation.seeds --first $(SEED) --count 1 --trace $(if $(KIND),--kind $(KIND)) $(if $(OPERATIONS),--operations $(OPERATIONS)) $(if $(FAULTS_S),--faults-s $(FAULTS_S))

cases: $(VENV)/.ready-dev ## Run the cases of coordination under simulated faults: make cases N=20 [FIRST=1] [CASE=E3]
	$(BIN)/python -m tests.simulation.cases.runs --first $(FIRST) --count $(N) $(if $(CASE),--only $(CASE))

contention: $(VENV)/.ready-dev ## Let processes contend for a lock and an election, 200 rounds of faults
	$(BIN)/python -m tests.process.contention --rounds 200

mutants: $(VENV)/.ready-dev ## Break the build in each known way and show which seed or test sees it
	$(BIN)/python -m tests.mutants --jobs $(JOBS)
	$(BIN)/python -m pytest -q $(CAUGHT)

crashpoints: $(VENV)/.ready-dev ## Kill a controller at the changes of its real files, and cut its power: EVERY=3
	$(BIN)/python -m tests.crashpoints --every $(EVERY) --jobs $(JOBS)
	$(BIN)/python -m tests.crashpoints.processes --points 60
	$(BIN)/python -m tests.power --cuts 20

same-answers: $(VENV)/.ready-dev ## Compare the audit's two engines, every job and the states at 50 offsets: HISTORIES=20 [FIRST=1]
	LOGBERG_HISTORIES=$(or $(HISTORIES),20) LOGBERG_FIRST_HISTORY=$(FIRST) $(BIN)/python -m pytest -q tests/spark/test_many_histories.py

flips: $(VENV)/.ready-dev ## Flip a million bits of journal, vote, ledger and checkpoint: none unnoticed
	$(BIN)/python -m tests.flips --count 1050000

kills: $(VENV)/.ready-dev ## Kill real leaders under load: make kills N=500; nothing acknowledged is missing
	$(BIN)/python -m tests.kills --count $(N)

voter-runs: $(VENV)/.ready-dev ## Change the voters of real clusters under load and kills: make voter-runs RUNS=20; nothing acknowledged is missing
	$(BIN)/python -m tests.voter_runs --count $(RUNS)

model: $(VENV)/.ready-dev ## Check the specifications of the guard and of the leases (TLA+; needs Java 11 or later)
	$(BIN)/python -m tests.model

oracle: $(VENV)/.ready-dev ## Compare partition changes, ACL decisions and replay with Kafka's own classes (needs a JDK 17 and Maven): STATES=1000000 [SEED=1] [LOGS=500]
	$(BIN)/python -m tests.oracles.partition_changes --states $(STATES) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep)
	$(BIN)/python -m tests.oracles.acls --states $(STATES) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep)
	$(BIN)/python -m tests.oracles.records $(if $(KEEP),--keep)
	$(BIN)/python -m tests.oracles.kio
	$(BIN)/python -m tests.oracles.replay --generated $(LOGS) $(if $(SEED),--first $(SEED)) $(if $(KEEP),--keep)
	$(BIN)/python -m tests.oracles.properties --states $(STATES) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep)

witness: $(VENV)/.ready-dev ## Let litewitness (Go) cosign our log, and our witness answer its test cases (first run builds it)
	LOGBERG_WITNESS=1 $(BIN)/python -m pytest -q tests/oracles/witness

kafka: $(VENV)/.ready-dev ## Run Apache Kafka's brokers, clients and own tests on our controllers (needs a JDK 17 and Maven): TESTS=tests/kafka/test_broker_process.py
	LOGBERG_KAFKA=1 $(BIN)/python -m pytest -q $(or $(TESTS),tests/kafka)

kafka-delete-topic: $(VENV)/.ready-dev ## Run Kafka's DeleteTopicTest on our controllers, as CI does (two minutes; needs a JDK 17 and Maven)
	LOGBERG_KAFKA=1 $(BIN)/python -m pytest -q tests/kafka/kafkas_tests -k delete_topic

kafka-fuzz: $(VENV)/.ready-dev ## Send damaged frames of every served Kafka request to our listeners: CONVERSATIONS=2000
	LOGBERG_EXAMPLES=$(or $(CONVERSATIONS),2000) $(BIN)/python -m pytest -q tests/unit/kafka_listener/test_bad_input.py

kafka-tests: $(VENV)/.ready-dev ## Run Kafka's own test classes on our controllers and on KRaft, and write docs/kafka/kafkas-tests.md (hours): CLASSES="DeleteTopicTest …"
	$(BIN)/python -m tests.kafka.kafkas_tests $(addprefix --class ,$(CLASSES))

openapi: $(VENV)/.ready-dev ## Let schemathesis ask real controllers what their OpenAPI document allows: EXAMPLES=50
	$(BIN)/python -m tests.process.api_fuzzing --examples $(EXAMPLES)

fuzz: $(VENV)/.ready-fuzz ## Fuzz a parser of bytes from elsewhere, or each of them: make fuzz TARGET=records SECONDS=60
	$(BIN)/python -m tests.fuzz $(TARGET) --seconds $(SECONDS)

attacks: $(VENV)/.ready-dev ## Make the attacks that SECURITY.md lists, and say of each row whether it holds: ROWS="C4 A7"
	$(BIN)/python -m tests.attacks $(ROWS)

conformance: $(VENV)/.ready-dev ## Run coordination's suite on every backend and write docs/coordination/matrix.md (needs Go, a JDK 17 and Maven): STORES=etcd,consul
	$(BIN)/python -m tests.coordination.conformance $(if $(STORES),--stores $(STORES))

wheel: $(VENV)/.ready-dev ## Build the commit's wheel twice, in different folders, and compare the bytes: OUT=dist
	$(BIN)/python -m releasing wheel $(if $(OUT),--out $(OUT))

release: $(VENV)/.ready-dev ## Make the commit's release: wheel, bill of materials, lock files, signature: KEY=FILE [OUT=dist]
	$(BIN)/python -m releasing release --key $(KEY) $(if $(OUT),--out $(OUT)) $(if $(UNCHECKED),--unchecked)

verify-release: $(VENV)/.ready-dev ## Check a release's signature and files: FOLDER=dist/logberg-…
	$(BIN)/python -m releasing verify $(FOLDER)

advisories: $(VENV)/.ready-dev ## Look for known vulnerabilities of all locked packages (two minutes at most; needs a network): REQUIRED=1 fails if it can't be checked
	$(BIN)/python -m releasing advisories $(if $(REQUIRED),--required)

kit: $(VENV)/.ready-dev ## Prove alerts, dashboard, Helm chart and an archive in object storage with real parts (needs Go; installs Debian's prometheus): about ten minutes
	LOGBERG_KIT=1 $(BIN)/python -m pytest -q tests/deploy

image: $(VENV)/.ready-dev ## Build the container image and let its own root tree make a change (root; installs Debian's mmdebstrap, buildah, crun, runc)
	LOGBERG_IMAGE=1 $(BIN)/python -m pytest -q -s tests/deploy/test_image.py

image-build: $(VENV)/.ready-dev ## Build the container image: OUT=FOLDER [SUITE=bookworm]
	deploy/container/build.sh $(OUT)

evidence: $(VENV)/.ready-dev ## Run and record all that docs/safety.md tells of: make evidence MINUTES=60
	$(BIN)/python -m tests.evidence.full --minutes $(MINUTES) --jobs $(JOBS) $(if $(RECORD),--record $(RECORD))
	$(BIN)/python -m tests.evidence.summarise $(RECORD)

docs: $(VENV)/.ready-dev ## Write again the parts of docs/ that come from the code
	$(BIN)/python -m tests.docs.generate
	$(BIN)/python -m metadata.records.table > docs/format/records.md
	$(BIN)/python -m tests.docs.degraded

bench: $(VENV)/.ready-dev ## Measure, each figure beside this machine's floor
	$(BIN)/python -m benchmarks

bench-audit: $(VENV)/.ready-dev ## Take 1,000,000 records into tables: jobs, tasks, files, seconds by step; exit 1 when a bound is missed: OLD=1 measures the old pipeline too
	$(BIN)/python -m benchmarks.audit.pipeline $(if $(OLD),--old) $(ARGUMENTS)

bench-console: $(VENV)/.ready-dev ## Index 1,000,000 records and ask the console; exit 1 when a bound is missed: RECORDS=1000000 [SLOWER=1.9]
	$(BIN)/python -m benchmarks.audit.console --records $(or $(RECORDS),1000000) $(if $(SLOWER),--slower $(SLOWER))

bench-peers: $(VENV)/.ready-dev ## The same load on Logberg, etcd, ZooKeeper and KRaft, in turns; exit 1 when a ratio is missed (needs Go, a JDK 17 and Maven)
	$(BIN)/python -m benchmarks.peers

bench-kafka: $(VENV)/.ready-dev ## Kill our leader every 20 s under Kafka's clients, stock KRaft beside it; 2,000 partitions; exit 1 when something is lost: KAFKA_MINUTES=10
	$(BIN)/python -m benchmarks.kafka.failover --fault kill,pause,cut,disk --minutes $(or $(KAFKA_MINUTES),10)
	$(BIN)/python -m benchmarks.kafka.partitions

lateness: $(VENV)/.ready-dev ## Drive every route on 1,000,000 partitions; exit 1 when the loop is held: PARTITIONS=1000000
	$(BIN)/python -m benchmarks.lateness --partitions $(PARTITIONS)

large: $(VENV)/.ready-dev ## Lose a broker with 100,000 replicas, reassign 50,000 partitions, delete 10,000 topics; who waits meanwhile, and what creation costs
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.creation

growth: $(VENV)/.ready-dev ## Hold the sizing table to four weeks of simulated life; the quick tests have two
	LOGBERG_WEEKS=1 $(BIN)/python -m pytest -q tests/unit/audit/questions/test_growth_prediction.py

soak: $(VENV)/.ready-dev ## Ten minutes of load on real processes; counts elections, fencings and stalls
	$(BIN)/python -m benchmarks.soak

# The larger file is resolved first and binds the others: a package has one version in all of them.
lock: $(VENV)/.ready-dev ## Write requirements/*.lock after a change of dependencies; UPGRADE=--upgrade renews all
	$(LOCK) --extra audit --extra zookeeper --extra cassandra --extra tooz --extra otel --group dev pyproject.toml --output-file requirements/dev.lock
	$(LOCK) --constraints requirements/dev.lock pyproject.toml --output-file requirements/run.lock
	$(LOCK) --constraints requirements/dev.lock --group build --output-file requirements/build.lock
	$(LOCK) --constraints requirements/dev.lock --extra audit --extra zookeeper --extra cassandra --extra tooz --extra otel pyproject.toml --output-file requirements/extras.lock
	$(LOCK) --group fuzz --output-file requirements/fuzz.lock
	$(LOCK) --group kafka-clients --output-file requirements/kafka-clients.lock

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.ready-venv:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "Logberg needs Python 3.11 or later, and '$(PYTHON)' is not here. Install it (Debian: apt install python3 python3-venv), or say which: make PYTHON=/path/to/python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Logberg needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Say which to use: make PYTHON=/path/to/python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python has no venv module. Install it (Debian: apt install python3-venv), then run make again." >&2; exit 1; }
	@echo "[1/2] a virtual environment in $(VENV) (once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# A pipe hides that pip failed, so pip leaves a file when it succeeded. Make deletes no `.ready` file of an
# interrupted set-up: each is written last.
$(VENV)/.ready-run: $(VENV)/.ready-venv pyproject.toml requirements/build.lock requirements/run.lock
	@echo "[2/2] what Logberg runs on (once; about a minute)"
	@rm -f $@ $@.installed
	@$(INSTALL) --quiet -r requirements/build.lock
	@{ $(INSTALL) --progress-bar off -r requirements/run.lock && touch $@.installed; } \
	  | grep --line-buffered -E '^Collecting' | sed -u 's/ (from.*//; s/^/      /'
	@test -e $@.installed || { echo "The installation failed; its last lines above say why." >&2; exit 1; }
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@mv $@.installed $@

$(VENV)/.ready-dev: $(VENV)/.ready-run requirements/dev.lock
	@echo "[+] the tools that check and test it, and Spark (once; minutes: half a gigabyte)"
	@rm -f $@
	@$(INSTALL) --quiet -r requirements/dev.lock
	@touch $@

# atheris has wheels for some Pythons and machines only. Elsewhere Hypothesis draws the inputs.
$(VENV)/.ready-fuzz: $(VENV)/.ready-dev requirements/fuzz.lock
	@$(INSTALL) --quiet --only-binary :all: -r requirements/fuzz.lock \
	  || echo "atheris has no wheel for this Python or machine, or could not be fetched: Hypothesis draws the inputs"
	@touch $@
