#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is left of the figures on a wire that loses packets: loss.py --help says the rest. Run it as root.
#	tests/perf/loss.sh [--quick] [--rounds N] [--json] [--build DIR]
exec /usr/bin/python3 -B "$(dirname "$0")/loss.py" "$@"
