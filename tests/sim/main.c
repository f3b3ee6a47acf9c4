/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"
#include "sim.h"

int main(int argc, char **argv)
{
	int status;

	output_keep_closed();
	status = sim_main(argc, argv);
	return status != 0 ? status : output_status("uroce sim");
}
