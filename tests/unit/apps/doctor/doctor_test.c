/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: the engine, the choice of a port, and all checks on this very machine. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "cpus.h"
#include "doctor_tree.h"
#include "holder.h"

TestSuite(doctor, .timeout = 60);

/* ---- the engine ---- */

#define SOCKET "/run/uroce/uroced.sock"

Test(doctor, engine)
{
	static const struct doctor_row rows[] = {
		{ "serves",
		  .m = { .socket = SOCKET,
			 .engine = "uroce0 (10.7.0.1), IB MTU 1024",
			 .engine_pid = 7 },
		  .verdict = CHECK_OK, .text = "IB MTU 1024 at " SOCKET ", process 7" },
		{ "none", .m = { .socket = SOCKET, .engine_error = ENOENT }, .verdict = CHECK_OK,
		  .text = "none runs at " SOCKET },
		{ "a dead one",
		  { { "run/uroce/uroced.sock", "" } },
		  .m = { .socket = SOCKET, .engine_error = ECONNREFUSED },
		  .verdict = CHECK_OK,
		  .text = "a dead engine left" },
		{ "not allowed",
		  { { "run/uroce/uroced.sock", "" } },
		  .m = { .socket = SOCKET, .engine_error = EACCES },
		  .verdict = CHECK_MISSING,
		  .text = "may not attach to " SOCKET,
		  .mend = "--socket-group" },
		{ "hangs",
		  .m = { .socket = SOCKET,
			 .engine = "it did not answer",
			 .engine_error = ETIMEDOUT,
			 .engine_pid = 7 },
		  .verdict = CHECK_MISSING, .text = "it did not answer", .mend = "kill -9 7" },
		{ "of another version",
		  .m = { .socket = SOCKET, .engine = "protocol version 3", .engine_error = EPROTO },
		  .verdict = CHECK_MISSING, .text = "protocol version 3" },
	};

	EXPECT(check_engine, rows);
}

/* An engine that has the lock but no socket yet; the table of locks names it by the file's inode. */
Test(doctor, engine_that_holds_the_lock)
{
	static const struct tree_file files[TREE_FILES] = {
		{ "run/uroce/uroced.sock.lock", "31\n" }, { "proc/31/comm", "uroced\n" }
	};
	struct machine m = { .root = tree_make(files), .socket = SOCKET, .engine_error = ENOENT };
	struct finding f = { 0 };
	char path[128];
	struct stat st;
	FILE *locks;

	snprintf(path, sizeof(path), "%s/run/uroce/uroced.sock.lock", m.root);
	cr_assert_eq(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/proc/locks", m.root);
	locks = fopen(path, "we");
	cr_assert_not_null(locks);
	fprintf(locks, "1: POSIX  ADVISORY  WRITE 30 00:1a:%lu 0 EOF\n", (unsigned long)st.st_ino);
	fprintf(locks, "2: FLOCK  ADVISORY  WRITE 30 00:1a:%lu 0 EOF\n",
		(unsigned long)st.st_ino + 1);
	fprintf(locks, "3: FLOCK  ADVISORY  WRITE 31 00:1a:%lu 0 EOF\n", (unsigned long)st.st_ino);
	fclose(locks);
	check_engine(&m, &f);
	tree_remove();
	cr_expect_eq(f.verdict, CHECK_MISSING, "%s", f.text);
	cr_expect_not_null(strstr(f.text, "uroced (process 31) holds " SOCKET), "%s", f.text);
	cr_expect_not_null(strstr(f.mend, "kill 31"), "%s", f.mend);
}

/* ---- ports ---- */

Test(doctor, ports)
{
	static const struct tree_file files[TREE_FILES] = {
		{ "sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/mtu", "1500\n" },
		{ "sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/device",
		  "->../../../virtio2" },
		{ "sys/devices/pci0000:00/0000:00:03.0/numa_node", "1\n" },
		{ "sys/class/net/eth0",
		  "->../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0" },
		{ DEVICES "0000:00:03.0", "->../../../devices/pci0000:00/0000:00:03.0" },
		{ "sys/class/net/lo/mtu", "65536\n" },
	};
	static const struct {
		const char *name;
		enum port_kind kind;
		const char *iface, *pci;
		int32_t node;
	} rows[] = {
		{ "eth0", PORT_NETDEV, "eth0", "0000:00:03.0", 1 },
		{ "0000:00:03.0", PORT_PCI, "eth0", "0000:00:03.0", 1 },
		{ "00:03.0", PORT_PCI, "eth0", "0000:00:03.0", 1 },
		{ "lo", PORT_NETDEV, "lo", "", -1 },
	};
	static const char *const none[] = {
		"",  "eth1", "0000:00:04.0",  "00:03.00",	   "..",	".",
		"/", "lo/",  "0000:00:03.0:", "a-name-of-sixteen", "net_memif0"
	};
	const char *root = tree_make(files);
	struct machine m;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		m = (struct machine){ .root = root };
		cr_expect(machine_choose_port(&m, rows[i].name), "%s", rows[i].name);
		cr_expect_eq(m.kind, rows[i].kind, "%s", rows[i].name);
		cr_expect_str_eq(m.iface, rows[i].iface, "%s: %s", rows[i].name, m.iface);
		cr_expect_str_eq(m.pci, rows[i].pci, "%s: %s", rows[i].name, m.pci);
		cr_expect_eq(m.node, rows[i].node, "%s: %d", rows[i].name, m.node);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		m = (struct machine){ .root = root };
		cr_expect_not(machine_choose_port(&m, none[i]), "%s", none[i]);
	}
	tree_remove();
}

/* ---- this machine ---- */

/*
 * Every check says something suitable without a port, and about an interface that every machine
 * has.
 */
Test(doctor, of_this_machine)
{
	static const char *const port[] = { NULL, "lo" };

	for (size_t i = 0; i < ARRAY_SIZE(port); i++) {
		struct machine m = {
			.root = "", .node = -1, .engine_error = ENOENT, .socket = "/nowhere"
		};

		machine_read_process(&m);
		cr_expect_eq(m.root_user, geteuid() == 0);
		if (port[i] != NULL)
			cr_assert(machine_choose_port(&m, port[i]));
		for (const struct check *c = checks; c->name != NULL; c++) {
			struct finding f = { 0 };

			c->run(&m, &f);
			cr_expect_leq(f.verdict, CHECK_MISSING, "%s", c->name);
			cr_expect_eq(f.text[0] != '\0', f.verdict != CHECK_NONE, "%s", c->name);
			cr_expect_eq(f.mend[0] != '\0', f.verdict > CHECK_OK, "%s", c->name);
		}
	}
}

/* A root folder whose sys and proc are this machine's gives the same answers. */
Test(doctor, of_this_machine_below_a_folder)
{
	static const struct tree_file files[TREE_FILES] = { { "sys", "->/sys" },
							    { "proc", "->/proc" },
							    { "dev", "->/dev" } };
	struct machine here = {
		.root = "", .node = -1, .engine_error = ENOENT, .socket = "/nowhere"
	};
	struct machine below;

	cr_assert(machine_choose_port(&here, "lo"));
	below = here;
	below.root = tree_make(files);
	for (const struct check *c = checks; c->name != NULL; c++) {
		struct finding one = { 0 }, other = { 0 };

		c->run(&here, &one);
		c->run(&below, &other);
		cr_expect_eq(one.verdict, other.verdict, "%s", c->name);
		cr_expect_str_eq(one.mend, other.mend, "%s", c->name);
	}
	tree_remove();
}

/* The kernel's own files about this process, which holds a file and its lock. */
Test(doctor, holders)
{
	char path[] = "/tmp/uroce-doctor-held-XXXXXX";
	int fd = mkstemp(path);
	struct machine m = { .root = "" };
	struct holder h = { 0 };

	cr_assert_geq(fd, 0);
	cr_expect(holder_of_file(&m, path, &h));
	cr_expect_eq(h.pid, getpid());
	cr_expect_not(holder_of_lock(&m, path, &h));
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	h.pid = 0;
	cr_expect(holder_of_lock(&m, path, &h));
	cr_expect_eq(h.pid, getpid());
	cr_expect_str_not_empty(h.program);
	close(fd);
	unlink(path);
	cr_expect_not(holder_of_file(&m, path, &h));
	cr_expect_not(holder_of_lock(&m, path, &h));
}

/* ---- lists of cores ---- */

Test(doctor, lists_of_cpus)
{
	static const char *const same[] = { "", "0", "0-1", "1,3", "0-2,4,6-7", "1023" };
	static const char *const wrong[] = { "(null)", "1-", "-1", "1,", ",1", "1 2", "1024", "x" };
	char text[64];
	cpu_set_t set;

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		cr_expect(cpus_read(same[i], &set), "%s", same[i]);
		cpus_write(&set, text, sizeof(text));
		cr_expect_str_eq(text, same[i], "%s", text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		cr_expect_not(cpus_read(wrong[i], &set), "%s", wrong[i]);
}
