#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own tests, as Debian installs them, on the device of the engine at $UROCE_SOCKET:
# none fails or has an error, and all tests in the list pass (are not skipped). Skipped tests are
# reported, except those for other devices and those of rdma_cm, which ../rdmacm/pyverbs_test.sh runs.
# usage: pyverbs_test.sh FOLDER-OF-THE-LIBRARY LIST [USER]
# A line of LIST is a test, followed by "root" if the test needs privileges or by "huge" if it needs
# huge pages; some are reserved meanwhile if possible. With USER the tests run as that user, who must be
# able to connect to the engine.
set -eu

tests=/usr/share/doc/rdma-core/tests
if [ ! -e $tests/run_tests.py ] || ! /usr/bin/python3 -c 'import pyverbs' 2>/dev/null; then
	echo "rdma-core's tests or python3-pyverbs are not installed"
	exit 77
fi
list=$(readlink -f "$2")
user=${3:-root}
work=$(mktemp -d)
pages=/proc/sys/vm/nr_hugepages
reserved=0

# Several instances may run at once: each adds its own pages and removes them again.
reserve() {
	flock $tests sh -c "echo \$((\$(cat $pages) + $1)) >$pages" 2>/dev/null || return 1
	reserved=$((reserved + $1))
}
trap 'reserve -$reserved || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
reserve 8 || :
cp $tests/* "$work"
cp -L "$1"/libibverbs.so.1 "$work"
cd "$work"
gunzip -q -- *.gz 2>/dev/null || :
if [ "$user" = root ]; then
	wanted=$(sed -n 's/^\(tests[^ ]*\)\( root\)*$/\1/p' "$list")
	set --
else
	wanted=$(sed -n 's/^\(tests[^ ]*\)$/\1/p' "$list")
	chmod -R a+rX "$work"
	set -- setpriv --reuid "$user" --regid nogroup --clear-groups
fi
if [ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)" -ge 8 ]; then
	wanted="$wanted $(sed -n 's/^\(tests[^ ]*\) huge$/\1/p' "$list")"
fi
status=0
LD_LIBRARY_PATH="$work" PYTHONDONTWRITEBYTECODE=1 timeout 280 "$@" \
	/usr/bin/python3 run_tests.py -v --dev uroce0 --gid 1 >log 2>&1 || status=$?

# "test_x (tests.test_y.Case.test_x) ... ok", perhaps with output of the test in between
/usr/bin/python3 - "$work/log" >outcomes <<'END'
import re, sys
name = None
for line in open(sys.argv[1], errors='replace'):
    found = re.match(r'test_\w+ \((tests[\w.]+)\)', line)
    if found:
        name = found.group(1)
    outcome = re.search(r"(?:^|\.\.\. )(?:(ok)|skipped ['\"](.*)['\"])$", line.rstrip())
    if name and outcome:
        print(f"{name}: {outcome.group(2)}" if outcome.group(2) else name)
        name = None
END
grep -v : outcomes >passed || :
missing=0
for test in $wanted; do
	if ! grep -qx "$test" passed; then
		echo "does not pass: $test"
		missing=$((missing + 1))
	fi
done
if [ $status -ne 0 ] || [ $missing -ne 0 ]; then
	[ -n "${PYVERBS_QUIET:-}" ] || cat log
	echo "status $status, $missing tests that should pass do not (as $user)"
	exit 1
fi
# tests that need root run if the user is root
sed -n 's/^\(tests[^ ]*\) root$/\1: /p' "$list" >privileged
[ "$user" != root ] || : >privileged
grep : outcomes | grep -vE '^tests\.test_(mlx5|efa|rdmacm)' | grep -vFf privileged | sed 's/^/[SKIP] /' || :
echo "$(wc -l <passed) tests pass as $user"
