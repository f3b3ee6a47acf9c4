#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce stat against an engine with a busy program: every view, and the same numbers by telemetry."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import unittest

from engine_rig import ENOUGH, UROCE, EngineCase, until

SAMPLE = re.compile(r'^(uroce_\w+)\{device="uroce0"(,reason="\w+")?\} (\d+)$')

# Counters that a scrape names differently than `uroce stat --json`.
OTHERWISE = {"clients": "programs", "qps": "queue_pairs", "cqs": "completion_queues", "mrs": "memory_regions",
             "rx_packets": "rcvd_pkts", "tx_packets": "sent_pkts"}


class Stat(EngineCase):
    def setUp(self):
        super().setUp()
        self.engine = self.start()

    def json(self, *words):
        end = self.uroce("stat", "--json", *words)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return json.loads(end.stdout)

    def both(self):
        """The two queue pairs of a ping, once both send."""
        pairs = [q for q in self.json("--qps") if q["state"] == "RTS"]
        return pairs if len(pairs) == 2 else None

    def test_lists(self):
        self.assertEqual(self.json("--qps"), [])
        program = self.ping()
        pairs = until(self.both, "a pair")
        self.assertEqual({q["pid"] for q in pairs}, {program.pid})
        self.assertEqual({(q["type"], q["way"]) for q in pairs}, {("RC", "here")})
        self.assertEqual({q["qpn"] for q in pairs}, {q["dest_qpn"] for q in pairs})
        until(lambda: [q["send_psn"] for q in self.json("--qps")] !=
              [q["send_psn"] for q in pairs], "its packets")
        programs = self.json("--programs")
        self.assertEqual([(p["pid"], p["qps"]) for p in programs], [(program.pid, len(pairs))])
        regions = self.json("--memory")
        self.assertEqual({r["pid"] for r in regions}, {program.pid})
        self.assertEqual(self.json("--neighbours"), [])
        self.assertEqual(self.json("--paths"), [], "what stays inside the engine has none")
        for view in ("--qps", "--memory", "--programs"):
            lines = self.uroce("stat", view).stdout.splitlines()
            self.assertEqual(len(lines), 1 + len(self.json(view)), view)
            self.assertTrue(lines[1].endswith(" ping"), lines[1])

    def test_cycles(self):
        self.ping()
        busy = ("rx", "decode", "transport", "key", "place", "complete", "encode", "copy+sum", "tx")

        def measured():  # on a loaded machine most rounds are interrupted, and are counted apart
            said = self.json("--cycles=0.2")
            return all(said["stages"][name]["passes"] > 0 for name in busy) and said

        said = until(measured, f"a packet's way through {busy}")
        self.assertGreater(said["rounds"], 0)
        for name, stage in said["stages"].items():
            self.assertEqual(stage["cycles"] > 0, stage["passes"] > 0, name)
        lines = self.uroce("stat", "--cycles=0.05").stdout.splitlines()
        self.assertEqual(lines[0], "cycles of all lcores, 0.05 s")
        self.assertEqual([line.split()[0] for line in lines[2:13]], list(said["stages"]))

    def test_prometheus(self):
        lines = self.uroce("stat", "--prometheus").stdout.splitlines()
        kinds, helps, samples = {}, set(), {}
        for line in lines:
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                self.assertNotIn(name, kinds)
                kinds[name] = kind
            elif line.startswith("# HELP "):
                helps.add(line.split()[2])
            else:
                name, reason, value = SAMPLE.match(line).groups()
                self.assertIn(name, kinds)
                samples[name + (reason or "")] = int(value)
        self.assertEqual(set(kinds), helps)
        self.assertTrue(all(kind == ("counter" if name.endswith("_total") else "gauge")
                            for name, kind in kinds.items()), kinds)
        said = self.json()
        for name in said["hw_counters"]:
            self.assertIn(f"uroce_{name}_total", samples)
        for reason in said["by_reason"]:
            self.assertIn(f'uroce_reason_total,reason="{reason}"', samples)
        self.assertEqual(samples["uroce_programs"], 0)
        for name, value in said.items():
            if isinstance(value, int) and name not in ("active", "mtu"):
                name = OTHERWISE.get(name, name)
                self.assertTrue(f"uroce_{name}" in samples or f"uroce_{name}_total" in samples, name)

    def test_names_of_linux(self):
        words = self.uroce("stat", "--hw").stdout.split()
        self.assertEqual(words[:2], ["link", "uroce0/1"])
        self.assertEqual(words[2::2], list(self.json()["hw_counters"]))
        for name in ("rcvd_pkts", "sent_pkts", "duplicate_request", "out_of_sequence",
                     "packet_seq_err", "rnr_nak_retry_err", "local_ack_timeout_err",
                     "rx_icrc_encapsulated", "rp_cnp_handled", "rx_write_requests", "rx_read_requests",
                     "rx_atomic_requests", "resp_remote_access_errors", "req_cqe_error", "resp_cqe_flush_error",
                     "rdma_sends", "rdma_recvs", "link_downed"):
            self.assertIn(name, words)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_cannot_be_written(self):
        """Of each command: it says so, and has not succeeded."""
        for view in ("--all", "--hw", "--prometheus", "--json", "--programs", "--qps", "--cycles=0.01", "--watch=0.1",
                     "--help"):
            self.unwritten("stat", view)
        for words in (["stat"], ["top", "--once", "--interval", "0.1"], ["top", "--interval", "0.1"], ["doctor"],
                      ["ping", "--count", "1"], ["perf", "--help"], ["sim", "--loss", "0.1"],
                      ["sim", "--help"], ["sim", "--scenario", "incast:2", "--time", "1ms"], ["--version"], ["--help"]):
            self.unwritten(*words)
        self.unwritten_by_uroced("--help")
        self.unwritten_by_uroced("--", "--help")
        self.assertEqual(self.json("--programs"), [])
        self.assertIsNone(self.engine.poll())

    def test_watch(self):
        self.ping()
        watch = subprocess.Popen([UROCE, "stat", "--watch=0.1"], env=self.environment,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, watch)
        for line in watch.stdout:
            if re.search(r" \d+\.\d/s  polls ", line):
                break
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(ENOUGH), -signal.SIGINT)

    def test_watch_all(self):
        """Reasons that never occurred are on the first page and on those after it."""
        watch = subprocess.Popen([UROCE, "stat", "--watch=0.1", "--all"], env=self.environment,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, watch)
        known, pages, names = set(self.json()["by_reason"]), 0, set()
        for line in watch.stdout:
            if re.match(r"\d+ programs, ", line):
                pages += 1
                if pages == 3:
                    break
                names = set()
            names |= set(line.split()) & known
        self.assertEqual(known - names, set(), "on the second page")

    def test_watch_ends_with_the_engine(self):
        watch = subprocess.Popen([UROCE, "stat", "--watch=0.1", "--qps"], env=self.environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, watch)
        watch.stdout.readline()
        self.engine.kill()
        said = watch.communicate(timeout=ENOUGH)[1]
        self.assertEqual(watch.returncode, 1)
        self.assertEqual(said.count("\n"), 1, said)


class Telemetry(EngineCase):
    """What dpdk-telemetry.py does: a SOCK_SEQPACKET socket in EAL's folder, JSON."""

    def setUp(self):
        super().setUp()
        self.begin()
        folder = pathlib.Path("/run/dpdk") if os.geteuid() == 0 else self.folder / "dpdk"
        path = folder / f"{self.folder.name}-uroced" / "dpdk_telemetry.v2"
        self.telemetry = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.telemetry.close)
        self.telemetry.settimeout(ENOUGH)
        self.telemetry.connect(str(path))
        self.limit = json.loads(self.telemetry.recv(1024))["max_output_len"]

    def begin(self):
        self.start()

    def ask(self, command):
        self.telemetry.send(command.encode())
        return json.loads(self.telemetry.recv(self.limit))[command.partition(",")[0]]

    def stat(self):
        return json.loads(self.uroce("stat", "--json").stdout)

    def test_commands(self):
        commands = [c for c in self.ask("/") if c.startswith("/uroce/")]
        self.assertEqual(commands, [f"/uroce/{name}" for name in (
            "hw_counters", "info", "port", "program", "programs", "qp", "qps", "reasons", "stats")])
        for command in commands:
            self.assertTrue(self.ask(f"/help,{command}"))

    def test_same_names_as_uroce_stat(self):
        said = self.stat()
        self.assertEqual(list(self.ask("/uroce/hw_counters")), list(said["hw_counters"]))
        self.assertEqual(list(self.ask("/uroce/reasons")), list(said["by_reason"]))
        self.assertLessEqual({"rx_packets", "tx_octets", "polls"}, set(self.ask("/uroce/stats")))
        self.assertIn("uroce0", self.ask("/uroce/info")["device"])
        self.assertEqual(self.ask("/uroce/port"), {"name": ""})

    def test_objects(self):
        self.assertFalse(self.ask("/uroce/qps"))
        program = self.ping()
        pair = until(lambda: len(self.ask("/uroce/qps")) == 2 and self.ask("/uroce/qps"),
                     "both queue pairs")[0]
        self.assertEqual(self.ask(f"/uroce/qp,{pair}")["pid"], program.pid)
        self.assertEqual(self.ask("/uroce/programs"), [program.pid])
        self.assertEqual(self.ask(f"/uroce/program,{program.pid}")["qps"], 2)

    def test_wrong_parameters(self):
        number, pid = "must be the number of a queue pair (/uroce/qps)", "must be the pid of a program (/uroce/programs)"
        for command, why in (("/uroce/qp", f"'': {number}"), ("/uroce/qp,x", f"'x': {number}"),
                             ("/uroce/qp,-1", f"'-1': {number}"), ('/uroce/qp,"\\', f"'??': {number}"),
                             ("/uroce/qp,99999999999999999999", f"'99999999999999999999': {number}"),
                             ("/uroce/qp,1", "'1': no queue pair has this number (/uroce/qps)"),
                             ("/uroce/program,", f"'': {pid}"),
                             ("/uroce/program,1", "'1': no program has this pid (/uroce/programs)"),
                             ("/uroce/stats,5", "'5': the command takes no parameter")):
            self.assertEqual(self.ask(command), {"error": why}, command)


class TelemetryOfPort(Telemetry):
    """The same commands, for an engine with a port."""

    def begin(self):
        self.start("--port", "net_ring0", eal=["--vdev=net_ring0"])

    def test_same_names_as_uroce_stat(self):
        port = self.ask("/uroce/port")
        self.assertEqual((port["name"], port["netdev"], port["queues"]), ("net_ring0", "", 1))
        # A software port has no filter: all groups arrive, including those that the engine wants.
        self.assertEqual(port["multicast_all"], "it has no filter of its own")
        self.assertEqual(port["promiscuous"], "")
        until(lambda: self.ask("/uroce/port")["multicast_groups"] == 3,
              "groups of all hosts, of IPv4 and IPv6, and of a link-local address")


if __name__ == "__main__":
    unittest.main()
