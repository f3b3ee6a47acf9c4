#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh SECONDS [TARGET...]: runs each fuzz target so long over tests/fuzz/corpus/TARGET, and prints a
# table: inputs tried, how many in a second of processor time, edges reached, inputs found. A target
# that finds something leaves its input in BUILD/found, and the exit status is 1.
#	BUILD=FOLDER	a build by clang with -Dfuzz=true (build-fuzz, made if it is not there)
#	KEEP=1		what was found is added to the corpus, and the corpus is minimised
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build-fuzz}
found=$build/found
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
TIMEFORMAT='%U %S'

if ! [ "${1-}" -gt 0 ] 2>/dev/null; then
	sed -n '3,7s/^# \?//p' "$0" >&2
	exit 2
fi
seconds=$1
shift
if ! [ -e "$build/build.ninja" ]; then
	CC="$(command -v ccache || true) clang" meson setup "$build" "$root" -Dfuzz=true \
		-Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized \
		-Doptimization=1
fi
[ $# -gt 0 ] || for source in "$here"/*_fuzz.c; do
	name=$(basename "$source" _fuzz.c)
	set -- "$@" "$name"
done
targets=()
for name in "$@"; do
	targets+=("tests/fuzz/$name-fuzz")
	[ -e "$here/${name}_fuzz.c" ] || {
		echo "run.sh: there is no target '$name': $(cd "$here" && echo *_fuzz.c)" >&2
		exit 2
	}
done
ninja -C "$build" "${targets[@]}" >"$build/fuzz.log" || {
	tail -n 20 "$build/fuzz.log" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
printf '%-10s %12s %10s %7s %7s  %s\n' target inputs '/s' edges corpus result
for name in "$@"; do
	target=$build/tests/fuzz/$name-fuzz
	mkdir -p "$work/$name" "$here/corpus/$name"
	result=ok
	# entropic: libFuzzer's choice of what to change next costs more than most inputs (docs/testing.md)
	used=$({ time "$target" -entropic=0 -max_total_time="$seconds" -max_len=4096 -timeout=60 \
		-rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$work/$name." \
		"$work/$name" "$here/corpus/$name" >"$work/$name.log" 2>&1; } 2>&1) || result=FOUND
	inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
	last=$(grep -a ' cov: ' "$work/$name.log" | tail -n 1)
	edges=$(sed 's/.* cov: \([0-9]*\).*/\1/' <<<"$last")
	corpus=$(sed 's/.* corp: \([0-9]*\).*/\1/' <<<"$last")
	rate=$(awk -v n="${inputs:-0}" '{ printf "%d", n / ($1 + $2 + 0.001) }' <<<"$used")
	if [ "$result" != ok ]; then
		status=1
		mkdir -p "$found"
		for input in "$work/$name".*-*; do
			mv "$input" "$found/"
			result="$result $found/$(basename "$input")"
		done
		cp "$work/$name.log" "$found/"
	fi
	printf '%-10s %12s %10s %7s %7s  %s\n' "$name" "${inputs:-?}" "$rate" "$edges" "$corpus" \
		"$result"
	if [ -n "${KEEP-}" ]; then
		mkdir "$work/$name.kept"
		"$target" -set_cover_merge=1 -max_len=1024 "$work/$name.kept" "$here/corpus/$name" \
			"$work/$name" >"$work/$name.log" 2>&1
		rm -rf "${here:?}/corpus/$name"
		mv "$work/$name.kept" "$here/corpus/$name"
	fi
done
exit "$status"
