#!/usr/bin/env bash
# Builds the jar with the oldest supported SDK, and tests it with this SDK, the newest, the agent,
# and, if there is a JDK 21 or newer, virtual threads.
set -euo pipefail
cd "$(dirname "$0")"
newest=1.68.0

maven() {
  mvn --batch-mode --no-transfer-progress -Dstyle.color=never "$@" |
    grep -E '^\[(WARN|ERROR)|Tests run:|^ +(at|[A-Z][^ ]*:) '
}

maven clean verify "$@"
maven surefire:test@default-test -Dopentelemetry.version=$newest
maven surefire:test@jar -Dopentelemetry.version=$newest -Dtest='JarIT#autoconfiguration*'
oldest=$(sed -n 's|.*<opentelemetry.version>\(.*\)</.*|\1|p' pom.xml)
echo "the Java client was tested with the SDKs $oldest and $newest"

for home in "${JAVA_HOME_25_X64:-}" "${JAVA_HOME_21_X64:-}" /usr/lib/jvm/*; do
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release" 2>/dev/null || true)
  if ((${version:-0} >= 21)); then
    maven surefire:test@default-test -Djvm="$home/bin/java"
    echo "the Java client was tested with virtual threads of JDK $version"
    exit
  fi
done
echo "virtual threads were not tested:" \
  "that needs a JDK 21 or newer in JAVA_HOME_21_X64 or /usr/lib/jvm"
