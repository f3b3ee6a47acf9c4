# SPDX-License-Identifier: BSD-3-Clause
"""Whether a TCP socket listens on a port in the network namespace of a process.

The kernel is asked for this one (sock_diag(7)). /proc/net/tcp would make it look through its table of all
connections, which takes milliseconds on a large machine.
"""

import contextlib
import ctypes
import os
import socket
import struct

CLONE_NEWNET = 0x40000000
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
LISTEN = 10  # the state
libc = ctypes.CDLL(None, use_errno=True)


OURS = "/proc/thread-self/ns/net"


@contextlib.contextmanager
def namespace(path):
    """This thread enters it, and returns to its own."""
    if os.path.samefile(path, OURS):
        yield
        return
    with open(OURS, "rb") as ours, open(path, "rb") as theirs:
        enter(theirs)
        try:
            yield
        finally:
            enter(ours)


def enter(file):
    if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")


def question(family, port):
    body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 1 << LISTEN) + struct.pack(">H46x", port)
    return struct.pack("=IHHII", 16 + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0) + body


def answers(family, port, asked):
    """Whether there is one: a message for each socket comes, then the end."""
    asked.send(question(family, port))
    found = False
    while True:
        text = asked.recv(65536)
        while text:
            length, kind = struct.unpack_from("=IH", text)
            if kind == NLMSG_ERROR:
                number = -struct.unpack_from("=i", text, 16)[0]
                raise OSError(number, f"sock_diag: {os.strerror(number)}")
            if kind == NLMSG_DONE:
                return found
            found = True
            text = text[length + 3 & ~3:]


def listening(pid, port):
    with namespace(f"/proc/{pid}/ns/net"):
        asked = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG)  # which stays in it
    with asked:
        return any(answers(family, port, asked) for family in (socket.AF_INET, socket.AF_INET6))
