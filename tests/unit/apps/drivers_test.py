#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Which of DPDK's drivers an engine loads: all, but without a port only those of --netdev."""

import pathlib
import re
import unittest

from engine_rig import MEMIF, EngineCase

WITHOUT_PORT = {"bus_vdev", "mempool_bucket", "mempool_ring", "mempool_stack", "net_af_packet", "net_af_xdp"}


class Drivers(EngineCase):
    def loaded(self, *options, **how):
        """The drivers that an engine has loaded, and those that there are."""
        engine = self.start(*options, **how)
        maps = pathlib.Path(f"/proc/{engine.pid}/maps").read_text(encoding="utf-8")
        self.end(engine)
        folder = pathlib.Path(re.search(r"(/\S+/pmds-[^/]*)/librte_", maps)[1])
        return (set(re.findall(r"/pmds-[^/]*/librte_(\w+)\.so", maps)),
                {re.match(r"librte_(\w+)\.so", f.name)[1] for f in folder.glob("librte_*.so*")})

    def test_few_without_a_port(self):
        few, _ = self.loaded()
        self.assertLessEqual(WITHOUT_PORT, few)
        self.assertLessEqual(few, WITHOUT_PORT | {"bus_pci"})  # which others may need

    def test_all_with_a_port(self):
        some, every = self.loaded("--port", "net_memif0", eal=[MEMIF.format("server", self.folder)])
        self.assertEqual(some, every)

    def test_all_with_a_library_of_the_user(self):
        some, every = self.loaded(eal=["-d", "libm.so.6"])
        self.assertEqual(some, every)


if __name__ == "__main__":
    unittest.main()
