#!/usr/bin/env bash
# Installs Debian's prometheus, promtool and alertmanager, which tests/service/test_prometheus.py starts on ports of
# its own. Does nothing where they are there; their system services are not needed and not started.
set -euo pipefail

there() { command -v prometheus && command -v promtool && { command -v prometheus-alertmanager || command -v alertmanager; }; }
if there >/dev/null; then exit 0; fi
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager >/dev/null
there >/dev/null
