#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own tests of rdma_cm, as Debian installs them, on the engine at $UROCE_SOCKET, whose
# address must be 127.0.0.1: all ten pass. They look for the device's interface in
# /sys/class/infiniband, which they see through `uroce run`.
# usage: pyverbs_test.sh UROCE HOW-IT-SHOWS-FILES [PATTERN]
set -eu

tests=/usr/share/doc/rdma-core/tests
if [ ! -e $tests/run_tests.py ] || ! /usr/bin/python3 -c 'import pyverbs' 2>/dev/null; then
	echo "rdma-core's tests or python3-pyverbs are not installed"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
uroce=$(readlink -f "$1")
cp $tests/* "$work"
cd "$work"
gunzip -q -- *.gz 2>/dev/null || :
status=0
PYTHONDONTWRITEBYTECODE=1 timeout 120 "$uroce" run --files "$2" -- /usr/bin/python3 run_tests.py -v \
	--dev uroce0 --gid 1 -k "${3:-tests.test_rdmacm}" >log 2>&1 || status=$?
passed=$(grep -cE '(^|\.\.\. )ok$' log || :)
if [ $status -ne 0 ] || { [ "${3:-}" = "" ] && [ "$passed" -ne 10 ]; }; then
	cat log
	echo "status $status, $passed tests passed"
	exit 1
fi
echo "$passed tests pass"
