#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library exports every default symbol of Debian's, in the same version node and of the same
# kind, and nothing else but its own private node; it needs nothing but libc.
# usage: symbols_test.sh LIBRARY DEBIAN-SYMBOL-LIST
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --with-symbol-versions --defined-only "$1" | awk '$2 != "A" { print $2, $3 }' |
	grep -v '@@UROCE_PRIVATE_1$' | sort >"$work/ours"
# "@" alone marks symbols of before 2007, for which no program asks any more
grep -v '^#' "$2" | grep '@@' | sort >"$work/theirs"
diff -u "$work/theirs" "$work/ours"

for name in uroce_register_carrier uroce_unregister_carrier uroce_context_command; do
	nm -D --with-symbol-versions "$1" | grep -q " $name@@UROCE_PRIVATE_1\$" ||
		{ echo "$name is not exported in UROCE_PRIVATE_1"; exit 1; }
done

# memory is mapped by system calls of our own: others replace these functions (base/memory_call.h)
# (gcov's runtime, which a build that counts links into each library, maps its files)
if ! nm "$1" | grep -q ' __gcov_exit$' && nm -D --undefined-only "$1" |
	grep -E ' (mmap|munmap|mremap|madvise|mprotect|mlock|munlock|shmat|shmdt|s?brk)(64)?(@|$)'; then
	echo "maps memory through libc"
	exit 1
fi

readelf -d "$1" >"$work/dynamic"
grep -q 'SONAME.*\[libibverbs\.so\.1\]' "$work/dynamic" || { echo "wrong soname"; exit 1; }
grep -q 'NODELETE' "$work/dynamic" || { echo "not marked nodelete"; exit 1; }
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic")
for library in $needed; do
	case $library in
	libc.so.6 | ld-linux-x86-64.so.2) ;;
	*) echo "needs $library"; exit 1 ;;
	esac
done
echo "$(wc -l <"$work/ours") symbols as Debian's; needs: $needed"
