#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce stat --hw while Debian's programs run, which a sanitizer's build cannot run."""

import unittest

from engine_rig import EngineCase


class Programs(EngineCase):
    def setUp(self):
        super().setUp()
        self.start()

    def test_counts_of_linux(self):
        """The work of perftest's programs is counted under the names that it has on a Linux host."""
        def counts():
            words = self.uroce("stat", "--hw").stdout.split()[2:]
            return dict(zip(words[::2], map(int, words[1::2])))

        for port, (program, name, least) in enumerate((("ib_write_lat", "rx_write_requests", 200),
                                                       ("ib_read_lat", "rx_read_requests", 100),
                                                       ("ib_atomic_lat", "rx_atomic_requests", 100))):
            before = counts()
            self.pair(self.socket, program, "-d", "uroce0", "-x", "1", "-F", "-n", "100", "-p", str(18700 + port))
            now = counts()
            others = {"rx_write_requests", "rx_read_requests", "rx_atomic_requests"} - {name}
            self.assertGreaterEqual(now[name] - before[name], least, program)
            self.assertEqual({n: now[n] - before[n] for n in others}, dict.fromkeys(others, 0), program)


if __name__ == "__main__":
    unittest.main()
