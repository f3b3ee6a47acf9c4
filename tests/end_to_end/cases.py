# SPDX-License-Identifier: BSD-3-Clause
"""The cases as data: every row is a run of unmodified Debian programs on one rig.

A row is (name, words). Rows of PROGRAMS run on every rig of PLACES, each with the address family
named there; rows of OTHER_USERS run with their programs as other users or in namespaces.
"""

# (rig, address family). "Each option in at least one run on each."
PLACES = [
    ("same", "v4"),
    ("same", "v6"),
    ("veth1500", "v4"),
    ("veth1500", "v6"),
    ("veth4200", "v4"),
    ("veth4200", "v6"),
    ("netdev1500", "v4"),
    ("netdev1500", "v6"),
    ("netdev4200", "v4"),
    ("netdev4200", "v6"),
    ("memif", "v4"),
]

# Fewer programs show that these places work, too: other ports, memory, several lcores.
OTHER_PLACES = ["vlan4200", "tap1500", "xdp1500", "hugepages", "lcores", "lcores4200"]
OTHER_PLACES_PROGRAMS = {"pingpong", "pingpong-events", "pingpong-1MiB", "atomic-add",
                         "send-64qp-both", "send-events", "ud-pingpong", "uc-pingpong",
                         "ud-multicast", "srq-pingpong", "send-srq", "send-xrc"}

PINGPONG_MTUS = (256, 512, 1024, 2048, 4096)

# Quick rows, which run on every place. Each option of the programs is in at least one row. What they check does
# not depend on how often they repeat it: rings go round several times (perftest's send queues have 128 places, and
# with -r 40 a pingpong fills its receive queue again and again).
PROGRAMS = [
    ("pingpong", "ibv_rc_pingpong -n 100 -r 40"),
    ("pingpong-events", "ibv_rc_pingpong -n 100 -r 40 -e"),
    ("pingpong-check", "ibv_rc_pingpong -n 100 -c"),
    ("pingpong-1MiB", "ibv_rc_pingpong -n 6 -s 1048576 -m {mtu} -c"),
    *[(f"pingpong-mtu{m}", f"ibv_rc_pingpong -n 100 -m {m} -c -e") for m in PINGPONG_MTUS],
    ("write-all", "ib_write_bw -a -n 5"),
    ("read-all", "ib_read_bw -a -n 5"),
    ("send-all", "ib_send_bw -a -n 5"),
    ("read-8MiB", "ib_read_bw -s 8388608 -n 5"),
    ("send-8MiB", "ib_send_bw -s 8388608 -n 5"),
    ("write-1B", "ib_write_bw -s 1 -n 2000"),
    ("read-1B", "ib_read_bw -s 1 -n 2000"),
    ("send-1B", "ib_send_bw -s 1 -n 2000"),
    ("atomic-add", "ib_atomic_bw -n 2000"),
    ("atomic-cmp", "ib_atomic_bw -A CMP_AND_SWAP -n 2000"),
    ("write-64qp-both", "ib_write_bw -q 64 -b -s 4096 -n 20"),
    ("read-64qp-both", "ib_read_bw -q 64 -b -s 4096 -n 20"),
    ("send-64qp-both", "ib_send_bw -q 64 -b -s 4096 -n 20"),
    ("atomic-64qp-both", "ib_atomic_bw -q 64 -b -n 50"),
    ("read-events", "ib_read_bw -e -s 8192 -n 1000"),
    ("send-events", "ib_send_bw -e -s 8192 -n 500"),
    ("atomic-events", "ib_atomic_bw -e -n 1000"),
    ("write-inline", "ib_write_bw -I 220 -s 128 -n 1000"),
    ("send-inline", "ib_send_bw -I 220 -s 220 -n 1000"),
    ("write-list", "ib_write_bw -l 16 -s 64 -n 4000"),
    ("read-list", "ib_read_bw -l 16 -s 64 -n 8000"),
    ("send-list", "ib_send_bw -l 16 -s 64 -n 8000"),
    ("write-lat-all", "ib_write_lat -a -n 10"),
    ("read-lat-all", "ib_read_lat -a -n 10"),
    ("send-lat-all", "ib_send_lat -a -n 10"),
    ("write-lat-inline", "ib_write_lat -s 8 -I 220 -n 150"),
    ("send-lat-inline", "ib_send_lat -s 8 -I 220 -n 500"),
    ("send-lat-events", "ib_send_lat -s 8 -e -n 500"),
    ("atomic-lat", "ib_atomic_lat -n 200"),
    # UD does not repeat a lost packet, so no more are sent at once than the receiver has room for.
    ("ud-pingpong", "ibv_ud_pingpong -n 100 -r 40 -s 1000"),
    ("ud-pingpong-events", "ibv_ud_pingpong -n 100 -r 40 -s 1000 -e"),
    ("ud-send", "ib_send_bw -c UD -s 1024 -n 200"),
    ("ud-send-lat", "ib_send_lat -c UD -s 512 -n 500"),
    ("ud-multicast", "ib_send_bw -c UD -g -M {mgid} -s 1024 -n 200"),
    ("uc-pingpong", "ibv_uc_pingpong -n 100 -r 40 -c"),
    ("uc-pingpong-events", "ibv_uc_pingpong -n 100 -r 40 -m {mtu} -e"),
    ("uc-write", "ib_write_bw -c UC -s 65536 -n 200"),
    ("uc-write-lat", "ib_write_lat -c UC -s 8 -n 200"),
    ("uc-send", "ib_send_bw -c UC -s 4096 -n 100"),
    ("uc-send-lat", "ib_send_lat -c UC -s 512 -n 500"),
    ("srq-pingpong", "ibv_srq_pingpong -n 200 -r 100"),
    ("srq-pingpong-events", "ibv_srq_pingpong -n 200 -r 100 -e -q 16"),
    ("xsrq-pingpong", "ibv_xsrq_pingpong -n 200"),
    ("xsrq-pingpong-events", "ibv_xsrq_pingpong -n 500 -e -s 65536"),
    ("send-srq", "ib_send_bw --use-srq -q 8 -s 4096 -n 200"),
    ("send-lat-srq", "ib_send_lat --use-srq -s 64 -n 500"),
    ("send-xrc", "ib_send_bw -c XRC -s 65536 -n 200"),
    ("send-xrc-qps-both", "ib_send_bw -c XRC -q 4 -b -s 4096 -n 200"),
    ("write-xrc", "ib_write_bw -c XRC -s 65536 -n 200"),
    ("read-xrc", "ib_read_bw -c XRC -s 65536 -n 200"),
    ("atomic-xrc", "ib_atomic_bw -c XRC -n 500"),
    ("send-lat-xrc", "ib_send_lat -c XRC -n 300"),
    ("write-lat-xrc", "ib_write_lat -c XRC -n 300"),
    ("read-lat-xrc", "ib_read_lat -c XRC -n 300"),
    ("atomic-lat-xrc", "ib_atomic_lat -c XRC -n 300"),
    ("long-write-8B", "ib_write_bw -s 8 -n 300000"),
    ("long-send-8B", "ib_send_bw -s 8 -n 300000"),
]

# Every program of perftest runs at least once without CALM_CLOCK: here.
AS_THEY_ARE_PLACE = ("same", "v4")
AS_THEY_ARE = {"read-8MiB", "send-8MiB", "atomic-add", "write-64qp-both", "write-lat-inline", "read-lat-all",
               "send-lat-inline", "atomic-lat"}

# With --quick (and in ./check) these run on the places of QUICK_PLACES; each option of the programs is among
# them. On the other places those of OTHER_PLACES_PROGRAMS run: what the address family, a longer MTU or
# another port changes in a packet is the same for all programs.
QUICK_PLACES = [("same", "v4"), ("veth1500", "v6"), ("netdev1500", "v4")]
QUICK = {"pingpong", "pingpong-events", "pingpong-check", "pingpong-1MiB", "pingpong-mtu256",
         "pingpong-mtu4096", "read-8MiB", "send-8MiB", "read-1B", "atomic-add", "write-64qp-both",
         "send-events", "write-inline", "write-list", "write-lat-inline", "atomic-lat",
         "ud-pingpong-events", "ud-multicast", "uc-pingpong", "uc-write",
         "srq-pingpong", "xsrq-pingpong", "send-srq", "send-xrc", "write-xrc", "atomic-xrc"}
# ... and this only here: perftest needs seconds for its 23 sizes.
QUICK_ALL_SIZES = {"veth1500/v4/write-all"}

# Programs of other users on these places: (name, words, users of server and client).
OTHER_USERS = [
    ("nobody-client", "ib_write_bw -s 65536 -n 200", ("root", "nobody")),
    ("nobody-both", "ib_read_bw -s 65536 -n 200", ("nobody", "nobody")),
    ("nobody-pingpong", "ibv_rc_pingpong -n 200 -c", ("nobody", "nobody")),
    ("userns-client", "ib_write_bw -s 65536 -n 200", ("root", "userns")),
    ("userns-both", "ib_send_bw -s 65536 -n 200", ("userns", "userns")),
    ("userns-pingpong", "ibv_rc_pingpong -n 200 -c -e", ("userns", "userns")),
]
OTHER_USERS_PLACES = ("same", "veth4200")
