# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect through rdma_cm, so all their traffic uses the card."""

from rig import Failure

FAMILY = {"v4": 0, "v6": 1}
WORDS = ["-C", "10", "-V", "-S", "3000"]


def rping(family):
    """rping compares what comes back (-V)."""
    def run(wire):
        theirs, port = wire.theirs[FAMILY[family]], wire.rig.port()
        words = ["-a", theirs, "-p", str(port), *WORDS]
        number = wire.guest.verbs(["rping", "-s", *words])
        wire.guest.listens_by_cm(port, number)
        client = wire.rig.program("a", ["rping", "-c", *words], name="rping-client")
        try:
            client.succeed(60)
        except Failure as failure:
            raise Failure(f"{failure} (in the guest: {wire.guest.said(number)})") from None
        finally:
            client.end()
        wire.succeed(number, "rping", 30)
    return run
