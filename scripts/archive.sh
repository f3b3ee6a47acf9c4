#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes one archive of several, as one object whose hidden symbols are local.
# usage: archive.sh OUT.a IN.a...
set -eu

out=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ld -r -o "$work/uroce.o" --whole-archive "$@" --no-whole-archive
objcopy --localize-hidden "$work/uroce.o"
rm -f "$out"
ar rcs "$out" "$work/uroce.o"
