#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The forwarder between two hosts: what it counted stands in the collector's memory.

	host a  10.1.0.2 --- port 0 forward port 1 --- 10.2.0.2  host b: collector, on an engine (uroced)
	                                 10.2.0.1: the engine in it
"""

import os
import re
import signal
import subprocess
import sys
import unittest

import rig

PACKETS = 500
PAYLOAD = 100


def sh(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def mac_of(namespace, interface):
    words = ["ip", "-n", namespace, "-o", "link", "show", interface] if namespace else \
            ["ip", "-o", "link", "show", interface]
    return re.search(r"link/ether (\S+)", subprocess.check_output(words, text=True))[1]


class Forward(rig.Case):
    def setUp(self):
        super().setUp()
        tag = os.getpid()
        self.hosts = []
        for i, name in enumerate("ab"):
            host, ours = f"uroce-{name}-{tag}", f"uf{name}{tag}"
            sh("ip", "netns", "add", host)
            self.addCleanup(sh, "ip", "netns", "del", host)
            sh("ip", "link", "add", ours, "type", "veth", "peer", "name", "eth0", "netns", host)
            self.addCleanup(subprocess.run, ["ip", "link", "del", ours], check=False,
                            stderr=subprocess.DEVNULL)
            sh("sysctl", "-q", f"net.ipv6.conf.{ours}.disable_ipv6=1")
            sh("ip", "link", "set", ours, "up")
            for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                          ["addr", "add", f"10.{i + 1}.0.2/24", "dev", "eth0"],
                          ["route", "add", "default", "via", f"10.{i + 1}.0.254"],
                          ["neigh", "add", f"10.{i + 1}.0.254", "lladdr", mac_of(None, ours),
                           "dev", "eth0"]):
                sh("ip", "-n", host, *words)
            self.hosts.append((host, ours))

    def inside(self, which):
        return ["ip", "netns", "exec", self.hosts[which][0]]

    def begin_engine(self):
        """uroced on host b, for the collector."""
        path = str(self.folder / "b.sock")
        engine = self.begin("uroced", "--no-huge", "-m256", "--no-telemetry",
                            f"--file-prefix=uroce-forward-b-{os.getpid()}", "--", "--netdev", "eth0",
                            "--socket", path, prefix=self.inside(1))
        engine.await_text("serving")
        return path

    def begin_forward(self):
        ports = [f"--vdev=net_af_packet{i},iface={ours}" for i, (_, ours) in enumerate(self.hosts)]
        routes = [f"--route=10.{i + 1}.0.0/24,{i},{mac_of(host, 'eth0')}"
                  for i, (host, _) in enumerate(self.hosts)]
        return self.begin("forward", "--lcores=0@(0-1),1@(0-1)", *rig.eal("forward", 512), *ports,
                          "--", "--address", "10.2.0.1/24", "--engine-port", "1", "--collector",
                          "10.2.0.2", *routes)

    def send_packets(self, packets=PACKETS):
        code = ("import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "s.setsockopt(socket.SOL_SOCKET, 11, 1)\n"  # SO_NO_CHECK: a veth would compute no sum
                "s.bind(('10.1.0.2', 7001))\n"
                f"for i in range({packets}):\n"
                f"    s.sendto(b'x' * {PAYLOAD}, ('10.2.0.2', 7000)); time.sleep(0.0005)\n")
        return subprocess.Popen([*self.inside(0), "/usr/bin/python3", "-c", code])

    def receive_packets(self):
        """A receiver on host b that reports how many packets arrived, when it is told to end."""
        code = ("import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "s.bind(('10.2.0.2', 7000)); s.settimeout(30); n = 0\nprint('bound', flush=True)\n"
                f"while n < {PACKETS}:\n    s.recv(2048); n += 1\nprint('all', flush=True)\n")
        return self.begin("/usr/bin/python3", "-c", code, prefix=self.inside(1))

    def begin_both(self):
        """The example, and the collector to which it is connected."""
        path = self.begin_engine()
        collector = self.begin("collector", "7471", prefix=self.inside(1), UROCE_SOCKET=path,
                               LD_LIBRARY_PATH=os.environ["VERBS"])
        collector.await_text("listening")
        forward = self.begin_forward()
        forward.await_text("connected")
        return forward, collector

    def test_flows_arrive_in_the_collectors_memory(self):
        forward, collector = self.begin_both()
        receiver = self.receive_packets()
        receiver.await_text("bound")
        sender = self.send_packets()
        self.addCleanup(sender.kill)
        receiver.await_text("all")
        self.assertEqual(sender.wait(rig.LIMIT), 0)
        self.assertEqual(forward.end(), 0, forward.text)
        self.assertEqual(collector.end(None), 0, collector.text)
        octets = PACKETS * (14 + 20 + 8 + PAYLOAD)
        self.assertIn(f"10.1.0.2:7001 -> 10.2.0.2:7000 protocol 17: {PACKETS} packets, "
                      f"{octets} octets", collector.text)
        flows = [int(n) for n in re.findall(r"protocol \d+: (\d+) packets", collector.text)]
        total = re.search(r"total: (\d+) packets", collector.text)
        self.assertEqual(int(total[1]), sum(flows), collector.text)

    def test_no_collector(self):
        self.begin_engine()
        forward = self.begin_forward()
        forward.await_text("cannot connect to the collector")
        self.assertEqual(forward.end(None), 1, forward.text)

    def test_the_collector_ends(self):
        forward, collector = self.begin_both()
        collector.end(signal.SIGKILL)
        receiver = self.receive_packets()
        receiver.await_text("bound")
        sender = self.send_packets(1000000)  # until it is killed: each of them is written to the collector
        self.addCleanup(sender.kill)
        forward.await_text("cannot write to the collector")
        self.assertEqual(forward.end(None), 1, forward.text)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("network namespaces need root")
        sys.exit(77)
    unittest.main()
