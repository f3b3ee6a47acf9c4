# SPDX-License-Identifier: BSD-3-Clause
"""One rank of an MPI program: exchanges messages and memory with the others, and checks what came."""

import mpi4py

mpi4py.rc.thread_level = "single"  # osc pt2pt knows no other
from mpi4py import MPI

SIZES = (8, 3000, 70000, 1 << 20)
WINDOW = 65536

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
following, previous = (rank + 1) % ranks, (rank - 1) % ranks


def pattern(source, target, size):
    start = bytes((source * 31 + target * 17 + i * 7) % 256 for i in range(251))
    return bytearray((start * (size // 251 + 1))[:size])


def ring(size):
    got = bytearray(size)
    world.Sendrecv(pattern(rank, following, size), following, recvbuf=got, source=previous)
    assert got == pattern(previous, rank, size), f"rank {rank}: {size} octets from {previous}"


def alltoall(size):
    got = bytearray(size * ranks)
    world.Alltoall(b"".join(pattern(rank, other, size) for other in range(ranks)), got)
    assert got == b"".join(pattern(other, rank, size) for other in range(ranks)), f"rank {rank}: alltoall"


def window():
    """Each rank puts into the next one's window and reads it again."""
    shared = MPI.Win.Allocate(WINDOW, comm=world)
    got = bytearray(WINDOW)
    shared.Fence()
    shared.Put(pattern(rank, following, WINDOW), following)
    shared.Fence()
    assert bytearray(shared.tomemory()) == pattern(previous, rank, WINDOW), f"rank {rank}: put"
    shared.Get(got, following)
    shared.Fence()
    assert got == pattern(rank, following, WINDOW), f"rank {rank}: get"
    shared.Free()


for octets in SIZES:
    ring(octets)
    alltoall(octets)
window()
world.Barrier()
if rank == 0:
    print(f"{ranks} ranks agree")
