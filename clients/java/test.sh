#!/usr/bin/env bash
# Builds the jar, and tests it with the SDK that it is built with, the newest and one without
# TextMapGetter.getAll, two agents, two versions of Spring Boot, Quarkus, and, if there is a JDK 21
# or newer, virtual threads.
set -euo pipefail
cd "$(dirname "$0")"
newest=1.68.0
oldest=1.49.0 # of Spring Boot 3
old_agent=2.22.0

maven() {
  mvn --batch-mode --no-transfer-progress -Dstyle.color=never "$@" |
    grep -E '^\[(WARN|ERROR)|Tests run:|^ +(at|[A-Z][^ ]*:) '
}

property() { sed -n "s|.*<$1>\(.*\)</.*|\1|p" pom.xml; }

maven clean verify "$@"
maven surefire:test@default-test -Dopentelemetry.version=$newest
maven surefire:test@jar -Dopentelemetry.version=$newest -Dtest='JarIT#autoconfiguration*'

maven surefire:test@default-test -Dopentelemetry.version=$oldest -Dtest='XTraceId*,Life*#rows'
maven surefire:test@jar -Dopentelemetry.version=$oldest -Dno.random.flag=true \
  -Dtest='JarIT#autoconfiguration+autoconfigurationWithAMisspeltSetting'
maven dependency:copy@agent surefire:test@jar -Dagent.version=$old_agent -Dno.random.flag=true \
  -Dtest='JarIT#agent'
echo "the Java client was tested with the SDKs $oldest, $(property opentelemetry.version) and" \
  "$newest, and the agents $old_agent and $(property agent.version)"

boot() { # boot VERSION [OPTION...]
  local path=target/classpath-$1 version=$1
  shift
  mvn --batch-mode --quiet -f boot/pom.xml compile dependency:build-classpath \
    -Dboot.version="$version" -Dmdep.outputFile="$path" "$@"
  maven surefire:test@jar -Dtest='JarIT#springBoot' -Dboot="boot/target/classes:$(<boot/"$path")" \
    -Dno.random.flag=$([[ $version == 3.* ]] && echo true || echo false)
  echo "the Java client was tested with Spring Boot $version"
}
boot "$(property boot3.version)"
boot "$(property boot4.version)" -Pboot4

mvn --batch-mode --quiet install:install-file -Dfile="$(echo target/traceflake-otel-?.?.?.jar)" -Dpackaging=jar \
  -DgroupId=io.github.traceflake -DartifactId=traceflake-otel -Dversion=test
mvn --batch-mode --quiet -f quarkus/pom.xml package
maven surefire:test@jar -Dtest='JarIT#quarkus' -Dno.random.flag=true \
  -Dquarkus=quarkus/target/quarkus-app/quarkus-run.jar
echo "the Java client was tested with Quarkus" \
  "$(sed -n 's|.*<quarkus.version>\(.*\)</.*|\1|p' quarkus/pom.xml)"

for home in "${JAVA_HOME_25_X64:-}" "${JAVA_HOME_21_X64:-}" /usr/lib/jvm/*; do
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release" 2>/dev/null || true)
  if ((${version:-0} >= 21)); then
    maven surefire:test@default-test -Djvm="$home/bin/java" -Dtest='TraceflakeIdGeneratorTest'
    echo "the Java client was tested with virtual threads of JDK $version"
    exit
  fi
done
echo "virtual threads were not tested:" \
  "that needs a JDK 21 or newer in JAVA_HOME_21_X64 or /usr/lib/jvm"
