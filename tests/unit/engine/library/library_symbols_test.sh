#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# liburoce exports the functions of its header, in its version node, and nothing else: neither the
# shared nor the static library has another name that could meet one of a program's.
# usage: library_symbols_test.sh LIBRARY.so ARCHIVE.a HEADER MAP
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

grep -A 1 '^UROCE_API ' "$3" | grep -o '\buroce_[a-z_]*(' | tr -d '(' | sort >"$work/header"
sed -n 's/^\t\t\(uroce_[a-z_]*\);$/\1/p' "$4" | sort >"$work/map"
diff -u "$work/header" "$work/map"

sed 's/$/@@UROCE_1/' "$work/map" >"$work/wanted"
nm -D --with-symbol-versions --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort >"$work/shared"
diff -u "$work/wanted" "$work/shared"

nm -g --defined-only "$2" | awk 'NF == 3 { print $3 }' | grep -v '^__asan\|^___asan\|^__odr_asan' |
	sort >"$work/static"
diff -u "$work/map" "$work/static"

readelf -d "$1" | grep -q 'SONAME.*\[liburoce\.so\.1\]' || { echo "wrong soname"; exit 1; }
if readelf -d "$1" | grep NEEDED | grep -E 'ibverbs|rdmacm'; then
	echo "needs a verbs library, which the program chooses"
	exit 1
fi
echo "$(wc -l <"$work/map") functions"
