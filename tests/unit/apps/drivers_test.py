#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Which of DPDK's drivers an engine loads, and what memory it takes for packet buffers."""

import pathlib
import re
import resource
import subprocess
import unittest

from engine_rig import MEMIF, UROCE, UROCED, EngineCase

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

    def test_few_with_a_port_of_software(self):
        few, _ = self.loaded("--port", "net_memif0", eal=[MEMIF.format("server", self.folder)])
        self.assertLessEqual(WITHOUT_PORT | {"net_memif"}, few)
        self.assertLessEqual(few, WITHOUT_PORT | {"net_memif", "bus_pci"})

    def test_the_eal_calls_functions_of_the_programs(self):
        for program in (UROCED, f"{UROCE}-perf"):
            seen = subprocess.run(["nm", "--dynamic", "--defined-only", program], capture_output=True, text=True,
                                  check=True).stdout.split()
            self.assertLessEqual({"access", "readdir64"}, set(seen), program)

    def test_all_with_a_library_of_the_user(self):
        some, every = self.loaded(eal=["-d", "libm.so.6"])
        self.assertEqual(some, every)


class Buffers(EngineCase):
    """An engine with a port has 16,384 packet buffers, and writes to each of them at its start."""

    def taken(self, *options, eal=()):
        """MiB of the EAL's memory, a file without huge pages, and page faults of a start and end."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        engine = self.start(*options, eal=eal)
        status = pathlib.Path(f"/proc/{engine.pid}/status").read_text(encoding="utf-8")
        self.end(engine)
        faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before
        print(f"{' '.join([*eal, *options])}: {faults} page faults")
        return int(re.search(r"RssShmem:\s+(\d+)", status)[1]) // 1024

    def test_private_where_the_driver_copies(self):
        for name, device in (("net_null0", "--vdev=net_null0"), ("net_memif0", MEMIF.format("server", self.folder))):
            self.assertLess(self.taken("--port", name, "--mtu", "4200", eal=[device]), 16, device)

    def test_of_the_eal_otherwise(self):
        self.assertGreater(self.taken("--port", "net_ring0", "--mtu", "4200", eal=["--vdev=net_ring0"]), 32)


if __name__ == "__main__":
    unittest.main()
