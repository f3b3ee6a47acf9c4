/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

int main(int argc, char **argv)
{
	return sim_main(argc, argv);
}
