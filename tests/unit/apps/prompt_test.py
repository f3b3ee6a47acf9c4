#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The prompt of uroced: the sessions of docs/, line for line; completion; files of commands."""

import json
import os
import pathlib
import re
import select
import shlex
import signal
import struct
import subprocess
import time
import unittest

from engine_rig import ENOUGH, MEMIF, UROCE, UROCED, EngineCase, until
from page_session import DOCS, PROMPT, ask, hidden, open_prompt, replay, sessions

class Prompt(EngineCase):
    def start_terminal(self, *options, eal=()):
        terminal, self.greeting = open_prompt(self.words("-i", *options, eal=eal), self.environment)
        return terminal

    @staticmethod
    def command(terminal, text):
        return ask(terminal, text)

    def here(self, text):
        """Files of this test instead of the page's."""
        return text.replace("/tmp/", f"{self.folder}/")

    def open_session(self, session):
        """Starts uroced as the page does; with little memory."""
        _, *words = shlex.split(self.here(session.line))
        return open_prompt([UROCED, "-m128", "--no-shconf", *words], self.environment)

    def quit(self, session, terminal):
        self.assertEqual(session.parts[-1], ("quit", []))
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_session_of_operations(self):
        session, = sessions("operations.md")
        self.assertGreater(len(session.parts), 8)
        terminal, greeting = self.open_session(session)
        self.assertEqual(hidden(greeting.splitlines()[:-1]), hidden(session.parts[0][1]))
        for _ in replay(session, terminal, self.here, {}):
            pass
        self.quit(session, terminal)

    def test_sessions_of_the_guide(self):
        """Two engines: the second one is started and used while the first one's sink is open."""
        first, second = sessions("guide.md")
        sinks, terminals, rest = {}, [], []
        for session in (first, second):
            terminal, greeting = self.open_session(session)
            self.assertEqual(hidden(greeting.splitlines()[:-1]), hidden(session.parts[0][1]))
            commands = replay(session, terminal, self.here, sinks)
            next(commands)
            terminals.append(terminal)
            rest.append(commands)
        for commands in reversed(rest):
            self.assertGreater(len(list(commands)), 0)
        for session, terminal in zip((first, second), terminals):
            self.quit(session, terminal)

    def test_help_has_every_command_of_the_page(self):
        terminal = self.start_terminal()
        commands = re.findall(r"^  (\w[^:]*): .", self.command(terminal, "help"), re.MULTILINE)
        self.assertGreater(len(commands), 15)
        text = (DOCS / "operations.md").read_text().replace("\\|", "|")
        for command in commands:
            self.assertIn(f"`{command}`", text)
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_the_configuration_has_every_option(self):
        terminal = self.start_terminal("--gateway", "10.7.0.254", "--port", "net_null0",
                                       eal=["--vdev=net_null0"])
        options = re.findall("^  --([a-z-]+)", subprocess.run([UROCED, "--help"], stdout=subprocess.PIPE, text=True,
                                                              check=True).stdout, re.MULTILINE)
        self.assertGreater(len(options), 15)
        shown = dict(line.split(None, 1) for line in self.command(terminal, "show config").splitlines())
        self.assertEqual(sorted(options), sorted(set(shown) - {"device", "lcores"}))
        self.assertEqual((shown["ip"], shown["gateway"], shown["port"]), ("10.7.0.1/24", "10.7.0.254", "net_null0"))
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_completion(self):
        terminal = self.start_terminal()
        terminal.write("show conf\t\n")
        self.assertIn("show config", terminal.read_until("\n"))
        self.assertIn("uroce0", terminal.read_until(PROMPT))
        terminal.write("?")
        said = terminal.read_until(PROMPT)
        for line in ("show config: ", "clear stats: ", "set idle ", "help: ", "quit: "):
            self.assertRegex(said, rf"\n \w+ \[[^]]+\]: {line}")
        self.assertNotIn("RETURN", said)
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_wrong_commands(self):
        terminal = self.start_terminal()
        for words, why in (
                ("nonsense", "must be show, clear, set, capture, start, stop, trace, help or quit "
                 "(`help` lists all commands)"),
                ("set idle often", "must be spin or adaptive"),
                ("set idle", "one more word is needed: spin or adaptive"),
                ("show config all", "nothing may follow `show config`"),
                ("clear everything", "must be stats, port, qps, paths, memory, connections or neighbours"),
                ("start tx 10.7.0.1", "one more word is needed: QPN"),
                ("set log lib.nosuch info", "lib.nosuch must be a type of DPDK's log, such as uroce or lib.*"),
                ("set log ( info", "( must be a type of DPDK's log, such as uroce or lib.*"),
                ("help nonsense", "no command begins with that; `help` lists all"),
                ("clear port", "there is no port")):
            self.assertEqual(self.command(terminal, words), f"{words}: {why}\n")
        self.assertEqual(self.command(terminal, "set log lib.* info"), "")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_programs_and_their_objects(self):
        terminal = self.start_terminal()
        self.ping()
        until(lambda: re.search(r" RTS .* here ", self.command(terminal, "show qps")), "a pair")
        self.assertRegex(self.command(terminal, "show memory"), r"0x[0-9a-f]{8} +0x")
        self.assertRegex(self.command(terminal, "show programs"), r" ping\n")
        self.assertEqual(self.command(terminal, "show paths").splitlines()[0],
                         self.uroce("stat", "--paths").stdout.splitlines()[0])
        self.assertEqual(self.command(terminal, "clear stats"), "")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def columns(self, terminal, what, *names):
        """The numbers of these columns in the first line."""
        said = self.command(terminal, f"show {what}").split("\n\n")[0]
        head, *lines = [re.sub("(next hop|trip ns|CNPs in)", lambda title: title[0].replace(" ", "-"), line).split()
                        for line in said.splitlines()]
        return [int(lines[0][head.index(name)]) for name in names] if lines else None

    def listed(self, what):
        """The first entry, as programs beside the prompt see it."""
        return json.loads(self.uroce("stat", "--json", f"--{what}").stdout)[0]

    def test_clear_of_queue_pairs(self):
        """The prompt's view counts from then on; others' views do not change."""
        terminal = self.start_terminal()
        program = self.ping()
        names = ("out", "in", "again")
        until(lambda: min((self.columns(terminal, "qps", *names) or [0])[:2]) > 300, "packets")
        # the program must not send while it is asked how much it sent
        program.send_signal(signal.SIGSTOP)
        before = self.settled(lambda: self.columns(terminal, "qps", *names))
        self.assertEqual(self.command(terminal, "clear qps"), "")
        self.assertEqual(self.columns(terminal, "qps", *names), [0, 0, 0])
        seen = self.listed("qps")
        self.assertEqual([seen[key] for key in ("tx_packets", "rx_packets", "retransmitted")], before)
        program.send_signal(signal.SIGCONT)
        until(lambda: self.columns(terminal, "qps", "out")[0] > 10, "packets after it")
        self.assertLess(self.columns(terminal, "qps", "out")[0], self.listed("qps")["tx_packets"])
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    @staticmethod
    def settled(look):
        """The line that look() finds five times."""
        seen = [None]

        def same():
            seen.append(look())
            return seen[-5:] == 5 * [seen[-1]]

        until(same, "a moment of rest")
        return seen[-1]

    def test_clear_of_memory(self):
        terminal = self.start_terminal()

        def counted():
            said = self.command(terminal, "show memory").split("\n\n")[1]
            return [int(number) for number in re.findall(r"^ *(\d+)  ", said, re.MULTILINE)]

        self.ping(5).wait()
        until(lambda: counted()[0] == counted()[1] > 0, "the end of the regions")
        self.assertEqual(self.command(terminal, "clear memory"), "")
        self.assertEqual(set(counted()), {0})
        self.assertGreater(json.loads(self.uroce("stat", "--json").stdout)["mrs_made"], 0)
        self.assertRegex(self.uroce("stat", "--prometheus").stdout,
                         r'\nuroce_mrs_made_total\{device="uroce0"\} [1-9]')
        self.ping(5).wait()
        until(lambda: counted()[0] == counted()[1] > 0, "those after it")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_clear_of_what_is_behind_the_port(self):
        terminal, peer = self.memif_terminal(), self.peer_terminal()
        qpn = re.search("0x[0-9a-f]{6}", self.command(peer, "start rx"))[0]
        until(lambda: self.command(terminal, f"start tx 10.7.0.2 {qpn}") == "", "a source")
        until(lambda: (self.columns(terminal, "neighbours", "changes") or [0])[0] > 0, "an answer")
        self.assertEqual(self.command(terminal, "clear neighbours"), "")
        self.assertEqual(self.command(terminal, "clear paths"), "")
        looks = self.columns(terminal, "neighbours", "looks", "changes")
        seen = self.listed("neighbours")
        self.assertEqual((seen["address"], seen["from"]), ("10.7.0.2", "-"))
        self.assertLess(looks[0], seen["looks"])
        # an entry begins with a look, or with what the peer announced
        self.assertEqual(looks[1], 0)
        self.assertLessEqual(seen["changes"], 1)
        for end in (terminal, peer):
            end.write("quit\n")
            self.assertEqual(end.status(), 0)

    def test_clear_of_paths_and_connections(self):
        """The queue pair that rdma_cm has connected, on the port."""
        terminal = self.memif_terminal()
        peer = self.start_peer()
        server = subprocess.Popen([UROCE, "run", "--quiet", "--", "rping", "-s", "-P", "-a", "10.7.0.1", "-p", "18599"],
                                  env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, server)
        until(lambda: " 10.7.0.1:18599 " in self.command(terminal, "show connections"), "a listener")

        def start_client():
            client = subprocess.Popen([UROCE, "run", "--quiet", "--socket", peer, "--", "rping", "-c", "-a",
                                       "10.7.0.1", "-p", "18599", "-C", "100000000"], env=self.environment,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(self.end, client)
            return client

        def samples():
            return (self.columns(terminal, "paths", "samples") or [0])[0]

        def connection():
            """(out, in) of the connected id."""
            line = re.search(r"^ESTABLISHED .* 0x\w+ +(\d+) +(\d+) +\d+ +\d+  rping",
                             self.command(terminal, "show connections"), re.MULTILINE)
            return line and tuple(map(int, line.groups()))

        client = start_client()
        self.assertEqual(until(connection, "a connection"), (1, 2), "REQ, REP, RTU")
        self.assertEqual(self.command(terminal, "clear connections"), "")
        self.assertEqual(connection(), (0, 0))
        listed = json.loads(self.uroce("stat", "--json", "--cm").stdout)
        self.assertIn((1, 2), [(id_["messages_sent"], id_["messages_received"]) for id_ in listed])
        until(lambda: samples() > 300, "samples")
        for program in (client, server):
            program.send_signal(signal.SIGSTOP)
        self.addCleanup(server.send_signal, signal.SIGCONT)
        before = self.settled(lambda: self.columns(terminal, "paths", "samples"))
        self.assertEqual(self.command(terminal, "clear paths"), "")
        self.assertEqual(self.columns(terminal, "paths", "samples"), [0])
        self.assertEqual([self.listed("paths")["samples"]], before)
        for program in (client, server):
            program.send_signal(signal.SIGCONT)
        until(lambda: samples() > 0, "samples after it")
        client.kill()
        until(lambda: self.columns(terminal, "paths", "samples") is None, "the end of the path")
        client = start_client()
        # a path that is made again has all its counts since
        until(lambda: self.columns(terminal, "paths", "samples") and self.listed("paths")["samples"] > before[0],
              "samples of another path")
        for program in (client, server):
            program.send_signal(signal.SIGSTOP)
        self.addCleanup(client.send_signal, signal.SIGCONT)
        self.settled(lambda: self.columns(terminal, "paths", "samples"))
        self.assertEqual(samples(), self.listed("paths")["samples"])
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_capture(self):
        terminal = self.start_terminal()
        file = self.folder / "frames.pcapng"
        self.assertEqual(self.command(terminal, "capture stop"), "capture stop: no capture runs\n")
        fifo = self.folder / "fifo" # without a reader: the prompt must not wait for one
        os.mkfifo(fifo)
        for path, why in (("/nonexistent/file", "No such file or directory"), ("-", "must be a file"),
                          (fifo, "must be a file")):
            self.assertEqual(self.command(terminal, f"capture start {path}"),
                             f"capture start {path}: {why}\n")
        self.assertEqual(self.command(terminal, f"trace save {fifo}"), f"trace save {fifo}: must be a file\n")
        self.assertEqual(self.command(terminal, f"capture start {file}"), "")
        self.assertEqual(self.command(terminal, f"capture start {file}.too"),
                         f"capture start {file}.too: the capture into {file} still runs; "
                         "`capture stop` ends it\n")
        self.ping(5)
        # programs of this host: a WRITE and its acknowledgement
        until(lambda: re.search(r": [1-9]\d+ frames so far", self.command(terminal, "show capture")),
              "frames")
        said = self.command(terminal, "capture stop")
        frames = int(re.fullmatch(rf"{file}: (\d+) frames captured, 0 lost\n", said)[1])
        self.assertEqual(self.command(terminal, "show capture"), "no capture runs\n")
        self.assertEqual(self.frames_in(file), frames)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertFalse(pathlib.Path(f"{file}.too").exists())
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_trace(self):
        terminal = self.start_terminal()
        for command, why in (("trace keep 1 8", "must be the number of a queue pair, 2 .. 0xfffffe"),
                             ("trace keep 0x12 0", "must keep 1 .. 16384 packets"),
                             ("trace keep 0x12 16385", "must keep 1 .. 16384 packets"),
                             ("trace keep 0x12 8", "no queue pair has the number 0x000012"),
                             ("trace save -", "must be a file"),
                             ("trace end", "no queue pair is traced")):
            self.assertEqual(self.command(terminal, command), f"{command}: {why}\n")
        program = self.ping()
        pairs = until(lambda: re.findall(r"^(0x\w+) +RC +RTS", self.command(terminal, "show qps"),
                                         re.MULTILINE), "a pair")
        self.assertEqual(self.command(terminal, f"trace keep {pairs[0]} 8"), "")
        until(lambda: re.search(r": 8 of \d\d+ packets", self.command(terminal, "trace show")), "8")
        self.end(program)
        until(lambda: pairs[0] not in self.command(terminal, "show qps"), "the end of the pair")
        *lines, last = self.command(terminal, "trace show").splitlines()
        self.assertEqual(len(lines), 8)
        for line in lines:
            self.assertRegex(line, r"^ +\d+\.\d{6} [<>] \w")
        self.assertRegex(last, rf"^queue pair {pairs[0]}: 8 of \d+ packets are kept$")
        file = self.folder / "trace.pcapng"
        self.assertEqual(self.command(terminal, f"trace save {file}"), f"{file}: 8 packets\n")
        self.assertEqual(self.frames_in(file), 8)
        end = self.uroce("trace", "--last", "3", pairs[0])
        self.assertEqual((end.returncode, end.stderr, len(end.stdout.splitlines())), (0, "", 3))
        self.assertEqual([line[13:] for line in end.stdout.splitlines()],
                         [line[13:] for line in lines[-3:]])
        self.assertEqual(self.command(terminal, "trace end"), "")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def memif_terminal(self):
        """A prompt whose engine has a port, for a peer."""
        return open_prompt(self.words("-i", "--port", "net_memif0", "--mtu", "4200",
                                      eal=[MEMIF.format("server", self.folder)]),
                           self.environment)[0]

    def peer_terminal(self):
        own, self.socket = self.socket, str(self.folder / "peer.sock")
        terminal, _ = open_prompt(self.words("-i", "--port", "net_memif0", "--mtu", "4200",
                                             eal=[MEMIF.format("client", self.folder)],
                                             address="10.7.0.2/24"), self.environment)
        self.socket = own
        return terminal

    def traffic(self, terminal, end):
        """(messages, octets) of tx or rx so far."""
        said = self.command(terminal, "show traffic")
        return tuple(map(int, re.search(rf"{end}: (\d+) messages, (\d+) octets", said).groups()))

    def test_traffic_to_another_engine(self):
        sink, source = self.memif_terminal(), self.peer_terminal()
        qpn = re.search("0x[0-9a-f]{6}", self.command(sink, "start rx"))[0]
        self.assertEqual(self.command(source, "set traffic size 1000"), "")
        # the link and the neighbour may need a moment
        until(lambda: self.command(source, f"start tx 10.7.0.1 {qpn}") == "", "a source")
        until(lambda: self.traffic(sink, "rx")[0] > 1000, "1000 messages")
        messages, octets = self.traffic(sink, "rx")
        self.assertEqual(octets, 1000 * messages)
        self.assertIn("start tx 10.7.0.1 7: already running; `stop` ends it",
                      self.command(source, "start tx 10.7.0.1 7"))
        self.command(source, "set traffic period 1")
        source.read_until("\ntx: ")
        self.command(source, "set traffic period 0")
        sent = re.findall(r"tx: (\d+) messages, ", self.command(source, "stop"))[-1]
        got = re.search(r"rx: (\d+) messages, ", self.command(sink, "stop"))[1]
        self.assertLessEqual(int(got), int(sent))
        self.assertEqual(self.command(sink, "stop"), "stop: no traffic runs\n")
        for terminal in (sink, source):
            terminal.write("quit\n")
            self.assertEqual(terminal.status(), 0)

    def test_a_rate_of_traffic(self):
        terminal = self.start_terminal()
        self.assertEqual(self.command(terminal, "set traffic rate 100"), "")
        self.assertEqual(self.command(terminal, "start tx 10.7.0.1 0x12"), "")
        until(lambda: self.traffic(terminal, "tx")[0] > 20, "messages")
        said = self.command(terminal, "stop")
        messages, seconds = re.search(r"tx: (\d+) messages, .* in ([\d.]+) s", said).groups()
        # no more than the rate, and ten milliseconds of it that were missed
        self.assertLessEqual(int(messages), 100 * (float(seconds) + 0.1) + 2)
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_traffic_that_cannot_be(self):
        terminal = self.start_terminal()
        for command, why in (
                ("start tx nowhere 0x12", "must be an IPv4 or IPv6 address (Invalid argument)"),
                ("start tx 10.7.0.1 1", "must be the number of a queue pair, 2 .. 0xfffffe"),
                ("start tx 10.7.0.1 0x1000000", "must be the number of a queue pair, 2 .. 0xfffffe"),
                ("start tx 10.7.0.1 12x", "must be the number of a queue pair, 2 .. 0xfffffe"),
                ("set traffic size 0", "must be in 1 .. 4096"),
                ("set traffic size 4097", "must be in 1 .. 4096"),
                ("set traffic rate -1", "must be in 0 .. 1000000000"),
                ("set traffic period 3601", "must be in 0 .. 3600"),
                ("start tx 2001:db8::1 0x12",
                 "the engine has no address of this family (Invalid argument)"),
                ("stop", "no traffic runs")):
            self.assertEqual(self.command(terminal, command), f"{command}: {why}\n")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_messages_larger_than_a_packet(self):
        terminal = self.start_terminal("--mtu", "1500")
        self.assertEqual(self.command(terminal, "set traffic size 1025"), "")
        self.assertEqual(self.command(terminal, "start tx 10.7.0.1 0x12"),
                         "start tx 10.7.0.1 0x12: messages of 1025 octets: must be 1 .. 1024, to fit into a "
                         "packet; lower it with set traffic size (Message too long)\n")
        self.assertEqual(self.command(terminal, "set traffic size 1024"), "")
        self.assertEqual(self.command(terminal, "start tx 10.7.0.1 0x12"), "")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_traffic_ends_with_the_engine(self):
        terminal = self.start_terminal()
        qpn = re.search("0x[0-9a-f]{6}", self.command(terminal, "start rx"))[0]
        self.assertEqual(self.command(terminal, f"start tx 10.7.0.1 {qpn}"), "")
        until(lambda: self.traffic(terminal, "rx")[0] > 0, "messages")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def read_slowly(self, program):
        """Reads what the program prints, more slowly than the engine sends, until the program ends."""
        stop = time.monotonic() + ENOUGH / 3
        while os.read(program.stdout.fileno(), 1 << 16):
            self.assertLess(time.monotonic(), stop, "the program does not end")
            select.select([], [], [], 0.01)
        self.assertEqual(program.wait(ENOUGH), 0, program.stderr.read())

    def test_frames_faster_than_they_are_read(self):
        """A capture and a trace end when they are to, although there are always more frames."""
        terminal = self.start_terminal()
        qpn = re.search("0x[0-9a-f]{6}", self.command(terminal, "start rx"))[0]
        self.assertEqual(self.command(terminal, f"start tx 10.7.0.1 {qpn}"), "")
        until(lambda: self.traffic(terminal, "rx")[0] > 0, "messages")
        for words, signals in ((["capture", "--buffer", "1", "--seconds", "1", "-"], []),
                               (["capture", "--buffer", "1", "-"], [signal.SIGINT]),
                               (["trace", "--seconds", "1", qpn], []), (["trace", qpn], [signal.SIGTERM])):
            program = subprocess.Popen([UROCE, *words], env=self.environment, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.addCleanup(self.end, program)
            self.addCleanup(program.kill)  # it may wait for its reader for ever
            self.assertTrue(os.read(program.stdout.fileno(), 1))
            for number in signals:
                program.send_signal(number)
            self.read_slowly(program)
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_a_capture_ends_with_the_engine(self):
        terminal = self.start_terminal()
        file = self.folder / "frames.pcapng"
        self.assertEqual(self.command(terminal, f"capture start {file}"), "")
        self.ping()
        until(lambda: re.search(r": [1-9]\d* frames so far", self.command(terminal, "show capture")),
              "frames")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)
        self.assertGreater(self.frames_in(file), 0)

    @staticmethod
    def frames_in(file):
        """The frames of a complete pcapng file: each block has its length twice."""
        octets, at, frames = file.read_bytes(), 0, 0
        while at < len(octets):
            kind, length = struct.unpack_from("=II", octets, at)
            assert octets[at + length - 4:at + length] == octets[at + 4:at + 8], at
            frames += kind == 6  # an Enhanced Packet Block
            at += length
        return frames

    def impaired_terminal(self):
        return open_prompt(self.words(
            "-i", "--port", "net_impair0", "--mtu", "4200",
            eal=[MEMIF.format("server", self.folder), "--vdev=net_impair0,port=net_memif0"]),
            self.environment)[0]

    def test_impairments(self):
        terminal = self.impaired_terminal()
        for words, says in (("drop 2", "set impair drop 2: must be a fraction"),
                            ("drop -1", "must be a fraction"), ("ce x", "must be a fraction"),
                            ("delay_us 60000001", "delay_us 60000001: must be in 0 .. 60000000"),
                            ("delay_us -1", "must be in 0 .. 60000000"),
                            ("jitter 1", "jitter: must be drop, ")):
            self.assertIn(says, self.command(terminal, f"set impair {words}"))
        self.assertEqual(re.findall(r"\d+\.\d+", self.command(terminal, "show impair")),
                         ["0.000000"] * 5)
        peer = self.start_peer()
        self.assertIn("10 iters", self.pingpong(peer, 18598, 10), "neighbours are known")
        for words in ("drop 3%", "duplicate 0.03", "reorder 3%", "corrupt 0.03", "ce 0.5",
                      "delay_us 10"):
            self.assertEqual(self.command(terminal, f"set impair {words}"), "")
        self.assertRegex(self.command(terminal, "show impair"), r"duplicate +3\.0000")
        self.assertRegex(self.writes(peer, 18598, 300), r"1024 +300 ")
        said = self.command(terminal, "show port")
        for fate in ("dropped", "duplicated", "reordered", "corrupted", "ce_marked"):
            self.assertRegex(said, rf"[1-9]\d*  tx_impair_{fate}")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def counter(self, terminal, name):
        shown = re.search(rf"(\d+)  {name}\n", self.command(terminal, "show port"))
        return int(shown[1]) if shown else 0  # zeros are left out

    def test_a_rate_that_comes_and_goes(self):
        """The source sends as fast as it can; messages that exceed the rate are counted."""
        terminal = self.impaired_terminal()
        peer = self.peer_terminal()
        qpn = re.search("0x[0-9a-f]{6}", self.command(peer, "start rx"))[0]
        self.command(terminal, "set traffic size 1000")
        until(lambda: self.command(terminal, f"start tx 10.7.0.2 {qpn}") == "", "a source")

        def passed():
            return self.counter(terminal, "tx_impair_passed")

        def overflowed():
            return self.counter(terminal, "tx_impair_overflowed")

        until(lambda: passed() > 10000, "frames without a rate")
        self.assertEqual((overflowed(), self.counter(terminal, "tx_impair_queue_marked")), (0, 0))
        begun = time.monotonic()
        for words in ("rate 1M", "queue 16k", "ecn 8k"):
            self.assertEqual(self.command(terminal, f"set impair {words}"), "")
        until(lambda: overflowed() > 10000, "frames that found the buffer full")
        until(lambda: self.counter(terminal, "tx_impair_queue_marked") > 100, "marked frames")
        before, lost = passed(), overflowed()
        until(lambda: overflowed() > lost + 10000, "more of them")
        # a frame has more than 1000 octets, and the buffer also holds frames from the beginning
        most = (time.monotonic() - begun) * 1e6 / 8 / 1000 + 256
        self.assertLess(passed() - before, most)
        shown = self.command(terminal, "show impair")
        for line in (r"rate +1000000 ", r"queue +16384 ", r"ecn +8192 "):
            self.assertRegex(shown, line)
        self.assertEqual(self.command(terminal, "set impair rate off"), "")
        self.assertRegex(self.command(terminal, "show impair"), r"rate +off ")
        before, lost = passed(), overflowed()
        until(lambda: passed() > before + 10000, "frames without the rate")
        self.assertEqual(overflowed(), lost)
        for end in (terminal, peer):
            end.write("quit\n")
            self.assertEqual(end.status(), 0)

    def test_rates_that_cannot_be(self):
        terminal = self.impaired_terminal()
        none = "no frame waits without a rate; use `set impair rate` first"
        rate = "must be off, or bits a second, 100k .. 1000G (k, M, G: 1000, ...)"
        octets = "must be octets, 1k .. 16M (k, M: 1024, ...)"

        def refused(*rows):
            before = self.command(terminal, "show impair")
            for words, why in rows:
                self.assertEqual(self.command(terminal, f"set impair {words}"),
                                 f"set impair {words}: {why}\n")
            self.assertEqual(self.command(terminal, "show impair"), before)

        refused(("queue 64k", none), ("ecn 64k", none), ("ecn off", none), ("rate 0", rate),
                ("rate fast", rate), ("rate 99k", rate), ("rate 1001G", rate), ("rate -1G", rate))
        self.assertEqual(self.command(terminal, "set impair rate 1G"), "")
        refused(("queue 0", octets), ("queue 17M", octets), ("queue off", octets),
                ("ecn 0", f"must be off, or {octets[8:]}"),
                ("ecn 256k", "must be less than queue, 262144"), ("rate 1g", rate))
        self.assertEqual(self.command(terminal, "set impair ecn 64k"), "")
        refused(("queue 64k", "must be more than ecn, 65536"))
        self.assertEqual(self.command(terminal, "set impair ecn off"), "")
        self.assertEqual(self.command(terminal, "set impair queue 64k"), "")
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)

    def test_impairments_need_their_device(self):
        terminal = self.start_terminal()
        for command in ("show impair", "set impair drop 1%", "set impair delay_us 1",
                        "set impair rate 1G", "set impair queue 64k", "set impair ecn off"):
            self.assertIn("--vdev=net_impair0,port=NAME", self.command(terminal, command))
        terminal.write("quit\n")
        self.assertEqual(terminal.status(), 0)


class Files(EngineCase):
    def write(self, text):
        path = self.folder / "commands"
        path.write_text(text)
        return str(path)

    def refused(self, text, says, status=2):
        path = self.write(text)
        end = self.run_uroced("--cmdline-file", path)
        self.assertEqual(end.returncode, status)
        self.assertEqual(end.stderr.replace(path, "FILE"), f"uroced: FILE:{says}\n")
        return end.stdout

    def test_a_file_of_commands(self):
        path = self.write("# a comment\n\nset idle spin\nshow config\nquit\nshow port\n")
        end = self.run_uroced("--cmdline-file", path)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        self.assertRegex(end.stdout, r"idle +spin")
        self.assertNotIn("no port", end.stdout)

    def test_an_error_names_file_and_line(self):
        said = self.refused("show config\nnonsense\n",
                            "2: nonsense: must be show, clear, set, capture, start, stop, trace, help or "
                            "quit (`help` lists all commands)")
        self.assertNotIn("socket-mode", said, "nothing was executed")
        self.refused("\nset idle often\n", "2: set idle often: must be spin or adaptive")
        self.refused("quit\nset idle\n", "2: set idle: one more word is needed: spin or adaptive")
        for line, why in (("set traffic size 0", "must be in 1 .. 4096"),
                          ("set traffic period 3601", "must be in 0 .. 3600"),
                          ("start tx 10.0.0.1 0x1000000",
                           "must be the number of a queue pair, 2 .. 0xfffffe"),
                          ("trace keep 1 5", "must be the number of a queue pair, 2 .. 0xfffffe"),
                          ("trace keep 17 x", "must keep 1 .. 16384 packets"),
                          ("set impair drop 101%", "must be a fraction in 0 .. 1 or a percentage"),
                          ("set impair delay_us -1", "must be in 0 .. 60000000"),
                          ("set impair rate 1", "must be off, or bits a second, 100k .. 1000G "
                           "(k, M, G: 1000, ...)"),
                          ("set impair queue x", "must be octets, 1k .. 16M (k, M: 1024, ...)"),
                          ("set impair ecn x", "must be off, or octets, 1k .. 16M (k, M: 1024, ...)"),
                          ("set log nosuch.type debug", "nosuch.type must be a type of DPDK's log, such as uroce or lib.*")):
            said = self.refused(f"show config\n  {line}\n", f"2: {line}: {why}")
            self.assertNotIn("socket-mode", said, "nothing was executed")
        self.refused("clear port\n", "1: clear port: there is no port", status=1)
        self.refused("x" * 600 + "\n", "1: " + "x" * 511 + ": the line is too long")

    def test_no_such_file(self):
        for path, why in (("/nonexistent", "No such file or directory"), ("/", "Is a directory")):
            end = self.run_uroced("--cmdline-file", path)
            self.assertEqual((end.returncode, end.stdout, end.stderr),
                             (2, "", f"uroced: --cmdline-file {path}: {why}\n"))

    def test_a_pipe(self):
        """It can be read once only, but all lines are checked before the first is executed."""
        fifo = str(self.folder / "fifo")  # without a writer: nothing waits for one
        os.mkfifo(fifo)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.write(writer, b"quit\n")
        os.close(writer)
        for path, stdin in ((fifo, subprocess.DEVNULL), ("/dev/stdin", reader)):
            end = subprocess.run(self.words("--exit-when-idle", "1", "--cmdline-file", path), env=self.environment,
                                 timeout=ENOUGH, stdin=stdin, capture_output=True, text=True)
            self.assertEqual((end.returncode, end.stdout, end.stderr),
                             (2, "", f"uroced: --cmdline-file {path}: must be a file, not a pipe\n"))

    def test_what_is_no_pipe(self):
        """A file as standard input, and no commands at all."""
        with open(self.write("show config\nquit\n"), encoding="ascii") as file:
            end = subprocess.run(self.words("--cmdline-file", "/dev/stdin"), env=self.environment, timeout=ENOUGH,
                                 stdin=file, capture_output=True, text=True)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        self.assertIn("cmdline-file     /dev/stdin\n", end.stdout)
        end = self.run_uroced("--exit-when-idle", "1", "--cmdline-file", "/dev/null")
        self.assertEqual((end.returncode, end.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
