#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library exports the same symbols as Debian's, in the same version node, and no others. It needs
# only libibverbs and libc.
# usage: symbols_test.sh LIBRARY DEBIAN-SYMBOL-LIST
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --with-symbol-versions --defined-only "$1" | awk '{ print $2, $3 }' | sort >"$work/all"
grep -v '^A ' "$work/all" >"$work/ours"
grep -v '^#' "$2" | sort >"$work/theirs"
diff -u "$work/theirs" "$work/ours"
test "$(wc -l <"$work/ours")" -eq 68 || { echo "not 68 symbols"; exit 1; }

printf 'A RDMACM_1.%s\n' 0 1 2 3 >"$work/nodes"
grep '^A ' "$work/all" | diff -u "$work/nodes" -

# as in libibverbs: programs replace these functions
# (gcov's runtime, which a build that counts links into each library, maps its files)
if ! nm "$1" | grep -q ' __gcov_exit$' && nm -D --undefined-only "$1" |
	grep -E ' (mmap|munmap|mremap|madvise|mprotect|mlock|munlock|shmat|shmdt|s?brk)(64)?(@|$)'; then
	echo "maps memory through libc"
	exit 1
fi

readelf -d "$1" >"$work/dynamic"
grep -q 'SONAME.*\[librdmacm\.so\.1\]' "$work/dynamic" || { echo "wrong soname"; exit 1; }
grep -q 'NODELETE' "$work/dynamic" || { echo "not marked nodelete"; exit 1; }
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic")
for library in $needed; do
	case $library in
	libibverbs.so.1 | libc.so.6 | ld-linux-x86-64.so.2) ;;
	*) echo "needs $library"; exit 1 ;;
	esac
done
echo "$(wc -l <"$work/ours") symbols as Debian's; needs: $needed"
