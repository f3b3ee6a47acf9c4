#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroced as a service: the unit files, the messages to the service manager, a restart after kill -9."""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import unittest

from engine_rig import ENOUGH, UROCE, UROCED, EngineCase, until

CONFIG = pathlib.Path(__file__).resolve().parents[3] / "config"
UNITS = ("uroced.service", "uroced@.service")
BUILT = pathlib.Path(os.environ["UNITS"])  # the folder of the units, made for this prefix


class Units(EngineCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_verify(self):
        """With the built program instead of the installed one: verify looks for it."""
        for name in UNITS:
            text, n = re.subn(r"^(ExecStart=)\S+/uroced ", rf"\g<1>{UROCED} ",
                              (BUILT / name).read_text(), flags=re.MULTILINE)
            self.assertEqual(n, 1, name)
            unit = self.folder / name.replace("@", "@one")
            unit.write_text(text)
            end = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)],
                                 capture_output=True, text=True, timeout=ENOUGH)
            self.assertEqual((end.returncode, end.stderr), (0, ""), name)


class Manager(EngineCase):
    """Plays the part of systemd."""

    def setUp(self):
        super().setUp()
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.settimeout(ENOUGH)
        self.manager.bind(str(self.folder / "notify"))
        self.environment |= {"NOTIFY_SOCKET": str(self.folder / "notify")}

    def heard(self):
        return self.manager.recv(256).decode()

    def test_exec_start_as_written(self):
        """Lines of each unit, with this test's folders instead of the system's."""
        for name in UNITS:
            line = re.search(r"^ExecStart=(.*)$", (BUILT / name).read_text(), re.MULTILINE)[1]
            line = re.sub(r"^\S+/uroced ", f"{UROCED} ", line).replace("%i", "one")
            (self.folder / "etc").mkdir(exist_ok=True)
            line = line.replace("/etc/uroce/", f"{self.folder}/etc/")
            line = re.sub(r"/run/uroce(-one)?/", f"{self.folder}/", line)
            for conf in ("uroced.conf", "one.conf"):
                shutil.copy(CONFIG / "uroced.conf", self.folder / "etc" / conf)
            eal = f"--no-huge -m128 --file-prefix={self.folder.name}"
            words = [part for word in shlex.split(line)
                     for part in (eal.split() if word == "$UROCED_EAL" else [word])]
            engine = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.addCleanup(self.end, engine)
            self.assertEqual(self.heard(), "READY=1", name)
            self.assertEqual(self.uroce("stat").returncode, 0)
            engine.send_signal(signal.SIGTERM)
            self.assertEqual(self.heard(), "STOPPING=1")
            self.assertEqual(engine.wait(ENOUGH), 0)

    def test_watchdog(self):
        self.environment |= {"WATCHDOG_USEC": "100000"}
        self.start()
        self.assertEqual(self.heard(), "READY=1")
        for _ in range(3):
            self.assertEqual(self.heard(), "WATCHDOG=1")

    def test_no_manager_listens(self):
        self.manager.close()
        os.unlink(self.folder / "notify")
        self.start()
        self.assertEqual(self.uroce("stat").returncode, 0)


class Reload(EngineCase):
    """SIGHUP: options that can change do so while a program runs; the others are named."""

    def setUp(self):
        super().setUp()
        self.config = self.folder / "uroced.conf"

    def serve(self, text, *options, **how):
        self.write(text)
        return self.start("--config", str(self.config), *options, **how)

    def write(self, text):
        self.config.write_text(f"[uroced]\n{text}")

    def reload(self, engine, text):
        """The engine's first line."""
        self.write(text)
        engine.send_signal(signal.SIGHUP)
        return engine.stdout.readline().strip()

    def mode(self):
        return oct(os.stat(self.socket).st_mode & 0o777)

    def test_what_can_change(self):
        engine = self.serve("idle = adaptive\n")
        program = self.ping()
        until(lambda: json.loads(self.uroce("stat", "--json", "--qps").stdout), "queue pairs")
        self.assertEqual(self.reload(engine, "idle = spin\nlog = info\nsocket-mode = 0660\n"),
                         f"uroced: reloaded {self.config}: idle spin, log info, socket-mode 0660")
        self.assertEqual(self.reload(engine, "idle = spin\nlog = info\nsocket-mode = 0660\n"),
                         f"uroced: reloaded {self.config}: nothing has changed")
        self.assertEqual(self.mode(), "0o660")
        self.assertEqual(self.reload(engine, ""), f"uroced: reloaded {self.config}: "
                         "idle adaptive, log notice, socket-mode 0600")
        self.assertEqual(self.mode(), "0o600")
        self.assertIsNone(program.poll(), "the program goes on")
        self.assertEqual(self.uroce("ping", "--count", "2").returncode, 0)

    def test_spin_is_in_force(self):
        """A spinning lcore goes on polling in vain."""
        engine = self.serve("")
        self.reload(engine, "idle = spin\n")

        def polls():
            return json.loads(self.uroce("stat", "--json").stdout)["idle_polls"]

        first = polls()
        until(lambda: polls() > first + 1000000, "a million polls")

    def test_what_needs_a_restart(self):
        engine = self.serve("exit-when-idle = 600\n")
        self.assertEqual(self.reload(engine, "exit-when-idle = 60\nidle = spin\nmtu = 1500\n"),
                         f"uroced: reloaded {self.config}: idle spin")
        self.assertEqual(engine.stdout.readline(), "uroced: restart uroced for the other changes "
                         f"in {self.config}: mtu, exit-when-idle\n")
        self.assertEqual(self.reload(engine, "exit-when-idle = 600\nidle = spin\n"),
                         f"uroced: reloaded {self.config}: nothing has changed")

    def test_the_command_line_goes_before(self):
        engine = self.serve("", "--socket-mode", "0640")
        self.assertEqual(self.reload(engine, "socket-mode = 0666\n"),
                         f"uroced: reloaded {self.config}: nothing has changed")
        self.assertEqual(self.mode(), "0o640")

    def test_its_lines_have_levels(self):
        """A successful reload is a notice, a refused one an error."""
        engine = self.serve("log = error\n")
        self.write("log = error\nsocket-mode = 0666\n")
        engine.send_signal(signal.SIGHUP)
        until(lambda: self.mode() == "0o666", "the new mode")
        self.assertIn("cannot reload", self.reload(engine, "nonsense\n"))

    def test_a_wrong_file_changes_nothing(self):
        engine = self.serve("")
        for text, why in (("socket-mode = 0666\nidle = often\n", ":3: --idle often: "),
                          ("socket-mode = 0666\nnonsense\n", ":3: 'nonsense': "),
                          ("socket-mode = 0666\nport = x\nnetdev = y\n", "--netdev and --port")):
            said = self.reload(engine, text)
            self.assertTrue(said.startswith("uroced: cannot reload: "), said)
            self.assertIn(why, said)
            self.assertTrue(said.endswith(": nothing has changed"), said)
            self.assertEqual(self.mode(), "0o600")
        self.config.unlink()
        engine.send_signal(signal.SIGHUP)
        self.assertIn("No such file", engine.stdout.readline())
        self.assertEqual(self.uroce("stat").returncode, 0)

    @unittest.skipUnless(os.geteuid() == 0, "an engine that drops privileges needs root")
    def test_groups(self):
        """An engine may give its socket to groups that it was in when it started."""
        engine = self.serve("socket-mode = 0660\n", extra_groups=[60001])
        self.assertEqual(self.reload(engine, "socket-mode = 0660\nsocket-group = 60001\n"),
                         f"uroced: reloaded {self.config}: socket-group 60001")
        self.assertEqual(os.stat(self.socket).st_gid, 60001)
        said = self.reload(engine, "socket-mode = 0666\nsocket-group = 60002\nidle = spin\n")
        self.assertIn("Operation not permitted: nothing has changed", said)
        self.assertEqual((os.stat(self.socket).st_gid, self.mode()), (60001, "0o660"))
        self.assertIn("socket-group 0", self.reload(engine, "socket-mode = 0660\n"))

    def test_the_manager_hears(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.settimeout(ENOUGH)
            manager.bind(str(self.folder / "notify"))
            self.environment |= {"NOTIFY_SOCKET": str(self.folder / "notify")}
            engine = self.serve("")
            engine.send_signal(signal.SIGHUP)
            heard = [manager.recv(256).decode() for _ in range(3)]
            self.assertEqual(heard, ["READY=1", "RELOADING=1", "READY=1"])

    def test_without_a_file(self):
        """As before, the end of its terminal ends uroced."""
        # nohup, under which tests may run, has programs ignore it
        engine = self.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        engine.send_signal(signal.SIGHUP)
        self.assertEqual(engine.wait(ENOUGH), -signal.SIGHUP)


class Wrong(EngineCase):
    """A mistake on the command line: status 2, and nothing on stdout."""

    def expect_status(self, status, *rows):
        for options, eal in rows:
            with self.subTest(options=options, eal=eal):
                end = self.run_uroced(*options, eal=eal)
                self.assertEqual((end.returncode, end.stdout), (status, ""), end.stderr)
                self.assertRegex(end.stderr, r"\Auroced: [^\n]+\n\Z")

    def test_what_no_machine_makes_right(self):
        """Unknown, without its value, out of range, contradictory: a service manager must not try again."""
        config = self.folder / "uroced.conf"
        config.write_text("[uroced]\nmtu = 4200\nmtu = 1500\n")
        self.expect_status(
            2, (["--no-such-option"], []), (["nonsense"], []), (["--mtu"], []), (["--mtu", "1"], []),
            (["--netdev", "lo", "--port", "net_null0"], ["--vdev=net_null0"]),
            (["--config", str(config)], []), (["--cmdline-file", "/nonexistent"], []),
            ([], ["--vdev=net_nosuch0"]), ([], ["--vdev=net_memif0,role=often"]),
            ([], ["--vdev=net_null0,nonsense=1"]), ([], ["--lcores=(0-16)@0"]))

    def test_what_another_machine_makes_right(self):
        """... or one that may succeed later: a service manager may try again."""
        self.expect_status(
            1, (["--netdev", "nosuch0"], []), ([], ["--vdev=net_af_packet0,iface=nosuch0"]),
            ([], ["--vdev=net_pcap0,iface=nosuch0"]), ([], ["--vdev=net_tap0,iface=uroce0,remote=nosuch0"]),
            ([], ["--vdev=net_pcap0,rx_pcap=/nonexistent,tx_pcap=/dev/null"]),
            (["--port", "0000:ff:1f.7"], ["-a", "0000:ff:1f.7"]),
            (["--port", "net_ring0"], ["--vdev=net_ring0", "-m", "32"]))
        self.socket = "/proc/none/uroced.sock"
        self.expect_status(1, ([], []))

    def test_no_memory_for_packet_buffers(self):
        """EAL's option -m gives those of some ports memory. Those of others are in memory of their own."""
        few = 70_000_000  # octets of private memory
        for device, limit, says in (("net_ring0", [], "give EAL at least -m 137"),
                                    ("net_null0", ["prlimit", f"--data={few}"], "they need 73 MiB beside EAL's own memory (-m 64)")):
            words = self.words("--port", device, eal=[f"--vdev={device}", "-m", "32"])
            end = subprocess.run([*limit, *words], env=self.environment, timeout=ENOUGH, stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True)
            self.assertEqual((end.returncode, end.stderr), (
                1, f"uroced: no memory for 16384 packet buffers of 4416 octets: {says}\n"))

    @unittest.skipUnless(os.geteuid() == 0, "another user needs root")
    def test_what_another_user_makes_right(self):
        """The interface exists, but the user may not read its frames."""
        self.folder.chmod(0o777)
        for device in ("net_af_packet0", "net_pcap0"):
            end = self.run_uroced(eal=[f"--vdev={device},iface=lo"], user=65534, group=65534, extra_groups=[], cwd="/")
            self.assertEqual((end.returncode, end.stdout, end.stderr.count("\n")), (1, "", 1), end.stderr)
            self.assertIn(f"EAL could not create {device}", end.stderr)

    def test_options_of_eal(self):
        """One line: what was given, what is wrong with it, and which values are allowed."""
        with open("/sys/devices/system/cpu/possible", encoding="ascii") as f:
            last = int(f.read().split("-")[-1])
        lists = "uroced --help -- lists"
        for words, why in (
                (["--no-such-option"], f"unrecognized option '--no-such-option' ({lists} what EAL takes)"),
                (["-Z"], f"unrecognized option '-Z' ({lists} what EAL takes)"),
                (["--vdev"], "option '--vdev' has no value, or one that it does not take "
                 f"({lists} what EAL takes)"),
                (["-l", str(last + 1)], f"lcore {last + 1} unavailable; invalid core list, "
                 f"please check specified cores are part of 0-{last} ({lists} what EAL takes)"),
                (["--vdev=nonsense"], 'failed to parse device "nonsense"; Unable to parse device '
                 f"'nonsense' ({lists} what EAL takes)")):
            end = self.run_uroced(eal=words)
            self.assertEqual((end.returncode, end.stdout), (2, ""), end.stderr)
            self.assertRegex(end.stderr, r"\Auroced: EAL does not start with '[^\n]*"
                             f"{re.escape(' '.join(words))}': {re.escape(why)}\n\\Z")

    def test_values_of_eals_options(self):
        """Values that EAL would accept, crash on or wait for ever with; eal_options_test.c has all of them."""
        for words, why in ((["-m", "abc"], "-m abc: must be MiB, in 1 .. 524288"),
                           (["--iova-mode=often"], "--iova-mode often: must be pa or va"),
                           (["--proc-type=secondary"], "--proc-type secondary: must be primary or auto: "
                            "an engine is a primary process"),
                           (["--vdev=net_memif0,role"],
                            "--vdev net_memif0,role: 'role' has no value, as in key=value"),
                           (["--mbuf-pool-ops-name=nosuch"], "--mbuf-pool-ops-name nosuch: must name mempool operations of DPDK or of a library given with -d, such as ring_mp_mc or stack")):
            end = self.run_uroced(eal=words)
            self.assertEqual((end.returncode, end.stdout, end.stderr), (2, "", f"uroced: {why}\n"))

    def test_what_eal_lets_pass(self):
        """EAL goes on without a device that a driver refused, and after a word that is not an option."""
        for words, says in ((["--vdev=net_memif0,role=often"],
                             r"EAL could not create net_memif0, from '.*role=often': .*Unknown role: often"),
                            (["nonsense"], r"'nonsense' is not an option of EAL: its options begin with '-' .*")):
            end = self.run_uroced(eal=words)
            self.assertEqual((end.returncode, end.stdout), (2, ""), end.stderr)
            self.assertRegex(end.stderr, rf"\Auroced: {says}[^\n]*\n\Z")

    def test_the_socket_of_another_engines_port(self):
        """The driver's message, and the process that holds the socket; with a name in the file system, and with an
        abstract one."""
        for number, how in enumerate(("socket-abstract=no,", "")):
            vdev = f"--vdev=net_memif0,role=server,socket={self.folder}/memif{number}.sock,{how}bsize=8192"
            engine = self.start("--port", "net_memif0", eal=[vdev])
            self.socket += ".too"
            for _ in range(4):
                end = self.run_uroced("--port", "net_memif0", eal=[vdev])
                self.assertEqual((end.returncode, end.stdout), (1, ""), "it may end")
                self.assertRegex(end.stderr, r"\Auroced: EAL could not create net_memif0, .*Address already in use.*"
                                 rf"; process {engine.pid} has that socket\n\Z")
            engine.terminate()
            self.assertEqual(engine.wait(ENOUGH), 0, "nothing has ended the engine that has the socket")

    def test_a_path_that_is_no_socket(self):
        """... stays as it is, and no file is left beside it."""
        file = self.folder / "letter"
        file.write_text("dear")
        for path, what in ((file, "file"), (self.folder, "folder")):
            self.socket = str(path)
            end = self.run_uroced()
            self.assertEqual((end.returncode, end.stdout, end.stderr), (
                1, "", f"uroced: --socket {path}: must be a path where nothing is, or a socket: there is a {what}\n"))
        self.assertEqual(file.read_text(), "dear")
        self.assertFalse([path for path in (*self.folder.iterdir(), *self.folder.parent.glob(
            f"{self.folder.name}.*")) if path.name.endswith(".lock")])

    def test_ports_that_are_not_there(self):
        for words, eal, status, why in (
                (["--port", "net_nosuch0"], [], 2, "--port net_nosuch0: must be a port of EAL (it has: none); add it "
                 "with -a or --vdev before `--`"),
                (["--port", "net_null1"], ["--vdev=net_null0"], 2, "--port net_null1: must be a port of EAL (it has: "
                 "net_null0); add it with -a or --vdev before `--`"),
                ([], ["--vdev=net_null0"], 2, "EAL has a port (net_null0) that is not used: name it with --port or "
                 "remove it"),
                (["--netdev", "lo"], ["--vdev=net_null0"], 2, "EAL has a port (net_null0) that is not used: name it "
                 "with --port instead of --netdev or remove it"),
                (["--netdev", "nosuch0"], [], 1, "--netdev nosuch0: must be an interface of this machine (see ip "
                 "link)")):
            end = self.run_uroced(*words, eal=eal)
            self.assertEqual((end.returncode, end.stdout, end.stderr), (status, "", f"uroced: {why}\n"))

    def test_what_a_config_file_says_is_known_when_it_is_used(self):
        """Then, too, its line is named; an option of the command line has none."""
        config = self.folder / "uroced.conf"
        for entry, status, why in (
                ("netdev = nosuch0", 1, "--netdev nosuch0: must be an interface of this machine (see ip link)"),
                ("port = net_nosuch0", 2, "--port net_nosuch0: must be a port of EAL (it has: none); add it with -a "
                 "or --vdev before `--`"),
                ("cmdline-file = /nonexistent", 2, "--cmdline-file /nonexistent: No such file or directory")):
            config.write_text(f"[uroced]\nidle = spin\n{entry}\n")
            end = self.run_uroced("--config", str(config))
            self.assertEqual((end.returncode, end.stdout, end.stderr),
                             (status, "", f"uroced: --config {config}:3: {why}\n"))
        config.write_text(f"[uroced]\nsocket = {self.folder}\n")
        end = subprocess.run([UROCED, "--no-huge", "-m128", "--", "--config", str(config)], env=self.environment,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ENOUGH, check=False)
        self.assertEqual((end.returncode, end.stdout), (1, ""))
        self.assertTrue(end.stderr.startswith(f"uroced: --config {config}:2: --socket {self.folder}: must be "), end.stderr)

    def test_a_config_file_that_cannot_be_read(self):
        for path, why in (("/nonexistent", "No such file or directory"), ("/", "Is a directory")):
            end = self.run_uroced("--config", path)
            self.assertEqual((end.returncode, end.stdout, end.stderr),
                             (2, "", f"uroced: --config {path}: {why}\n"))

    def test_the_usage_of_eal(self):
        end = self.run_uroced(eal=["--help"])
        self.assertIn("EAL common options:", end.stdout)

    def test_a_value(self):
        end = self.run_uroced("--idle", "often")
        self.assertEqual((end.returncode, end.stdout, end.stderr),
                         (2, "", "uroced: --idle often: must be spin or adaptive\n"))


NOBODY = 65534
# A system's engine that serves only root.
SYSTEM_OF_ROOT = """
import os, socket, subprocess, sys
os.umask(0o077)
os.mkdir("/run/uroce", 0o755)
os.chmod("/run/uroce", 0o755)
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind("/run/uroce/uroced.sock")
sys.exit(subprocess.run(sys.argv[1:], user=65534, group=65534, extra_groups=[]).returncode)
"""


@unittest.skipUnless(os.geteuid() == 0, "another user and a mount namespace need root")
class Refused(EngineCase):
    """A user who may not open the system's socket."""

    def run_refused(self, *words):
        inside = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=755 none /run && exec "$@"',
                  "sh", "/usr/bin/python3", "-c", SYSTEM_OF_ROOT]
        return subprocess.run([*inside, UROCE, "run", *words, "--", "/bin/true"],
                              env=self.environment, timeout=ENOUGH, capture_output=True, text=True)

    def test_the_own_engine_instead(self):
        own = self.folder / "nobody" / "uroce"
        self.folder.chmod(0o755)
        for folder in (own.parent, own):
            folder.mkdir(mode=0o700)
            os.chown(folder, NOBODY, NOBODY)
        del self.environment["UROCE_SOCKET"]
        self.environment["XDG_RUNTIME_DIR"] = str(own.parent)
        self.socket = str(own / "uroced.sock")
        self.start(user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
        told = f"uroce: you may not use /run/uroce/uroced.sock: using {self.socket} instead\n"
        end = self.run_refused("--quiet")
        self.assertEqual((end.returncode, end.stderr), (0, told))
        end = self.run_refused("--no-files")
        self.assertEqual((end.returncode, end.stderr.count("\n")), (0, 2), end.stderr)
        self.assertTrue(end.stderr.startswith(told), end.stderr)
        self.assertTrue(json.loads(self.run_refused("--json").stderr)["refused"])


class Log(EngineCase):
    """DPDK's messages with their levels, to where a service's messages go."""

    EAL = ("--log-level=lib.eal:debug",)

    def test_journal(self):
        ours, its = socket.socketpair()
        with ours, its:
            stream = os.fstat(its.fileno())
            self.environment["JOURNAL_STREAM"] = f"{stream.st_dev}:{stream.st_ino}"
            engine = subprocess.Popen(self.words(eal=self.EAL), env=self.environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=its, text=True)
            self.addCleanup(self.end, engine)
            self.assertRegex(engine.stdout.readline(), "^uroced: serving ")
            its.close()
            self.end(engine)
            said = b"".join(iter(lambda: ours.recv(65536), b"")).decode()
        self.assertRegex(said, r"(?m)^<6>EAL: Detected CPU lcores")
        self.assertRegex(said, r"(?m)^<7>EAL: ")
        self.assertNotRegex(said, r"(?m)^EAL: ")

    def ends(self, *options, eal=()):
        """What an engine that refuses its options writes to the journal."""
        ours, its = socket.socketpair()
        with ours, its:
            stream = os.fstat(its.fileno())
            self.environment["JOURNAL_STREAM"] = f"{stream.st_dev}:{stream.st_ino}"
            end = subprocess.run(self.words(*options, eal=eal), env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=its, timeout=ENOUGH, check=False)
            its.close()
            self.assertNotEqual(end.returncode, 0)
            return b"".join(iter(lambda: ours.recv(65536), b"")).decode()

    def test_reason_to_end(self):
        """It has the level of an error, and is printed at every log level."""
        self.assertEqual(self.ends("--idle", "often"), "<3>uroced: --idle often: must be spin or adaptive\n")
        quiet = self.ends("--port", "none7", "--log", "emergency", eal=("--log-level=*:emergency",))
        self.assertRegex(quiet, r"(?m)^<3>uroced: --port none7: must be a port of EAL")

    @unittest.skipUnless(os.geteuid() == 0, "a /dev of its own needs root")
    def test_syslog(self):
        dev = self.folder / "dev"
        dev.mkdir()
        nodes = ("null", "zero", "urandom")
        for name in nodes:
            (dev / name).touch()
        binds = " && ".join(f"mount --bind /dev/{name} {dev}/{name}" for name in nodes)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
            daemon.settimeout(ENOUGH)
            daemon.bind(str(dev / "log"))
            inside = ["unshare", "--mount", "sh", "-c", f'{binds} && mount --rbind {dev} /dev && exec "$@"', "sh"]
            engine = subprocess.Popen([*inside, *self.words(eal=["--syslog=local3", *self.EAL])],
                                      env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            self.addCleanup(self.end, engine)
            wanted = {rf"<{19 * 8 + 7}>.* uroced\[{engine.pid}\]: EAL: ", "<14>.*: EAL: Detected CPU lcores"}
            while wanted:  # what EAL says before it opens syslog has no facility
                said = daemon.recv(4096).decode()
                wanted = {pattern for pattern in wanted if not re.match(pattern, said)}


PCAP_OF_NO_FRAME = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)


@unittest.skipUnless(os.geteuid() == 0, "a pid namespace and its pids need root")
class Starting(EngineCase):
    """Two containers that share DPDK's folder: an engine starts while another starts in another pid namespace."""

    def words_without_prefix(self, name, *options):
        return [UROCED, "--no-huge", "-m128", *options, "--socket", str(self.folder / name)]

    def popen(self, words):
        engine = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, engine)
        return engine

    def test_its_folder_stays(self):
        self.environment["RUNTIME_DIRECTORY"] = str(self.folder)
        highest = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii")) - 1
        pid = next(n for n in range(highest, 300, -1) if not os.path.exists(f"/proc/{n}"))
        frames = self.folder / "frames"
        os.mkfifo(frames)  # the driver waits for a process that writes to it
        words = self.words_without_prefix(
            "far.sock", f"--vdev=net_pcap0,rx_pcap={frames},tx_pcap=/dev/null", "--", "--port",
            "net_pcap0", "--ip", "10.7.0.1/24")
        start = f'echo {pid - 1} > /proc/sys/kernel/ns_last_pid; "$@" & wait'
        far = self.popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                          start, "sh", *words])
        self.addCleanup(far.kill)  # which ends the engine, too; unshare passes no other signal on
        until((self.folder / "dpdk" / f"uroce-{pid}").exists, "the folder of the engine that starts")
        near = self.popen(self.words_without_prefix("near.sock", "--"))
        self.assertRegex(near.stdout.readline(), "^uroced: serving ")
        frames.write_bytes(PCAP_OF_NO_FRAME)
        said = [far.stdout.readline() for _ in range(2)]  # first, of the port's MTU
        self.assertRegex(said[1], "^uroced: serving ", said)


class Restart(EngineCase):
    def test_after_kill(self):
        """The programs of the killed engine end; the next engine serves at the same socket."""
        engine = self.start()
        program = self.ping()
        until(lambda: json.loads(self.uroce("stat", "--json", "--qps").stdout), "queue pairs")
        engine.kill()
        self.assertNotEqual(program.wait(ENOUGH), 0, "its engine is gone")
        self.start()
        self.assertEqual(self.uroce("ping", "--count", "10").returncode, 0)
        self.assertEqual(json.loads(self.uroce("stat", "--json", "--programs").stdout), [])

    def test_a_second_engine_is_told_who_serves(self):
        engine = self.start()
        end = self.run_uroced()
        self.assertEqual(end.returncode, 1)
        self.assertEqual(end.stderr, f"uroced: --socket {self.socket}: another engine (process "
                         f"{engine.pid}) serves it: use or stop that engine, or choose another "
                         "path\n")
        self.assertEqual(self.uroce("stat").returncode, 0)


if __name__ == "__main__":
    unittest.main()
