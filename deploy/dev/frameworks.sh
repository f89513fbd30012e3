#!/usr/bin/env bash
# Creates in DIR what tests/frameworks and tests/backends run: a virtual environment of the pinned packages for each
# name, and DIR/node, the npm packages of tests/frameworks/node. Builds only what is not there as pinned.
# Usage: deploy/dev/frameworks.sh DIR [frameworks|phoenix|evals|mlflow|sdks|node]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
program=$here/../../tests/frameworks/node
python=${PYTHON:-python3}
target=${1:?usage: frameworks.sh DIR [frameworks|phoenix|evals|mlflow|sdks|node]...}
shift
mkdir -p "$target"
target=$(cd "$target" && pwd)
exec 9>"$target/.lock"
flock 9 # of two at once, the second finds the work of the first

# A folder is as pinned when its stamp says what it was built from; the stamp is written last.
stamp() { { cat "$@" && echo "$target" && "$runtime" --version; } | sha256sum | cut -d' ' -f1; }
as_pinned() { [ "$(cat "$target/$1/.pinned" 2>/dev/null)" = "$2" ]; }

environment() {
  runtime=$python
  local pinned
  pinned=$(stamp "$here/$1.txt")
  if as_pinned "$1" "$pinned"; then return; fi
  echo "$1: installing $(grep -c == "$here/$1.txt") packages" >&2
  rm -rf "${target:?}/$1"
  "$python" -m venv "$target/$1"
  "$target/$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$here/$1.txt"
  echo "$pinned" >"$target/$1/.pinned"
}

packages() {
  runtime=node
  local pinned
  pinned=$(stamp "$program/package.json" "$program/package-lock.json")
  if as_pinned node "$pinned"; then return; fi
  echo "node: installing the packages of package-lock.json" >&2
  rm -rf "$target/node"
  mkdir "$target/node"
  cp "$program/package.json" "$program/package-lock.json" "$target/node"
  (cd "$target/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  echo "$pinned" >"$target/node/.pinned"
}

for wanted in "${@:-all}"; do
  case $wanted in
  frameworks | phoenix | evals | mlflow | sdks) environment "$wanted" ;;
  node) packages ;;
  all)
    environment frameworks
    environment phoenix
    environment evals
    environment mlflow
    environment sdks
    packages
    ;;
  *)
    echo "frameworks.sh: there is no $wanted: frameworks, phoenix, evals, mlflow, sdks or node" >&2
    exit 2
    ;;
  esac
done
