#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce perf --server and --peer: between two engines on memif, and with ends that misbehave."""

import json
import os
import re
import socket
import struct
import subprocess
import unittest

from engine_rig import ENOUGH, MEMIF, UROCE, EngineCase, until

MAGIC = 0x0001507265636f72
HELLO = struct.Struct("=Q8I")
ANSWER = struct.Struct("=Q4I256s")


class Wire(EngineCase):
    def setUp(self):
        super().setUp()
        self.start("--port", "net_memif0", "--mtu", "4200",
                   eal=[MEMIF.format("server", self.folder)])

    def serve(self, *words):
        """A server, and the TCP port that it has chosen."""
        server = subprocess.Popen([UROCE, "perf", "--server", "--tcp-port", "0", *words],
                                  env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, server)
        line = server.stdout.readline()
        found = re.match(r"uroce0 \(.*\), IB MTU \d+: waiting for clients on TCP port (\d+)\n$", line)
        self.assertTrue(found, line)
        return server, found[1]

    def client(self, peer, port, *words):
        return [UROCE, "perf", "--peer", "127.0.0.1", "--tcp-port", port, "--socket", peer,
                "--seconds", "0.05", *words]

    def measure(self, peer, port, *words):
        end = subprocess.run(self.client(peer, port, *words), env=self.environment, timeout=ENOUGH,
                             capture_output=True, text=True)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return end.stdout

    def refused(self, peer, port, *words):
        """The line that a client says when it cannot measure."""
        end = subprocess.run(self.client(peer, port, *words), env=self.environment, timeout=ENOUGH,
                             capture_output=True, text=True)
        self.assertEqual((end.returncode, end.stdout), (1, ""))
        self.assertEqual(end.stderr.count("\n"), 1, end.stderr)
        return end.stderr

    def test_rates(self):
        """Every operation and size, one and several queue pairs, one client after another."""
        peer = self.start_peer()
        server, port = self.serve()
        sizes, pairs = [8, 5000, 65536], [1, 3]
        for _ in range(2):
            said = json.loads(self.measure(peer, port, "--json", "--no-limits", "--size",
                                           "8,5000,65536", "--qps", "1,3", "--depth", "16"))
            self.assertEqual((said["mtu"], said["ip_version"], said["qps"]), (4096, 4, 3))
            wanted = [(op, size, n) for op in ("write", "read", "send") for size in sizes
                      for n in pairs] + [("atomic", 8, n) for n in pairs]
            rates = said["rates"]
            self.assertEqual([(r["operation"], r["size"], r["qps"]) for r in rates], wanted)
            for r in rates:
                self.assertGreater(r["messages"], 0, r)
                self.assertAlmostEqual(r["bit_per_s"], r["messages_per_s"] * r["size"] * 8,
                                       delta=r["bit_per_s"] / 1e4)
            self.assertEqual(server.stdout.readline(), "127.0.0.1: 20 measurements\n")

    def test_more_requests_than_the_device_has_outstanding(self):
        """READs and atomics wait for their turn, and none is refused."""
        peer = self.start_peer()
        _, port = self.serve()
        said = json.loads(self.measure(peer, port, "--json", "--no-limits", "--operation", "read,atomic",
                                       "--size", "8", "--depth", "1024"))
        self.assertEqual([r["operation"] for r in said["rates"]], ["read", "atomic"])
        for r in said["rates"]:
            self.assertGreater(r["messages"], 0, r)

    def test_beside_its_limits(self):
        """The wire's speed as --link gives it, the kernel's TCP, a core."""
        peer = self.start_peer()
        _, port = self.serve()
        words = ("--operation", "write", "--size", "8,4096", "--link", "10")
        said = json.loads(self.measure(peer, port, "--json", *words))
        self.assertEqual(said["wire_bit_per_s"], 10e9)
        self.assertGreater(said["tcp_bit_per_s"], 0)
        self.assertGreater(said["limits"]["frames_4096_full_bit_per_s"], 0)
        small, large = said["rates"]
        # a frame of 4096 octets of payload has 4194 on the wire, one of 8 has 106
        self.assertAlmostEqual(large["ratio_to_wire"], large["bit_per_s"] / 10e9 * 4194 / 4096,
                               delta=large["ratio_to_wire"] / 1e4)
        self.assertAlmostEqual(small["ratio_to_wire"], small["messages_per_s"] * 106 * 8 / 10e9,
                               delta=small["ratio_to_wire"] / 1e4)
        self.assertAlmostEqual(large["ratio_to_tcp"], large["bit_per_s"] / said["tcp_bit_per_s"],
                               delta=large["ratio_to_tcp"] / 1e4)
        self.assertNotIn("ratio_to_tcp", small)
        text = self.measure(peer, port, *words)
        for line in (r"^here   uroce0 \(.*10\.7\.0\.2\), IB MTU 4096$",
                     r"^there  uroce0 \(.*10\.7\.0\.1\), IB MTU 4096, at 127\.0\.0\.1$",
                     r"^wire   10\.0 Gbit/s: at most 9\.80 Gbit/s of payload",
                     r"^TCP    [\d.]+ Gbit/s", r"^  ICRC 4 KiB ",
                     r"^write +8 +1 +[\d.]+ +[\d.]+ +[\d.]+ % +[\d.]+ % +- ",
                     r"^write +4096 +1 +[\d.]+ +[\d.]+ +[\d.]+ % +[\d.]+ % +[\d.]+ % "):
            self.assertRegex(text, re.compile(line, re.MULTILINE))

    def test_a_port_that_does_not_know_its_speed(self):
        """Here there is no port."""
        self.socket = str(self.folder / "alone.sock")
        self.start()
        _, port = self.serve("--socket", self.socket)
        words = ("--no-limits", "--operation", "write", "--size", "8")
        said = json.loads(self.measure(self.socket, port, "--json", *words))
        self.assertEqual(said["wire_bit_per_s"], 0)
        self.assertNotIn("ratio_to_wire", said["rates"][0])
        self.assertIn("\nwire   the port does not say how fast it is: --link GBIT/S\n",
                      self.measure(self.socket, port, *words))

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/net/tun"), "needs root and /dev/net/tun")
    def test_the_speed_is_not_that_of_the_kernels_interface(self):
        _, port = self.serve()
        self.socket = str(self.folder / "beside.sock")
        self.start("--port", "net_memif0", "--mtu", "4200", "--kernel-interface", f"uk{os.getpid()}",
                   address="10.7.0.2/24", eal=[MEMIF.format("client", self.folder)])
        said = json.loads(self.measure(self.socket, port, "--json", "--no-limits", "--operation", "write",
                                       "--size", "8"))
        self.assertEqual(said["wire_bit_per_s"], 100e9, "what memif says")

    def test_latency(self):
        peer = self.start_peer()
        server, port = self.serve("--once")
        said = json.loads(self.measure(peer, port, "--json", "--no-limits", "--latency", "--size",
                                       "8,8,300,8", "--seconds", "0.2"))
        trips = said["half_round_trips"]
        self.assertEqual([t["size"] for t in trips], [8, 8, 300, 8])
        for t in trips:
            self.assertLessEqual(t["p50_ns"], t["p100_ns"])
        self.assertEqual(server.wait(ENOUGH), 0)
        self.assertEqual(server.stdout.read(), "127.0.0.1: 4 measurements\n")

    def test_octets_on_the_wire(self):
        """Each operation has headers of its own; of a READ and its responses the longer ones count."""
        peer = self.start_peer()
        _, port = self.serve()
        said = json.loads(self.measure(peer, port, "--json", "--no-limits", "--link", "10", "--mtu", "1024",
                                       "--size", "8,1024,3000"))
        wire = {"write": {8: 106, 1024: 1122, 3000: 3000 + 3 * 82 + 16},
                "read": {8: 98, 1024: 1110, 3000: 3000 + 3 * 82 + 2 * 4},
                "send": {8: 90, 1024: 1106, 3000: 3000 + 3 * 82}, "atomic": {8: 110}}
        self.assertEqual(len(said["rates"]), sum(len(sizes) for sizes in wire.values()))
        for r in said["rates"]:
            octets = r["ratio_to_wire"] * 10e9 / 8 / r["messages_per_s"]
            self.assertAlmostEqual(octets, wire[r["operation"]][r["size"]], delta=0.05, msg=r)

    def test_smaller_mtu(self):
        """The MTU of the client's option, or of the end with the smaller port."""
        peer = self.start_peer()
        _, port = self.serve()
        said = json.loads(self.measure(peer, port, "--json", "--no-limits", "--mtu", "512",
                                       "--operation", "send", "--size", "4096"))
        self.assertEqual(said["mtu"], 512)

    def test_families(self):
        """The IP version of the connection, if both ends have it; otherwise IPv4 before IPv6."""
        self.socket = str(self.folder / "both.sock")
        self.start(address="10.7.0.3/24,fd00:7::3/64")
        _, port = self.serve("--socket", self.socket)
        for families, preferred, chosen in ((3, 0, 1), (3, 1, 1), (3, 2, 2), (1, 2, 1), (2, 1, 2)):
            with socket.create_connection(("127.0.0.1", int(port)), ENOUGH) as s:
                s.sendall(HELLO.pack(MAGIC, families, 1024, 1, 16, 4096, 0, preferred, 0))
                said = ANSWER.unpack(s.recv(ANSWER.size, socket.MSG_WAITALL))
                self.assertEqual(said[:3], (MAGIC, 0, chosen))

    def test_no_common_family(self):
        peer, self.socket = str(self.folder / "v6.sock"), str(self.folder / "v6.sock")
        self.start("--port", "net_memif0", "--mtu", "4200", address="fd00:7::2/64",
                   eal=[MEMIF.format("client", self.folder)])
        _, port = self.serve()
        self.assertIn("no addresses of the same family", self.refused(peer, port, "--no-limits"))

    def test_nobody_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            said = self.refused(self.socket, str(s.getsockname()[1]), "--no-limits")
        self.assertIn("Connection refused: run `uroce perf --server` there", said)
        end = self.uroce("perf", "--server", "--socket", "/nowhere")
        self.assertEqual(end.returncode, 1)
        self.assertIn("/nowhere: no engine answers there", end.stderr)

    def test_port_in_use(self):
        _, port = self.serve()
        end = self.uroce("perf", "--server", "--tcp-port", port)
        self.assertEqual((end.returncode, end.stdout), (1, ""))
        self.assertEqual(end.stderr, f"uroce perf: TCP port {port}: Address already in use\n")

    def test_killed_clients(self):
        """The client is killed at any time of a measurement; the server is ready for the next client."""
        peer = self.start_peer()
        server, port = self.serve()
        for words in (["--operation", "write"], ["--operation", "send"], ["--latency"]):
            client = subprocess.Popen(self.client(peer, port, "--no-limits", *words,
                                                  "--seconds", "60"),
                                      env=self.environment, stdout=subprocess.PIPE)
            self.addCleanup(self.end, client)
            client.stdout.readline()
            client.kill()
            self.assertRegex(server.stdout.readline(), r"^127\.0\.0\.1: \d measurements")
        self.measure(peer, port, "--no-limits", "--operation", "send", "--size", "8")

    def test_killed_server(self):
        peer = self.start_peer()
        server, port = self.serve()
        client = subprocess.Popen(self.client(peer, port, "--no-limits", "--operation", "write",
                                              "--seconds", "60"),
                                  env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, client)
        client.stdout.readline()
        server.kill()
        self.assertIn("uroce perf: ", client.communicate(timeout=ENOUGH)[1])
        self.assertEqual(client.returncode, 1)

    def test_what_a_server_refuses(self):
        """Octets of another protocol, impossible numbers, ends in the middle."""
        server, port = self.serve()
        good = [MAGIC, 1, 1024, 1, 16, 4096, 0, 0, 0]
        wrong = [(0, MAGIC + 1), (2, 0), (2, 1500), (2, 8192), (3, 0), (3, 16385), (4, 0),
                 (4, 4097), (5, 0), (5, (64 << 20) + 1), (6, 2), (7, 3), (1, 0), (1, 2)]
        for index, value in wrong:
            hello = good.copy()
            hello[index] = value
            with socket.create_connection(("127.0.0.1", int(port)), ENOUGH) as s:
                s.sendall(HELLO.pack(*hello))
                said = ANSWER.unpack(s.recv(ANSWER.size, socket.MSG_WAITALL))
                self.assertEqual(said[:2], (MAGIC, 1), (index, value))
                self.assertTrue(said[5].rstrip(b"\0"))
        for octets in (b"", b"GET / HTTP/1.0\r\n\r\n" * 8, HELLO.pack(*good)[:10],
                       HELLO.pack(*good), HELLO.pack(*good) + bytes(35),
                       HELLO.pack(*good) + bytes(36)):
            with socket.create_connection(("127.0.0.1", int(port)), ENOUGH) as s:
                s.sendall(octets)
        peer = self.start_peer()
        self.measure(peer, port, "--no-limits", "--operation", "write", "--size", "8")
        self.assertIsNone(server.poll())

    def test_another_service_answers(self):
        """A client that reaches another program says so."""
        with socket.create_server(("127.0.0.1", 0)) as s:
            client = subprocess.Popen(self.client(self.socket, str(s.getsockname()[1]),
                                                  "--no-limits"),
                                      env=self.environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, client)
            one = s.accept()[0]
            one.sendall(b"SSH-2.0-" * 64)
            said = client.communicate(timeout=ENOUGH)[1]
            one.close()
        self.assertEqual(client.returncode, 1)
        self.assertIn("not a `uroce perf --server` of this version", said)

    def test_nothing_is_left(self):
        """The objects of a client that has gone are freed, in both engines."""
        peer = self.start_peer()
        _, port = self.serve()
        self.measure(peer, port, "--no-limits", "--operation", "write", "--size", "8")

        def objects(*where):
            return json.loads(self.uroce("stat", "--json", "--qps", *where).stdout)

        until(lambda: not objects() and not objects("--socket", peer), "no queue pairs")


if __name__ == "__main__":
    unittest.main()
