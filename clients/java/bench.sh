#!/usr/bin/env bash
# Measures the cost of IDs and spans with JMH, in about two minutes.
set -euo pipefail
cd "$(dirname "$0")"
mvn --batch-mode --quiet test-compile
mvn --batch-mode --quiet dependency:build-classpath -Dmdep.outputFile=target/classpath \
  -Dopentelemetry.version=1.68.0
java -cp "target/classes:target/test-classes:$(<target/classpath)" \
  org.openjdk.jmh.Main IdBenchmark "$@" | grep -E 'Benchmark|p0\.50'
