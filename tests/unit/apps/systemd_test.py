#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroced under systemd, as `meson install` leaves both: a systemd of the test's own is process 1 of its own namespaces
and control group, with nothing but uroced's units. usage: systemd_test.py BUILD"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))
OPERATIONS = (pathlib.Path(__file__).resolve().parents[3] / "docs/operations.md").read_text()
ATTACHED = os.environ["ATTACHED"]
SYSTEMD = "/lib/systemd/systemd"
ENOUGH = 90  # seconds; only bounds a hang
USER = "60001"  # an ordinary one

# Keeps a control group for what runs in it, and removes it in the end.
OUTER = """
set -eu
mount --make-rprivate /
mkdir "$T/groups"
mount -t cgroup2 none "$T/groups"
mkdir "$T/groups/$NAME"
(echo $BASHPID > "$T/groups/$NAME/cgroup.procs"
 exec unshare --cgroup --mount --pid --ipc --uts --net --fork --kill-child bash -c "$INNER") || true
find "$T/groups/$NAME" -depth -type d -exec rmdir {} \\;
"""

# A root with the installed files, an /etc and a /run to write to, and read-only settings of the kernel.
INNER = """
set -eu
mount --make-rprivate /
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind /dev/null /dev/console
umount -l /sys/fs/cgroup 2> /dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mount --bind "$T/root/usr/local" /usr/local
mount -t tmpfs tmpfs "$T/etc"
mkdir "$T/etc/upper" "$T/etc/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$T/etc/upper,workdir=$T/etc/work" overlay /etc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/units /etc/uroce
for target in sysinit basic network shutdown; do
	printf '[Unit]\\nDefaultDependencies=no\\n' > /run/units/$target.target
done
ip link set lo up
systemd-sysusers /usr/local/lib/sysusers.d/uroce.conf
systemd-tmpfiles --create /usr/local/lib/tmpfiles.d/uroce.conf
sed 's/^# socket-/socket-/' "$CONF" > /etc/uroce/uroced.conf
echo 'ip = 10.7.0.1/24' >> /etc/uroce/uroced.conf
echo 'UROCED_EAL=--no-huge -m256' > /etc/default/uroced
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=uroce-test SYSTEMD_GENERATOR_PATH=/nonexistent \\
	SYSTEMD_UNIT_PATH=/run/units:/usr/local/lib/systemd/system \\
	/lib/systemd/systemd --system --unit=uroced.service --log-target=null --show-status=0
"""


def until(condition, what):
    end = time.monotonic() + ENOUGH
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError(f"not within {ENOUGH} s: {what}")


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-systemd-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.folder.chmod(0o755)
        (cls.folder / "etc").mkdir()
        subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir",
                        str(cls.folder / "root")], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(ATTACHED, cls.folder / "root/usr/local/bin/attached")
        os.environ.pop("LD_LIBRARY_PATH", None)  # the built libraries'
        environment = dict(os.environ, T=str(cls.folder), NAME=cls.folder.name, INNER=INNER,
                           CONF=str(pathlib.Path(__file__).resolve().parents[3] / "config/uroced.conf"))
        cls.log = open(cls.folder / "log", "w+b")
        cls.outer = subprocess.Popen(["unshare", "--mount", "bash", "-c", OUTER], env=environment,
                                     stdin=subprocess.DEVNULL, stdout=cls.log, stderr=cls.log)
        cls.addClassCleanup(cls.end)
        cls.manager = until(cls.find_manager, "systemd")

    @classmethod
    def find_manager(cls):
        """Process 1 of the namespaces, as soon as it is systemd."""
        if cls.outer.poll() is not None:
            cls.log.seek(0)
            raise AssertionError(f"no systemd: {cls.log.read().decode()}")
        for line in subprocess.run(["ps", "-e", "-o", "pid=,ppid=,comm="], capture_output=True,
                                   text=True, check=True).stdout.splitlines():
            pid, parent, name = line.split(None, 2)
            if name == "systemd" and cls.is_below(int(parent)):
                return int(pid)
        return None

    @classmethod
    def is_below(cls, pid):
        """Whether this is `outer`, or a process that it has started."""
        while pid > 1:
            if pid == cls.outer.pid:
                return True
            try:
                pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                return False
        return False

    @classmethod
    def end(cls):
        if manager := getattr(cls, "manager", None):
            os.kill(manager, 9)
        cls.outer.wait(ENOUGH)

    def inside(self, *words):
        return ["nsenter", "-t", str(self.manager), "--mount", "--pid", "--cgroup", "--net", "--ipc",
                "--uts", *words]

    def run_inside(self, *words):
        return subprocess.run(self.inside(*words), capture_output=True, text=True, timeout=ENOUGH,
                              check=False)

    def as_user(self, *words, group="rdma"):
        """A member of that group."""
        return self.inside("setpriv", "--reuid", USER, "--regid", USER, "--groups",
                           self.run_inside("getent", "group", group).stdout.split(":")[2],
                           "uroce", "run", "--quiet", *words)

    def show(self, name):
        return self.run_inside("systemctl", "show", "--value", "-p", name, "uroced").stdout.strip()

    def await_active(self, restarts=None):
        """Its process, once it serves; with the given number of restarts, if one is given."""
        def state():
            if self.show("ActiveState") != "active":
                return None
            return restarts is None or int(self.show("NRestarts")) == restarts

        try:
            until(state, "an active service")
        except AssertionError as problem:
            said = self.run_inside("systemctl", "status", "uroced").stdout
            raise AssertionError(f"{problem}: {said}") from None
        return self.show("MainPID")

    def attach(self):
        program = subprocess.Popen(self.as_user("--", "attached"), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.wait, ENOUGH)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "attached\n")
        return program

    def expect_new_engine(self, programs):
        for program in programs:
            said, complaint = program.communicate(timeout=2 * ENOUGH)
            self.assertEqual((program.returncode, said.split(), complaint),
                             (0, ["flushed", "fatal", "attached"], ""))
        new = subprocess.run(self.as_user("--", "uroce", "ping", "--count", "10"), capture_output=True,
                             text=True, timeout=ENOUGH, check=False)
        self.assertEqual((new.returncode, new.stderr), (0, ""))

    def test_1_the_unit_as_it_was_installed(self):
        self.await_active()
        self.assertEqual(self.show("FragmentPath"), "/usr/local/lib/systemd/system/uroced.service")
        pid = self.show("MainPID")
        line = self.run_inside("cat", f"/proc/{pid}/cmdline").stdout.split("\0")[:-1]
        self.assertEqual(line, ["/usr/local/bin/uroced", "--no-huge", "-m256", "--", "--config",
                                "/etc/uroce/uroced.conf", "--socket", "/run/uroce/uroced.sock"])

    def test_1_telemetry_is_where_the_documentation_says(self):
        """dpdk-telemetry.py looks in the folder dpdk of $RUNTIME_DIRECTORY."""
        pid = self.await_active()
        documented = re.search(r"^RUNTIME_DIRECTORY=(\S+) dpdk-telemetry.py -f (\S+) ", OPERATIONS, re.MULTILINE)
        self.assertIsNotNone(documented)
        path = f"{documented[1]}/dpdk/{documented[2].replace('PID', pid)}/dpdk_telemetry.v2"
        self.assertEqual(self.run_inside("test", "-S", path).returncode, 0, path)

    def test_2_the_group_may_attach(self):
        self.await_active()
        self.assertEqual(self.run_inside("stat", "-c", "%a %U %G", "/run/uroce/uroced.sock").stdout,
                         "660 root rdma\n")
        words = ("--socket", "/run/uroce/uroced.sock", "--", "ibv_devinfo")
        for group, status, says in (("rdma", 0, ""), ("nogroup", 1, "Permission denied")):
            end = subprocess.run(self.as_user(*words, group=group), capture_output=True, text=True,
                                 timeout=ENOUGH, check=False)
            self.assertEqual(end.returncode, status, end.stderr)
            self.assertIn(says, end.stderr)

    def test_3_kill_with_programs_attached(self):
        pid, restarts = self.await_active(), int(self.show("NRestarts"))
        programs = [self.attach() for _ in range(2)]
        self.assertEqual(self.run_inside("kill", "-9", pid).returncode, 0)
        self.assertNotEqual(self.await_active(restarts + 1), pid)
        self.expect_new_engine(programs)

    def test_4_the_watchdog(self):
        """An engine that hangs is replaced, here after less than the unit's 30 seconds."""
        self.assertEqual(self.show("WatchdogUSec"), "30s")
        self.run_inside("mkdir", "-p", "/run/units/uroced.service.d")
        self.run_inside("sh", "-c", "printf '[Service]\\nWatchdogSec=5\\nTimeoutAbortSec=1\\n' > "
                        "/run/units/uroced.service.d/patience.conf")
        self.run_inside("systemctl", "daemon-reload")
        self.run_inside("systemctl", "restart", "uroced")
        pid, restarts = self.await_active(), int(self.show("NRestarts"))
        program = self.attach()
        self.run_inside("kill", "-STOP", pid)
        self.assertNotEqual(self.await_active(restarts + 1), pid)
        self.expect_new_engine([program])

    def test_5_reload_and_stop(self):
        pid = self.await_active()
        self.run_inside("sed", "-i", "s/^socket-mode.*/socket-mode = 0666/", "/etc/uroce/uroced.conf")
        self.assertEqual(self.run_inside("systemctl", "reload", "uroced").returncode, 0)
        until(lambda: self.run_inside("stat", "-c", "%a", "/run/uroce/uroced.sock").stdout == "666\n",
              "the socket's mode")
        self.assertEqual(self.await_active(), pid)
        self.assertEqual(self.run_inside("systemctl", "stop", "uroced").returncode, 0)
        self.assertEqual((self.show("ActiveState"), self.show("Result")), ("inactive", "success"))
        self.assertNotEqual(self.run_inside("test", "-e", "/run/uroce").returncode, 0)

    def restart_with(self, lines):
        """One more line in each of these files of the service's, which the test takes away again."""
        self.addCleanup(self.run_inside, "sh", "-c", "systemctl daemon-reload && systemctl reset-failed uroced && "
                        "systemctl restart uroced")
        for path, line in lines.items():
            self.run_inside("sh", "-c", 'mkdir -p "${0%/*}" && touch "$0" && cp "$0" "$0.before" && '
                            'printf "%s\\n" "$1" >> "$0"', path, line)
            self.addCleanup(self.run_inside, "mv", f"{path}.before", path)
        self.run_inside("sh", "-c", "systemctl daemon-reload && systemctl reset-failed uroced; systemctl restart uroced")
        self.await_active()

    def test_5_memif_in_tmp(self):
        path = f"/tmp/{self.folder.name}.memif"
        self.addCleanup(pathlib.Path(path).unlink, missing_ok=True)
        self.restart_with({"/etc/uroce/uroced.conf": "port = net_memif0",
                           "/etc/default/uroced": "UROCED_EAL=--no-huge -m256 --vdev=net_memif0,role=server,"
                                                  f"socket={path},socket-abstract=no,bsize=8192"})
        self.assertEqual(self.run_inside("test", "-S", path).returncode, 0, path)

    def test_5_af_xdp_in_the_unit(self):
        """With the capabilities that the documentation adds to those of the unit."""
        added = re.search(r"`(CapabilityBoundingSet=[^`\n]*)`\s+for\s+af_xdp", OPERATIONS)
        self.assertIsNotNone(added)
        self.run_inside("sh", "-c", "ip link add near type veth peer name far && ip addr add 10.7.0.1/24 dev near && "
                        "ip link set near up && ip link set far up")
        self.addCleanup(self.run_inside, "ip", "link", "del", "near")
        here = self.run_inside("uroced", "--no-huge", "-m256", "--file-prefix=outside", "--", "--netdev", "near",
                               "--netdev-driver", "af_xdp", "--socket", "/run/outside.sock", "--exit-when-idle", "1")
        if here.returncode != 0:
            self.skipTest(f"no af_xdp here: {here.stderr}")
        self.restart_with({"/run/units/uroced.service.d/xdp.conf": f"[Service]\n{added[1]}",
                           "/etc/uroce/uroced.conf": "netdev = near\nnetdev-driver = af_xdp"})

    def test_6_wrong_options(self):
        """Starts that fail with status 2 are not repeated."""
        self.run_inside("sh", "-c", "echo mtu = often >> /etc/uroce/uroced.conf")
        self.assertNotEqual(self.run_inside("systemctl", "restart", "uroced").returncode, 0)
        self.assertEqual([self.show(name) for name in ("ActiveState", "ExecMainStatus", "NRestarts")],
                         ["failed", "2", "0"])


def can_make_groups():
    """In the control group hierarchy that systemd will get."""
    words = 'mount -t cgroup2 none /sys/fs && mkdir "/sys/fs/$0" && rmdir "/sys/fs/$0"'
    return subprocess.run(["unshare", "--mount", "sh", "-c", words, f"uroce-probe-{os.getpid()}"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists(SYSTEMD):
        print("needs root and systemd")
        sys.exit(77)
    if not can_make_groups():
        print("needs to make control groups")
        sys.exit(77)
    unittest.main()
