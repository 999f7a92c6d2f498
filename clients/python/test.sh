#!/usr/bin/env bash
# Checks the package for Python 3.10 to 3.14, and runs its tests with the newest and the oldest SDK.
set -euo pipefail
cd "$(dirname "$0")"
oldest=(opentelemetry-sdk==1.42.0 opentelemetry-distro==0.63b0)
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1

# environment DIR REQUIREMENTS...: a virtual environment with this package as others install it.
environment() {
  local dir=$1
  shift
  if [[ requirements.txt -nt $dir/made || test.sh -nt $dir/made ]]; then
    python3 -m venv --clear "$dir"
    "$dir/bin/pip" install "$@"
    touch "$dir/made"
  fi
  "$dir/bin/pip" install --no-deps --no-build-isolation --force-reinstall .
}

newest=../../.cache/python
environment $newest -r requirements.txt
[[ -x $newest/bin/uwsgi ]] || "$newest/bin/pip" install uwsgi==2.0.31 ||
  echo "uWSGI was not tested: it needs gcc and Python's headers"
$newest/bin/ruff check .
$newest/bin/ruff format --check .
for version in 3.10 3.11 3.12 3.13 3.14; do $newest/bin/mypy --python-version $version; done
$newest/bin/pytest "$@"

environment $newest-oldest "${oldest[@]}" hatchling \
  $(grep -E '^(billiard|gunicorn|pytest|snapshot-restore-py)==' requirements.txt)
$newest-oldest/bin/pytest -W ignore --ignore tests/test_wrong.py "$@"
sdk=$($newest/bin/pip freeze | grep ^opentelemetry-sdk=)
echo "the Python client was tested with $(python3 -V), $sdk and ${oldest[0]}"
