#!/usr/bin/env bash
# Builds in DIR what tests/backends runs that is written in Go: DIR/jaeger/jaeger, Jaeger's all-in-one, and
# DIR/otelcol/otelcol, an OpenTelemetry Collector of the components in collector.yaml. Everything comes through the Go
# module proxy. Jaeger's web page is no part of its Go module: this one serves the API and a placeholder.
# Builds only what is not there as pinned. Usage: deploy/dev/backends.sh DIR [jaeger|collector]...
set -euo pipefail

JAEGER=v1.76.0
BUILDER=v0.165.0

here=$(cd "$(dirname "$0")" && pwd)
target=${1:?usage: backends.sh DIR [jaeger|collector]...}
shift
command -v go >/dev/null || {
  echo "backends.sh: there is no go on this machine: install Go (https://go.dev/dl) to test with Jaeger and the Collector" >&2
  exit 3
}
mkdir -p "$target"
target=$(cd "$target" && pwd)
exec 8>"$target/.lock-go"
flock 8 # of two at once, the second finds the work of the first
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -p=${REDFIRST_GO_JOBS:-2}" GOTOOLCHAIN=local

as_pinned() { [ "$(cat "$target/$1/.pinned" 2>/dev/null)" = "$2" ]; }

jaeger() {
  if as_pinned jaeger "$JAEGER"; then return; fi
  echo "jaeger: building $JAEGER" >&2
  rm -rf "${target:?}/jaeger"
  mkdir -p "$target/jaeger/module"
  cd "$target/jaeger/module"
  go mod init redfirst.dev/jaeger 2>/dev/null
  go get -tool "github.com/jaegertracing/jaeger/cmd/all-in-one@$JAEGER" 2>"$target/jaeger/get.log" || {
    tail -5 "$target/jaeger/get.log" >&2
    return 1
  }
  go build -trimpath -o ../jaeger github.com/jaegertracing/jaeger/cmd/all-in-one
  rm -rf "$target/jaeger/module"
  echo "$JAEGER" >"$target/jaeger/.pinned"
}

collector() {
  local pinned
  pinned=$(sha256sum <"$here/collector.yaml" | cut -d' ' -f1)-$BUILDER
  if as_pinned otelcol "$pinned"; then return; fi
  echo "collector: building with builder $BUILDER" >&2
  rm -rf "${target:?}/otelcol"
  mkdir -p "$target/otelcol"
  GOBIN="$target/otelcol" go install "go.opentelemetry.io/collector/cmd/builder@$BUILDER"
  cd "$target/otelcol"
  ./builder --config "$here/collector.yaml" >build.log 2>&1 || {
    tail -20 build.log >&2
    return 1
  }
  mv sources/otelcol otelcol
  rm -rf sources builder
  echo "$pinned" >.pinned
}

for wanted in "${@:-all}"; do
  case $wanted in
  jaeger | collector) "$wanted" ;;
  all)
    jaeger
    collector
    ;;
  *)
    echo "backends.sh: there is no $wanted: jaeger or collector" >&2
    exit 2
    ;;
  esac
done
