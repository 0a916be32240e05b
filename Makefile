# Each verb makes what it needs: a virtual environment in .venv here, and Pulsar's jars in the cache folder.
# Needed beforehand: Python 3.11 or newer, a JDK (17 or newer) and Maven.
SHELL := /bin/sh
PYTHON ?= $(shell sh tools/find-python.sh)
BIN := .venv/bin
TEST_ARGS ?=
DRILL_ARGS ?=
GROWTH_ARGS ?=
ROUNDS ?= 5
BENCH_ARGS ?=
MUTANTS ?=
MATRIX_ARGS ?=
IMAGE ?=
# Two cores: tests wait for brokers and JVMs a part of their time. Each worker has a broker and a Spark of its own, some
# 3 GB together.
TEST_WORKERS ?= 3
# A worker that dies ends the run: with a new one in its place, loadfile may wait for ever (seen with pytest-xdist 3.8).
SIDE_BY_SIDE := -n $(TEST_WORKERS) --max-worker-restart=0
COVERAGE_MINIMUM ?= 90
JAR := statestore/jars/eos-bk.jar

VENV_GROUPS := tests,lint,docs

.PHONY: help demo check test test-report test-containers screenshot models mutants matrix crash situations soak soak-growth fuzz drills cluster-drills jar java venv parts lint bench-sink bench-source bench-state bench-formats bench docs wheel clean proto format constraints

help: ## show these verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | while IFS="$$(printf '\t')" read -r verb text; do printf '  make %-14s %s\n' "$$verb" "$$text"; done

demo: $(JAR) ## count a year of flights from topic to topic, kill the driver on the way, check what came out
	@sh tools/bootstrap.sh "$(PYTHON)" tests,examples
	@$(BIN)/eos local fetch
	$(BIN)/python examples/demo.py

check: lint ## lint, and the tests that need no broker, no Spark and no Java: before each commit, under two minutes
	$(BIN)/python -m pytest -q -m "not jvm and not large" --hypothesis-profile=check $(SIDE_BY_SIDE) tests/unit tests/models tests/property tests/fuzz $(TEST_ARGS)

test: $(JAR) ## unit, property, contract and integration tests, and the quick ones of the jar, with the branch coverage of eos and statestore
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -m "not crash and not soak and not bench" --hypothesis-profile=ci $(SIDE_BY_SIDE) --dist loadfile --no-loadscope-reorder --cov=eos --cov=statestore --cov-branch --cov-report=term --cov-fail-under=$(COVERAGE_MINIMUM) $(TEST_ARGS)

test-report: ## look at the report of a drill in Chromium: on a phone, on a desk, on paper, without a network
	@sh tools/need-chromium.sh
	@sh tools/bootstrap.sh "$(PYTHON)" report-tests
	$(BIN)/python -m pytest -m browser tests/browser $(TEST_ARGS)

test-containers: ## start Pulsar in containers: of an image that is built here with podman, or IMAGE=apachepulsar/pulsar:4.2.4
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	TEST_ARGS="$(TEST_ARGS)" sh tools/test_containers.sh "$(IMAGE)"

screenshot: ## take docs/pictures/drill-report.png in Chromium, of the report that `make drills` wrote
	$(PYTHON) tools/take_screenshot.py build/drills/report.html

models: ## explore the models of the commit protocol and of bk://'s names in larger worlds, and more examples: some minutes
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	$(BIN)/python -m tests.models
	$(BIN)/python -m tests.models --large
	$(BIN)/python -m pytest --hypothesis-profile=deep tests/property

mutants: ## change the code of commit, delivery and protocol in small ways, and list what no test notices: an hour or two
	@sh tools/bootstrap.sh "$(PYTHON)" mutants
	nice $(BIN)/python -m mutmut run --max-children $(TEST_WORKERS) $(MUTANTS)
	$(BIN)/python -m mutmut results

matrix: $(JAR) ## try each Python from 3.11 to 3.14 with each Spark from 3.5 to 4.3, as far as they are here, and kill queries on three versions of Pulsar: hours
	@sh tools/bootstrap.sh "$(PYTHON)" tests,connect
	@$(BIN)/eos local fetch
	$(BIN)/python tools/matrix.py --pulsar 4.0.0 4.2.4 5.0.0-M1 $(MATRIX_ARGS)

crash: $(JAR) ## kill a process at each step of the protocol, and of a rescaling or bootstrap, and look for what is lost or doubled
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -v -m crash $(SIDE_BY_SIDE) tests $(TEST_ARGS)

situations: ## write anew what each command of eos prints, by the situation of a sink
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	EOS_WRITE_SITUATIONS=1 $(BIN)/python -m pytest -q tests/integration/situations $(TEST_ARGS)

soak: $(JAR) ## kill Spark drivers with state on bk:// again and again, and what else takes long: some half an hour
	@sh tools/bootstrap.sh "$(PYTHON)" tests,connect
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -m soak -s tests/soak tests/integration tests/contract $(TEST_ARGS)

soak-growth: $(JAR) ## run micro-batches for two hours, and see whether memory, threads, sockets, heaps or the control log grow
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m tests.soak.growth $(GROWTH_ARGS)

fuzz: ## damage entries and values at random for half an hour, and hold what is read against other readers
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	$(BIN)/python -m tests.fuzz.run --minutes 30 $(FUZZ_ARGS)

drills: $(JAR) ## break everything a job stands on, 150 times, and account for all rows: up to an hour; build/drills/report.html
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	@mkdir -p build/drills
	@rm -f build/drills/journal.jsonl build/drills/driver.log
	$(BIN)/statestore drill --end-to-end --minutes 55 --report build/drills $(DRILL_ARGS)

cluster-drills: $(JAR) ## the same on a Spark master and two workers, time-outs of 6 s: brokers, bookies, executors, nodes, topics and each frame of a commit; some half an hour; build/cluster-drills/report.html
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	@mkdir -p build/cluster-drills
	@rm -f build/cluster-drills/journal.jsonl build/cluster-drills/driver.log
	$(BIN)/python -m pytest -v tests/integration/test_standalone.py
	$(BIN)/statestore drill --standalone --rounds $(ROUNDS) --report build/cluster-drills $(DRILL_ARGS)

jar: $(JAR) ## build the jar of the bk:// file system, if its sources are newer

$(JAR): statestore/java/pom.xml $(shell find statestore/java/src/main -type f)
	cd statestore/java && mvn -B -q package -Dmaven.test.skip=true
	@mkdir -p $(@D)
	cp statestore/java/target/eos-bk.jar $@.new # moved into place: a JVM that has the old jar open keeps it whole
	mv $@.new $@

java: ## all tests of the bk:// file system, on ZooKeepers and bookies of their own, and its jar: some minutes
	cd statestore/java && mvn -B --no-transfer-progress verify

venv: ## .venv, with what lint and the tests need
	@sh tools/bootstrap.sh "$(PYTHON)" $(VENV_GROUPS)

parts: venv $(JAR) ## what the tests stand on: the jar of the bk:// file system, and Pulsar's jars
	@$(BIN)/eos local fetch

lint: venv ## ruff, mypy, the import layers, names and style, whether what is generated is fresh, dead links in docs/, and whether the site builds and loads nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m eos.pulsar.protocol.diagram --check
	$(BIN)/python tools/generate_wire.py --check
	$(BIN)/python tools/check_layout.py
	$(BIN)/python tools/check_names.py
	$(BIN)/python tools/check_style.py
	$(BIN)/python tools/check_pins.py
	$(BIN)/python tools/count_words.py --check
	$(BIN)/python tools/draw_packages.py --check
	$(BIN)/python tools/draw_options.py --check
	$(BIN)/python tools/draw_pictures.py --check
	$(BIN)/python tools/check_links.py
	$(BIN)/python tools/build_site.py
	$(BIN)/python tools/check_links.py --site build/site

bench-sink: ## rows a second, side by side with the official client
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -q -m bench tests/integration/test_benchmark_smoke.py
	$(BIN)/python -m tests.benchmarks.sink $(BENCH_ARGS)

bench-source: ## CPU and time of reading a topic in Spark, side by side with the official clients
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -q -m bench tests/integration/source/test_bench_source.py
	$(BIN)/python -m tests.benchmarks.source $(BENCH_ARGS)

bench-state: $(JAR) ## commits of Spark's state on bk://, side by side with file:// and an HDFS
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -q -m bench tests/integration/statestore/test_bench_state.py
	$(BIN)/python -m tests.benchmarks.state $(BENCH_ARGS)

bench-formats: ## JSON, AVRO, protobuf and raw values of the sink, side by side with the official client
	@sh tools/bootstrap.sh "$(PYTHON)" tests
	@$(BIN)/eos local fetch
	$(BIN)/python -m pytest -q -m bench tests/integration/sinks/test_bench_formats.py
	$(BIN)/python -m tests.benchmarks.formats $(BENCH_ARGS)

bench: bench-sink bench-source bench-state bench-formats ## all benchmarks

docs: ## draw again what docs/ draws from code, and build the site with the API reference: build/site/index.html
	@sh tools/bootstrap.sh "$(PYTHON)" tests,docs
	$(BIN)/python -m eos.pulsar.protocol.diagram
	$(BIN)/python tools/draw_packages.py
	$(BIN)/python tools/draw_options.py
	$(BIN)/python tools/draw_pictures.py
	$(BIN)/python tools/build_site.py
	$(BIN)/python tools/check_links.py --site build/site

wheel: ## build wheel and sdist twice, compare, check and try them: dist/
	@sh tools/bootstrap.sh "$(PYTHON)" tests,release
	@sh tools/build_wheel.sh

proto: ## generate the protobuf module again from eos/pulsar/wire/pulsar.proto
	@sh tools/bootstrap.sh "$(PYTHON)" tests,lint
	$(BIN)/python tools/generate_wire.py

format: ## let ruff put the code in order
	@sh tools/bootstrap.sh "$(PYTHON)" tests,lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: ## write requirements/constraints.txt from what .venv holds
	@sh tools/bootstrap.sh "$(PYTHON)" report-tests,connect,lint,examples,docs,release
	@{ head -n 1 requirements/constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > requirements/constraints.new
	@mv requirements/constraints.new requirements/constraints.txt

clean: ## remove what the verbs made here; the cache folder stays
	@if [ -x $(BIN)/eos ]; then $(BIN)/eos local down --all || true; fi
	rm -rf .venv mutants .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov build dist statestore/jars statestore/java/target spark-warehouse metastore_db derby.log
	find eos statestore tests examples tools -name __pycache__ -type d -prune -exec rm -rf {} +
