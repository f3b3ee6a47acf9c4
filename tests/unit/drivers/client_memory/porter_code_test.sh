#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# porter_code.c lists every function of libc that porters call.
# usage: porter_code_test.sh porter_code.c LIBRARY...
set -eu

source=$1
shift
missing=
for name in $(nm -u "$@" | awk '
	/\.o:$/ { ours = /(porter|peer|maps)\.c\.o:$/; seen += ours }
	ours && $1 == "U" { print $2 }
	END { if (seen != 3) print "the_three_objects" }' | sort -u); do
	case $name in
	peer_* | porter_* | maps_* | _GLOBAL_OFFSET_TABLE_) continue ;;
	esac
	grep -q "AT(${name%64})" "$source" || missing="$missing $name"
done
if [ -n "$missing" ]; then
	echo "$source does not list:$missing"
	exit 1
fi
