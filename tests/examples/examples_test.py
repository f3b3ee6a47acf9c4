#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The examples that need neither root nor a network."""

import re
import signal
import unittest

import rig


class Smallest(rig.Case):
    def test_it_writes_to_itself(self):
        text = rig.run("smallest", *rig.eal("smallest"))
        self.assertIn("hello, myself", text)

    def test_wrong_words_of_eal(self):
        with self.assertRaises(AssertionError):
            rig.run("smallest", "--no-such-option")


class Wrong(rig.Case):
    def expect(self, name, words, says):
        with self.assertRaisesRegex(AssertionError, "status 2") as caught:
            rig.run(name, *words)
        self.assertIn(f"{name}: {says}\n", str(caught.exception))

    def test_words(self):
        for name, words, says in (
                ("kv", [], "'' with 0 words behind it: must be HOST get KEY, HOST put KEY VALUE or HOST delete KEY"),
                ("kv", ["h", "put", "a"], "'put' with 1 words behind it: must be HOST get KEY, HOST put KEY VALUE or "
                 "HOST delete KEY"),
                ("kv-load", [], "0 words: must be HOST [SECONDS [DEPTH [PUTS-PER-THOUSAND]]]"),
                ("kv-load", ["h", "1x"], "SECONDS 1x: must be in 1 .. 3600"),
                ("kv-load", ["h", "1", "65"], "DEPTH 65: must be in 1 .. 64"),
                ("kv-load", ["h", "1", "1", "-1"], "PUTS-PER-THOUSAND -1: must be in 0 .. 1000"),
                ("collector", [], "0 words: must be SERVICE [FORWARDERS]"),
                ("collector", ["7471x"], "SERVICE 7471x: must be in 1 .. 65535"),
                ("collector", ["7471", "17"], "FORWARDERS 17: must be in 1 .. 16")):
            self.expect(name, words, says)

    def test_words_behind_those_of_eal(self):
        options = "--address ADDR/LEN, --engine-port N, --collector HOST or --route NET/LEN,PORT,MAC"
        for name, words, says in (
                ("smallest", ["x"], "'x': must be an option of EAL, and there are no others"),
                ("polling", ["fly"], "'fly': must be threads, service or node, behind EAL's options and --"),
                ("polling", ["node"], "EAL must have a second lcore, as by -l 0,1"),
                ("kv-server", ["--sock"], "'--sock': must be --socket PATH or --netdev IFACE"),
                ("kv-server", ["extra"], "'extra': must be --socket PATH or --netdev IFACE"),
                ("forward", ["--nonsense"], f"--nonsense: must be {options}"),
                ("forward", ["extra"], f"extra: must be {options}"),
                ("forward", [], "--collector is missing: must be a host"),
                ("forward", ["--address", "10.0.0.1/33"], "--address 10.0.0.1/33: must be A.B.C.D/LEN, LEN in 1 .. 32"),
                ("forward", ["--engine-port", "0x"], "--engine-port 0x: must be the number of a port of EAL"),
                ("forward", ["--route", "x"], "--route x: must be NET/LEN,PORT,MAC, and the table must have room "
                 "for it")):
            self.expect(name, ["--lcores=0@(0-1)", *rig.eal(name), "--", *words], says)


class Polling(rig.Case):
    def polled(self, way):
        lcores = ["--lcores=0@(0-1),1@(0-1)"]
        text = rig.run("polling", *lcores, *rig.eal(way), "--", way)
        self.assertIn("written: number 19", text)

    def test_threads(self):
        self.polled("threads")

    def test_service(self):
        self.polled("service")

    def test_node(self):
        self.polled("node")


class KeyValue(rig.Case):
    def setUp(self):
        super().setUp()
        self.socket = str(self.folder / "kv.sock")
        self.server = self.begin("kv-server", "--lcores=0@(0-1)", *rig.eal("kv"), "--", "--socket",
                                 self.socket)
        self.server.await_text("ready")

    def tearDown(self):
        self.assertEqual(self.server.end(), 0, self.server.text)

    def kv(self, *words):
        return rig.run("kv", "127.0.0.1", *words, UROCE_SOCKET=self.socket).strip()

    def test_put_get_delete(self):
        self.kv("put", "colour", "blue")
        self.assertEqual(self.kv("get", "colour"), "blue")
        self.kv("put", "colour", "green")
        self.assertEqual(self.kv("get", "colour"), "green")
        self.kv("delete", "colour")
        with self.assertRaisesRegex(AssertionError, "No such file"):
            self.kv("get", "colour")
        with self.assertRaisesRegex(AssertionError, "No such file"):
            self.kv("delete", "colour")

    def test_wrong_words(self):
        with self.assertRaisesRegex(AssertionError, "status 2"):
            self.kv("take", "colour")
        with self.assertRaisesRegex(AssertionError, "Invalid argument"):
            self.kv("get", "k" * 57)

    def test_load_and_a_client_that_dies(self):
        """GETs that meet changes are never wrong; the end of a client disturbs no other."""
        victim = self.begin("kv-load", "127.0.0.1", "60", UROCE_SOCKET=self.socket)
        text = rig.run("kv-load", "127.0.0.1", "1", "8", "100", UROCE_SOCKET=self.socket)
        figures = re.search(r"(\d+) GETs a second, (\d+) PUTs .* (\d+) wrong", text)
        self.assertIsNotNone(figures, text)
        self.assertGreater(int(figures[1]), 0)
        self.assertGreater(int(figures[2]), 0)
        self.assertEqual(int(figures[3]), 0)
        self.assertEqual(victim.end(signal.SIGKILL), -signal.SIGKILL)
        self.kv("put", "after", "wards")
        self.assertEqual(self.kv("get", "after"), "wards")


if __name__ == "__main__":
    unittest.main()
