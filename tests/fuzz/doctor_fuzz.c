/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the checks of `uroce doctor`: a machine whose files have any contents. The
 * input is pieces: which file (an octet), its length (two), its text. Each check then says one line,
 * and what mends it only if something is wrong.
 */
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "doctor.h"
#include "input.h"

#define NIC    "sys/bus/pci/devices/0000:03:00.0/"
#define ETH    "sys/class/net/eth0/"
#define PIECES 8
#define MOST   4096 /* octets of a file */

static const char *const path[] = {
	"proc/cpuinfo",
	"proc/locks",
	"proc/net/udp",
	"proc/net/udp6",
	"proc/31/comm",
	"proc/sys/kernel/yama/ptrace_scope",
	"sys/devices/system/cpu/isolated",
	"sys/devices/system/cpu/nohz_full",
	"sys/devices/system/cpu/online",
	"sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
	"sys/devices/system/cpu/cpu0/cpuidle/state0/name",
	"sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
	"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
	"sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
	"sys/devices/system/node/node1/cpulist",
	"sys/class/infiniband/rxe0/parent",
	"sys/kernel/iommu_groups/1/name",
	NIC "numa_node",
	NIC "current_link_speed",
	NIC "max_link_speed",
	NIC "current_link_width",
	NIC "max_link_width",
	ETH "flags",
	ETH "carrier",
	ETH "speed",
	ETH "mtu",
};

static char root[64];
static uint32_t there; /* bits: files of the input before */

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *where)
{
	return remove(name);
}

static void remove_root(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_parents(char *name)
{
	for (char *c = name + strlen(root) + 1; (c = strchr(c, '/')) != NULL; c++) {
		*c = '\0';
		mkdir(name, 0700);
		*c = '/';
	}
}

static void name_of(size_t i, char name[PATH_MAX])
{
	snprintf(name, PATH_MAX, "%s/%s", root, path[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char name[PATH_MAX], link[PATH_MAX];

	/* in memory, if there is such a folder */
	snprintf(root, sizeof(root), "%s/uroce-doctor-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	demand(mkdtemp(root) != NULL);
	atexit(remove_root);
	for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
		name_of(i, name);
		make_parents(name);
	}
	snprintf(link, sizeof(link), "%s/" NIC "driver", root);
	demand(symlink("../vfio-pci", link) == 0);
	snprintf(link, sizeof(link), "%s/" NIC "iommu_group", root);
	demand(symlink("../1", link) == 0);
	return 0;
}

static void make_files(struct input *in)
{
	static char text[MOST];
	char name[PATH_MAX];

	for (uint32_t i = 0; i < ARRAY_SIZE(path); i++) {
		if ((there >> i & 1) == 0)
			continue;
		name_of(i, name);
		unlink(name);
	}
	there = 0;
	for (int i = 0; i < PIECES && in->left > 0; i++) {
		size_t which = input_8(in) % ARRAY_SIZE(path), length = input_16(in) % MOST;
		FILE *f;

		length = MIN_OF(length, in->left);
		input_take(in, text, length);
		name_of(which, name);
		f = fopen(name, "we");
		demand(f != NULL && fwrite(text, 1, length, f) == length);
		fclose(f);
		there |= 1u << which;
	}
}

/* One line, which does not command the terminal. */
static void look_at_line(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	demand(length < size);
	for (size_t i = 0; i < length; i++)
		demand((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

static void look(const char *port)
{
	struct machine m = { .root = root, .node = -1, .engine_error = 2, .socket = "/proc/locks" };
	struct finding f;

	demand(port == NULL || machine_choose_port(&m, port));
	for (const struct check *c = checks; c->name != NULL; c++) {
		memset(&f, 0, sizeof(f));
		c->run(&m, &f);
		demand(f.verdict <= CHECK_MISSING);
		look_at_line(f.text, sizeof(f.text));
		look_at_line(f.mend, sizeof(f.mend));
		demand((f.text[0] != '\0') == (f.verdict != CHECK_NONE));
		demand((f.mend[0] != '\0') == (f.verdict > CHECK_OK));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	make_files(&in);
	look(NULL);
	look("eth0");
	look("0000:03:00.0");
	return 0;
}
