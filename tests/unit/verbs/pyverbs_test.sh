#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own tests, as Debian installs them, on the device of the engine at $UROCE_SOCKET:
# none fails, and at least as many pass (and are not skipped for something we do not have) as did.
# usage: pyverbs_test.sh FOLDER-OF-THE-LIBRARY LEAST-PASSES
set -eu

tests=/usr/share/doc/rdma-core/tests
if [ ! -e $tests/run_tests.py ] || ! /usr/bin/python3 -c 'import pyverbs' 2>/dev/null; then
	echo "rdma-core's tests or python3-pyverbs are not installed"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp $tests/* "$work"
cd "$work"
gunzip -q -- *.gz 2>/dev/null || :
status=0
LD_LIBRARY_PATH="$1" timeout 200 /usr/bin/python3 run_tests.py -v --dev uroce0 --gid 1 \
	>log 2>&1 || status=$?
ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' log)
skipped=$(sed -n 's/^.*skipped=\([0-9]*\).*/\1/p' log)
passed=$((${ran:-0} - ${skipped:-0}))
if [ $status -ne 0 ] || [ $passed -lt "$2" ]; then
	cat log
	echo "status $status, $passed passed, $2 should"
	exit 1
fi
echo "$passed of $ran tests pass, the others are skipped"
