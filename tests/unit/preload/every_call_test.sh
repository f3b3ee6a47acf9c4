#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each call of the preload library finds what is in $UROCE_FILES, and nothing where it is not loaded
# or is told of no folder. usage: every_call_test.sh EVERY_CALL LIBRARY
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make() {
	mkdir -p "$1"
	echo here >"$1/file"
	ln -s file "$1/link"
}
for place in class/infiniband class/infiniband_verbs dev/infiniband; do
	make "$work/files/$place/uroce-test"
done
make "$work/other"
"$1" "$work/other" absent
LD_PRELOAD=$2 "$1" "$work/other" absent
LD_PRELOAD=$2 UROCE_FILES=files "$1" "$work/other" absent
LD_PRELOAD=$2 UROCE_FILES=$work/files "$1" "$work/other"
