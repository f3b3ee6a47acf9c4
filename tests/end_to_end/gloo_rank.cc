/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a sum that gloo makes over its transport ibverbs, and that each rank compares.
 * usage: gloo-rank RANK RANKS DIRECTORY GID-INDEX; the ranks meet in the directory
 */
#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

/*
 * gloo aborts if an algorithm goes while its last message is not acknowledged, and has no call that waits for that.
 * So these stay until the process ends.
 */
static bool sums_agree(const std::shared_ptr<gloo::Context> &context, int count)
{
	const int rank = context->rank, ranks = context->size;
	auto &values = *new std::vector<float>(count);
	std::vector<float *> arrays{ values.data() };
	auto &ring = *new gloo::AllreduceRingChunked<float>(context, arrays, count);
	auto &halving = *new gloo::AllreduceHalvingDoubling<float>(context, arrays, count);
	auto &barrier = *new gloo::BarrierAllToAll(context);

	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < count; i++)
			values[i] = float(rank + i % 7);
		if (round % 2 == 0)
			ring.run();
		else
			halving.run();
		for (int i = 0; i < count; i++)
			if (values[i] != float(ranks * (ranks - 1) / 2 + ranks * (i % 7)))
				return false;
		barrier.run();
	}
	return true;
}

/* All ranks have got what this one sent: it may go. */
static void await_others(gloo::rendezvous::Store &store, const std::string &rank, int ranks)
{
	std::vector<std::string> done;

	for (int i = 0; i < ranks; i++)
		done.push_back("done-" + std::to_string(i));
	store.set("done-" + rank, { 1 });
	store.wait(done);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	gloo::transport::ibverbs::attr attr = { "uroce0", 1, atoi(argv[4]) };
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
	gloo::rendezvous::FileStore store(argv[3]);

	context->connectFullMesh(store, device);
	for (int count : { 1, 1000, 1000000 }) {
		if (!sums_agree(context, count)) {
			std::cerr << "gloo: a wrong sum of " << count << " values" << std::endl;
			return 1;
		}
	}
	await_others(store, argv[1], context->size);
	std::cout << "gloo: rank " << argv[1] << " agrees" << std::endl;
	_exit(0); /* without destructors */
}
