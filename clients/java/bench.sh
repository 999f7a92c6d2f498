#!/usr/bin/env bash
# Measures IDs and spans with JMH, as means of the CPU time, in about five minutes, and then the CPU
# time of the first trace ID of a process, as the median of eleven.
set -euo pipefail
cd "$(dirname "$0")"
mvn --batch-mode --quiet test-compile
mvn --batch-mode --quiet dependency:build-classpath -Dmdep.outputFile=target/classpath \
  -Dopentelemetry.version=1.68.0
run() { java -cp "target/classes:target/test-classes:$(<target/classpath)" "$@"; }

run org.openjdk.jmh.Main "${1:-IdBenchmark}" -prof io.github.traceflake.otel.CpuTime |
  grep -E 'Benchmark .*Score|:cpu .*avgt'
for first in SDK SecureRandom traceflake; do
  median=$(for _ in {1..11}; do run io.github.traceflake.otel.ColdStart $first; done | sort -n | sed -n 6p)
  echo "the first trace ID of a process, $first: $median µs"
done
