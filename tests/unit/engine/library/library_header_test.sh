#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# uroce.h is C99, C11 and C++ without a warning, alone and with the verbs headers.
# usage: library_header_test.sh HEADER
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=

cat >"$work/alone.c" <<'END'
#include <uroce.h>

int main(void)
{
	struct uroce_options o = {};
	char why[256];

	o.size = sizeof(o);
	o.lcores = 1;
	return uroce_create(&o, why, sizeof(why)) == NULL ? 0 : uroce_destroy(NULL);
}
END
{ echo '#include <infiniband/verbs.h>'; cat "$work/alone.c"; } >"$work/verbs.c"
sed -i 's/= {};/= { 0 };/' "$work/alone.c"
cp "$work/verbs.c" "$work/verbs.cpp"
sed 's/= { 0 };/= {};/' "$work/alone.c" >"$work/alone.cpp"
sed -i 's/= {};/= { 0 };/' "$work/verbs.c"

# try COMPILER STANDARD FILE
try() {
	command -v "$1" >/dev/null || return 0
	"$1" -std="$2" -Wall -Wextra -Werror -pedantic -Wshadow -fsyntax-only -I "$(dirname "$header")" \
		"$work/$3"
	tried="$tried $1:$2"
}

header=$1
for file in alone verbs; do
	for compiler in gcc clang; do
		try $compiler c99 $file.c
		try $compiler c11 $file.c
	done
	for compiler in g++ clang++; do
		try $compiler c++11 $file.cpp
		try $compiler c++20 $file.cpp
	done
done
case $tried in
*++*) echo "compiles as:$tried" ;;
*) echo "no C++ compiler is installed"; exit 77 ;;
esac
