/* SPDX-License-Identifier: BSD-3-Clause */
/* Import between processes: what each can do with the other's objects. See import_rig.h. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import_rig.h"

TestSuite(import, .init = import_begin, .fini = import_end, .timeout = 120);

/* ---- memory of either side by queue pairs of either side ---- */

Test(import, the_importer_reads_and_writes_the_exporters_memory)
{
	struct answer mr = import_all();

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(exporters(), AREA, 'e');
}

Test(import, the_exporter_reads_and_writes_the_importers_memory)
{
	struct answer own;

	import_all();
	own = register_importers();
	cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&exporter, exporters(), exported.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(importers() + HALF, HALF, 'e');
	cr_assert_eq(write_status(&exporter, importers(), own.lkey, exporters(), exported.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(exporters() + HALF, HALF, 'i');
}

Test(import, a_list_of_both_memories_is_gathered_and_scattered)
{
	struct answer mr = import_all(), own = register_importers(), a;
	struct ask q = { .what = POST,
			 .opcode = IBV_WR_RDMA_WRITE,
			 .num_sge = 2,
			 .sge = { { (uintptr_t)exporters(), 100, mr.lkey },
				  { (uintptr_t)importers(), 300, own.lkey } },
			 .remote = (uintptr_t)importers() + HALF,
			 .rkey = own.rkey };

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.status, IBV_WC_SUCCESS);
	expect_filled(importers() + HALF, 100, 'e');
	expect_filled(importers() + HALF + 100, 300, 'i');
	q.opcode = IBV_WR_RDMA_READ;
	q.sge[0].addr += HALF;
	q.sge[1].addr += 2048;
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.status, IBV_WC_SUCCESS);
	expect_filled(exporters() + HALF, 100, 'e');
	expect_filled(importers() + 2048, 300, 'i');
}

Test(import, atomics_reach_the_exporters_memory)
{
	struct answer mr = import_all(), own = register_importers(), a;
	uint64_t *counter = (uint64_t *)(void *)(exporters() + 1024);
	uint64_t *result = (uint64_t *)(void *)(importers() + 2048);
	struct ask q = { .what = POST,
			 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			 .value = 5,
			 .num_sge = 1,
			 .sge = { { (uintptr_t)result, 8, own.lkey } },
			 .remote = (uintptr_t)counter,
			 .rkey = mr.rkey };

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	*counter = 37;
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.status, IBV_WC_SUCCESS);
	cr_assert_eq(*counter, 42);
	cr_assert_eq(*result, 37);
}

/* ---- which process ends first ---- */

Test(import, the_region_ends_with_its_exporter_but_the_domain_stays)
{
	struct answer mr = import_all(), own = register_importers();

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	kill_process(&exporter);
	/* The engine notices its end without being told, but some time later. */
	for (int tries = 0;; tries++) {
		int status = write_status(&importer, importers(), own.lkey, importers(), own.rkey);
		struct reply_statistics now;

		cr_assert_eq(status, IBV_WC_SUCCESS, "the importer's own memory: %d", status);
		statistics(&now);
		if (now.clients == before.clients + 1)
			break;
		cr_assert_lt(tries, 10000, "the exporter's end is not noticed");
	}
	expect_filled(importers(), AREA, 'i');
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, importers(), own.rkey),
		     IBV_WC_LOC_PROT_ERR);
	expect_filled(importers(), AREA, 'i');
	/* New queue pairs in the domain work, but the key of the destroyed region does not. */
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), mr.rkey),
		     IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(tell(&importer, IMPORT_MR, exported.handle_2, 0), EINVAL);
	cr_expect_eq(tell(&importer, IMPORT_PD, exported.handle, 0), EINVAL);
}

Test(import, the_importers_end_changes_nothing_for_the_exporter)
{
	struct answer mr = import_all(), own = register_importers();
	struct reply_statistics now;

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
	kill_process(&importer);
	for (int tries = 0; tries < 10000; tries++) {
		statistics(&now);
		if (now.clients == before.clients + 1)
			break;
		poll(NULL, 0, 1);
	}
	cr_assert_eq(now.clients, before.clients + 1, "the importer's end is not noticed");
	cr_assert_eq(
		write_status(&exporter, exporters(), exported.lkey, exporters(), exported.rkey),
		IBV_WC_SUCCESS);
	cr_assert_eq(write_status(&exporter, exporters(), exported.lkey, importers(), own.rkey),
		     IBV_WC_REM_ACCESS_ERR);
}

Test(import, either_may_free_the_domain_first)
{
	struct answer own;

	import_all();
	own = register_importers();
	cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), EBUSY, "its region is in it");
	cr_assert_eq(tell(&exporter, DEREGISTER, 0, 0), 0);
	cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
	cr_assert_eq(tell(&importer, DEALLOC_PD, 0, 0), EBUSY);
	cr_assert_eq(tell(&exporter, CLOSE, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
}

Test(import, a_new_domain_of_the_exporter_is_another_one)
{
	struct ask open = { .what = OPEN };
	struct answer again, own;

	import_all();
	own = register_importers();
	cr_assert_eq(tell(&exporter, DEREGISTER, 0, 0), 0);
	cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), 0);
	for (int i = 0; i < 70; i++) {
		/* so many that a resting handle is used again */
		cr_assert_eq(request(&exporter, &open, -1, &again, NULL), 0);
		cr_assert_eq(tell(&exporter, DEREGISTER, 0, 0), 0);
		cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), 0);
	}
	cr_assert_eq(request(&exporter, &open, -1, &again, NULL), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, exporters(), again.rkey),
		     IBV_WC_REM_ACCESS_ERR);
}

Test(import, unimport_gives_back_and_the_exporter_goes_on)
{
	struct answer mr = import_all();

	cr_assert_eq(tell(&importer, DEALLOC_PD, 0, 0), EBUSY, "the imported region is in it");
	cr_assert_eq(tell(&importer, UNIMPORT_MR, 0, 0), 0);
	cr_assert_eq(tell(&importer, UNIMPORT_PD, 0, 0), 0);
	cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&exporter, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
}

Test(import, an_exporter_may_leave_its_region_to_others)
{
	struct answer mr = import_all();

	cr_assert_eq(tell(&exporter, UNIMPORT_OWN, 0, 0), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(exporters(), AREA, 'e');
}

Test(import, what_was_imported_can_be_exported_again)
{
	struct ask q = { .what = IMPORT };
	struct answer first, pd, mr, a;
	int second;

	cr_assert_eq(request(&importer, &q, token, &first, &second), 0);
	q = (struct ask){ .what = IMPORT_PD, .handle = exported.handle };
	cr_assert_eq(request(&importer, &q, -1, &pd, NULL), 0);
	q = (struct ask){ .what = IMPORT_MR, .handle = exported.handle_2 };
	cr_assert_eq(request(&importer, &q, -1, &mr, NULL), 0);
	q = (struct ask){ .what = IMPORT };
	cr_assert_eq(request(&exporter, &q, second, &a, NULL), 0);
	cr_assert_eq(tell(&exporter, IMPORT_PD, pd.handle, 0), 0);
	q = (struct ask){ .what = IMPORT_MR, .handle = mr.handle_2 };
	cr_assert_eq(request(&exporter, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.lkey, exported.lkey);
	close(second);
}

static void storm(struct process *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	struct ask q = { .what = STORM,
			 .opcode = IBV_WR_RDMA_WRITE,
			 .num_sge = 1,
			 .sge = { { (uintptr_t)from, HALF, lkey } },
			 .remote = (uintptr_t)to + HALF,
			 .rkey = rkey };

	cr_assert(send_with(p->link, &q, sizeof(q), -1));
}

/* Each round kills one of the two, or both, during their traffic. */
Test(import, one_is_killed_while_the_other_uses_its_memory)
{
	for (int round = 0; round < 24; round++) {
		struct process *victim = round % 3 == 0 ? &exporter : &importer;
		struct process *other = round % 3 == 0 ? &importer : &exporter;
		struct answer mr = import_all(), own = register_importers(), a;
		int fd;

		cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
		cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
		storm(&importer, exporters(), mr.lkey, importers(), own.rkey);
		storm(&exporter, importers(), own.lkey, exporters(), mr.rkey);
		poll(NULL, 0, round);
		kill_process(victim);
		if (round % 3 == 2)
			kill_process(other);
		if (round % 3 != 2) {
			a = take_answer(other, STORM, &fd);
			cr_assert(a.status == IBV_WC_LOC_PROT_ERR ||
					  a.status == IBV_WC_REM_ACCESS_ERR ||
					  a.status == IBV_WC_REM_OP_ERR,
				  "round %d: %s", round, ibv_wc_status_str(a.status));
		}
		end_both();
		start_both();
	}
}

/* Only the importer's queue pair waits, until the owner of the memory ends. */
Test(import, memory_of_the_exporter_blocks_only_until_it_ends)
{
	struct ask q = { .what = BLOCK };
	struct answer own, blocking, a;
	int fd;

	import_all();
	own = register_importers();
	if (getenv("EXPORTER_UID") != NULL || getenv("IMPORTER_UID") != NULL)
		return;
	if (request(&exporter, &q, -1, &blocking, NULL) != 0) {
		cr_log_warn("userfaultfd is not to be had: %s", strerror(blocking.error));
		return;
	}
	cr_assert_eq(tell(&importer, IMPORT_MR, blocking.handle_2, 0), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	q = (struct ask){ .what = POST,
			  .opcode = IBV_WR_RDMA_WRITE,
			  .num_sge = 1,
			  /* several packets: one call reads them, and blocks */
			  .sge = { { blocking.value, HALF, blocking.lkey } },
			  .remote = (uintptr_t)importers() + HALF,
			  .rkey = own.rkey };
	cr_assert(send_with(importer.link, &q, sizeof(q), -1));
	poll(NULL, 0, 100); /* a thread blocks at the page */
	kill_process(&exporter);
	a = take_answer(&importer, POST, &fd);
	cr_expect_eq(a.status, IBV_WC_LOC_PROT_ERR, "%s", ibv_wc_status_str(a.status));
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0, "the importer goes on");
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
}

/* ---- device memory ---- */

Test(import, device_memory_is_shared_and_outlives_its_allocator)
{
	struct ask q = { .what = ALLOC_DM, .value = 8192 };
	struct answer dm, mr;

	import_all();
	cr_assert_eq(request(&exporter, &q, -1, &dm, NULL), 0);
	cr_assert_eq(tell(&importer, IMPORT_DM, dm.handle, 0), 0);
	cr_assert_eq(tell(&exporter, WRITE_DM, 0x12345678, 4096), 0);
	q = (struct ask){ .what = READ_DM, .value = 4096 };
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.handle, 0x12345678);
	kill_process(&exporter);
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.handle, 0x12345678);
	q = (struct ask){ .what = REGISTER_DM, .value = 8192 };
	cr_assert_eq(request(&importer, &q, -1, &mr, NULL), 0);
	cr_assert_eq(tell(&importer, FREE_DM, 0, 0), EBUSY, "a region is of it");
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	q = (struct ask){ .what = POST,
			  .opcode = IBV_WR_RDMA_WRITE,
			  .num_sge = 1,
			  .sge = { { 4096, 4, mr.lkey } },
			  .remote = 8,
			  .rkey = mr.rkey };
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.status, IBV_WC_SUCCESS);
	q = (struct ask){ .what = READ_DM, .value = 8 };
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.handle, 0x12345678);
	cr_assert_eq(tell(&importer, DEREGISTER, 0, 0), 0);
	cr_assert_eq(tell(&importer, FREE_DM, 0, 0), 0);
}
