#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What uroce stat shows to a user without objects of their own."""

import json
import os
import subprocess
import unittest

from engine_rig import MEMIF, UROCE, EngineCase, until


@unittest.skipUnless(os.geteuid() == 0, "another user needs root")
class Strangers(EngineCase):
    """A connection behind the port, as another user sees it."""

    def listed(self, what, **who):
        end = self.uroce("stat", "--json", f"--{what}", cwd="/", **who)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return json.loads(end.stdout)

    def test_strangers_see_no_numbers(self):
        """Empty lists, except that of rdma_cm's ids, which has no queue pair numbers (hostile H-54)."""
        self.folder.chmod(0o755)
        self.start("--port", "net_memif0", "--mtu", "4200", "--socket-mode", "0666",
                   eal=[MEMIF.format("server", self.folder)])
        peer = self.start_peer()
        words = ["rping", "-a", "10.7.0.1", "-p", "18601"]
        for socket_, role, ready in ((self.socket, ["-s"], lambda: self.listed("cm")),
                                     (peer, ["-c", "-C", "100000000"], lambda: self.listed("paths"))):
            program = subprocess.Popen([UROCE, "run", "--quiet", "--socket", socket_, "--", *words, *role],
                                       env=self.environment, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(self.end, program)
            until(ready, f"rping {role[0]}")
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        for what in ("qps", "memory", "programs", "neighbours", "paths"):
            self.assertNotEqual(self.listed(what), [], what)
            self.assertEqual(self.listed(what, **nobody), [], what)
        until(lambda: any(id_["qpn"] for id_ in self.listed("cm")), "a number that root sees")
        ids = self.listed("cm", **nobody)
        self.assertNotEqual(ids, [])
        self.assertEqual({id_["qpn"] for id_ in ids}, {0})


if __name__ == "__main__":
    unittest.main()
