#!/bin/sh
# The core is pure: what its libraries leave undefined is each other, octet moving, assert and the
# CRC library, and nothing that reads a clock, allocates, locks or does I/O.
#	purity_test.sh LIBRARY...
set -eu

allowed='^(mem(cpy|move|set|cmp)|bcmp|__mem(cpy|move|set)_chk|__assert_fail|__stack_chk_fail|crc32_gzip_refl|__cpu_(model|features2|indicator_init)|_GLOBAL_OFFSET_TABLE_|reason_(name|sentence)|stage_enter)$'
instrumented='^(__(asan|ubsan|msan|tsan|sanitizer|gcov|llvm)_|__start_|__stop_)'

defined=$(nm --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u)
undefined=$(nm --undefined-only "$@" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u)
[ -n "$defined" ] && [ -n "$undefined" ] || { echo "nm found no symbols in: $*"; exit 1; }

impure=$(printf '%s\n' "$undefined" | grep -vxF -- "$defined" | grep -vE -- "$allowed|$instrumented" || true)
[ -n "$impure" ] || exit 0
printf 'the core must not use: %s\n' $impure
exit 1
