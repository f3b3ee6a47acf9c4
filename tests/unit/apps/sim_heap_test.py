#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The simulator keeps what it frees, so that the kernel does not clear it once more for each world.

Environment: UROCE.
"""

import os
import subprocess
import unittest

UROCE = os.environ["UROCE"]
WORLDS = [UROCE, "sim", "--seeds", "12", "--messages", "50"]


def page_faults(environment):
    """How many page faults the kernel serves for the simulator."""
    program = subprocess.Popen(WORLDS, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0, f"status {program.returncode}"
    return usage.ru_minflt


class Heap(unittest.TestCase):
    def test_worlds_share_their_memory(self):
        plain = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
        kept = page_faults(plain)
        cleared = page_faults(plain | {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"})
        self.assertLess(3 * kept, 2 * cleared)  # much less with huge pages


if __name__ == "__main__":
    unittest.main()
