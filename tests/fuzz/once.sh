#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# once.sh TARGET CORPUS: the kept inputs, and two seconds of new ones from a seed that is always the
# same. What is found stays in no folder of the checkout: the message has it in base64.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/new"
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# entropic: libFuzzer's choice of what to change next costs more than most inputs (docs/testing.md)
if ! "$1" -seed=1 -entropic=0 -max_total_time=2 -max_len=4096 -timeout=60 \
	-rss_limit_mb=4096 -artifact_prefix="$folder/" "$folder/new" "$2" >"$folder/log" 2>&1; then
	tail -n 60 "$folder/log"
	exit 1
fi
tail -n 1 "$folder/log"
