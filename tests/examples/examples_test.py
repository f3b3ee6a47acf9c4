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
        """GETs that meet changes are never wrong; a client's end disturbs nobody."""
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
