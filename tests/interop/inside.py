# SPDX-License-Identifier: BSD-3-Clause
"""TCP connections of this process from another network namespace."""

import ctypes
import os
import socket
import threading
import time

from rig import Failure

CLONE_NEWNET = 0x40000000


def socket_in(namespace):
    """A socket belongs to the namespace in which it was made, and a single thread may enter another namespace."""
    result = []

    def make():
        fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) != 0:
                result.append(OSError(ctypes.get_errno(), f"setns {namespace}"))
            else:
                result.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        finally:
            os.close(fd)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(result[0], OSError):
        raise Failure(str(result[0]))
    return result[0]


def connect(namespace, address, port, limit):
    """Tries until a server listens at this port, at most `limit` seconds."""
    end = time.monotonic() + limit
    while True:
        connection = socket_in(namespace)
        connection.settimeout(min(5, limit))
        try:
            connection.connect((address, port))
            return connection
        except OSError as error:
            connection.close()
            if time.monotonic() > end:
                raise Failure(f"TCP port {port} of {address} did not come within {limit} s: "
                              f"{error}") from None
            time.sleep(0.05)
