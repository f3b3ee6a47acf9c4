#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the tests in a meson testlog.json: each Criterion test, and each other program once.

A line for each that failed, with what its assertions said, then the numbers."""

import json
import re
import sys

passed = failed = 0
with open(sys.argv[1]) as log:
    for line in log:
        test = json.loads(line)
        text = test.get("stdout", "") + test.get("stderr", "")
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
        synthesis = re.findall(
            r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)", text)
        ran = sum(int(row[0]) for row in synthesis)
        went_well = sum(int(row[1]) for row in synthesis)
        if good:
            passed += max(ran, 1)
        else:
            passed += went_well
            failed += max(ran - went_well, 1)
            said = re.findall(r"^\[(?:----|FAIL)\] *(\S.*)|(\w+Sanitizer: .*|runtime error: .*)",
                              text, re.MULTILINE)
            print(f"{test['name']} ({test['result']}) {' '.join(map(''.join, said))[:500]}".rstrip())
print(f"{passed} passed, {failed} failed")
