/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a device: their contents, changes, and removal. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/files/device_tree.h"

static char root[64];
static int folder;

static void begin(void)
{
	umask(077); /* of no importance */
	snprintf(root, sizeof(root), "/tmp/uroce-tree-XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	folder = open(root, O_RDONLY | O_DIRECTORY);
	cr_assert_geq(folder, 0);
}

static void end(void)
{
	device_tree_clear(folder);
	close(folder);
	cr_expect_eq(rmdir(root), 0, "%s is not empty", root);
}

TestSuite(device_tree, .init = begin, .fini = end);

static struct reply_device device(void)
{
	struct reply_device d = {
		.name = "uroce0",
		.engine_id = 0x1234,
		.port_state = 4,
		.active_speed = 4,
		.active_width = 2,
		.gid = { { { 0xfe, 0x80, [8] = 2, [11] = 0xff, [12] = 0xfe, [15] = 1 } },
			 { { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 7, [15] = 1 } } },
	};

	memcpy(&d.node_guid, "\x02\x00\x00\xff\xfe\x00\x00\x01", 8);
	memcpy(&d.sys_image_guid, "\x02\x00\x00\xff\xfe\x00\x00\x02", 8);
	return d;
}

/* The text of a file; "" if there is none. */
static const char *text_of(const char *file)
{
	static char text[256];
	int fd = openat(folder, file, O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

#define PORT "class/infiniband/uroce0/ports/1/"

Test(device_tree, formats_of_the_kernel)
{
	static const char *const rows[][2] = {
		{ "class/infiniband/uroce0/node_type", "1: CA\n" },
		{ "class/infiniband/uroce0/node_guid", "0200:00ff:fe00:0001\n" },
		{ "class/infiniband/uroce0/sys_image_guid", "0200:00ff:fe00:0002\n" },
		{ "class/infiniband/uroce0/device/numa_node", "-1\n" },
		{ "class/infiniband/uroce0/device/vendor", "0x75726f\n" },
		{ PORT "state", "4: ACTIVE\n" },
		{ PORT "phys_state", "5: LinkUp\n" },
		{ PORT "rate", "40 Gb/sec (4X QDR)\n" },
		{ PORT "link_layer", "Ethernet\n" },
		{ PORT "lid", "0x0\n" },
		{ PORT "cap_mask", "0x04010000\n" },
		{ PORT "pkeys/0", "0xffff\n" },
		{ PORT "gids/0", "fe80:0000:0000:0000:0200:00ff:fe00:0001\n" },
		{ PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a07:0001\n" },
		{ PORT "gids/16", "0000:0000:0000:0000:0000:0000:0000:0000\n" },
		{ PORT "gids/17", "" },
		{ PORT "gid_attrs/types/1", "RoCE v2\n" },
		{ PORT "gid_attrs/types/2", "" },
		{ PORT "gid_attrs/ndevs/1", "eth7\n" },
		{ "class/infiniband_verbs/abi_version", "6\n" },
		{ "class/infiniband_verbs/uroce0/ibdev", "uroce0\n" },
		{ "class/infiniband_verbs/uroce0/device/numa_node", "-1\n" },
		{ "engine", "0000000000001234\n" },
	};
	struct reply_device d = device();
	char target[64] = "";
	struct stat st;

	cr_assert_eq(device_tree_write(folder, &d, "eth7"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(text_of(rows[i][0]), rows[i][1], "%s: %s", rows[i][0],
				 text_of(rows[i][0]));
	cr_expect_gt(readlinkat(folder, "class/infiniband/uroce0/device/net/eth7", target, 63), 0);
	cr_expect_str_eq(target, "/sys/class/net/eth7");
	cr_assert_eq(fstatat(folder, "dev/infiniband/uroce0", &st, 0), 0);
	cr_expect(S_ISCHR(st.st_mode));
	cr_assert_eq(fstatat(folder, PORT "state", &st, 0), 0);
	cr_expect_eq(st.st_mode & 07777, 0444, "everybody reads, nobody writes");
	cr_assert_eq(fstatat(folder, PORT "gids", &st, 0), 0);
	cr_expect_eq(st.st_mode & 07777, 0755);
}

Test(device_tree, rates)
{
	static const struct {
		uint8_t speed, width;
		const char *text;
	} rows[] = {
		{ 1, 1, "2.5 Gb/sec (1X SDR)\n" },   { 1, 2, "10 Gb/sec (4X SDR)\n" },
		{ 2, 8, "60 Gb/sec (12X DDR)\n" },   { 32, 2, "100 Gb/sec (4X EDR)\n" },
		{ 64, 16, "100 Gb/sec (2X HDR)\n" }, { 128, 4, "800 Gb/sec (8X NDR)\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reply_device d = device();

		d.active_speed = rows[i].speed;
		d.active_width = rows[i].width;
		cr_assert_eq(device_tree_write(folder, &d, ""), 0);
		cr_expect_str_eq(text_of(PORT "rate"), rows[i].text);
	}
}

Test(device_tree, only_what_changes_is_written)
{
	struct reply_device d = device();
	struct stat before, after;
	char old[16] = "";
	int fd;

	cr_assert_eq(device_tree_write(folder, &d, "eth7"), 0);
	cr_assert_eq(fstatat(folder, PORT "rate", &before, 0), 0);
	fd = openat(folder, PORT "state", O_RDONLY);
	d.port_state = 1;
	memset(&d.gid[1], 0, sizeof(d.gid[1]));
	d.gid[2] = (struct gid){ { 0xfd, [15] = 9 } };
	cr_assert_eq(device_tree_write(folder, &d, "eth8"), 0);
	cr_assert_eq(fstatat(folder, PORT "rate", &after, 0), 0);
	cr_expect_eq(before.st_ino, after.st_ino);
	cr_expect_str_eq(text_of(PORT "state"), "1: DOWN\n");
	cr_expect_str_eq(text_of(PORT "phys_state"), "3: Disabled\n");
	cr_expect_eq(read(fd, old, sizeof(old)), 10, "who had it open reads it to its end");
	cr_expect_str_eq(old, "4: ACTIVE\n");
	close(fd);
	cr_expect_str_eq(text_of(PORT "gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
	cr_expect_str_eq(text_of(PORT "gid_attrs/types/1"), "");
	cr_expect_str_eq(text_of(PORT "gid_attrs/ndevs/1"), "");
	cr_expect_str_eq(text_of(PORT "gid_attrs/types/2"), "RoCE v2\n");
	cr_expect_str_eq(text_of(PORT "gid_attrs/ndevs/2"), "eth8\n");
	cr_expect_eq(faccessat(folder, "class/infiniband/uroce0/device/net/eth7", F_OK,
			       AT_SYMLINK_NOFOLLOW),
		     -1);
	cr_expect_eq(faccessat(folder, "class/infiniband/uroce0/device/net/eth8", F_OK,
			       AT_SYMLINK_NOFOLLOW),
		     0);
	cr_assert_eq(device_tree_write(folder, &d, ""), 0);
	cr_expect_eq(faccessat(folder, "class/infiniband/uroce0/device/net", F_OK, 0), -1);
	cr_expect_str_eq(text_of(PORT "gid_attrs/ndevs/2"), "");
}

/* The device's name comes from an engine's options, the facts about interfaces from the kernel. */
Test(device_tree, names_that_lead_elsewhere_are_refused)
{
	struct reply_device d = device();

	cr_expect_eq(device_tree_write(folder, &d, "../x"), EINVAL);
	snprintf(d.name, sizeof(d.name), "../../x");
	cr_expect_eq(device_tree_write(folder, &d, ""), EINVAL);
	d.name[0] = '\0';
	cr_expect_eq(device_tree_write(folder, &d, ""), EINVAL);
	snprintf(d.name, sizeof(d.name), "..");
	cr_expect_eq(device_tree_write(folder, &d, ""), EINVAL);
	memset(d.name, 'n', sizeof(d.name)); /* without an end */
	cr_expect_eq(device_tree_write(folder, &d, ""), 0);
}

Test(device_tree, an_error_is_told)
{
	struct reply_device d = device();
	int file = openat(folder, "file", O_RDWR | O_CREAT, 0600), none = dup(file);

	close(none);
	cr_expect_eq(device_tree_write(none, &d, ""), EBADF);
	cr_expect_eq(device_tree_write(file, &d, ""), ENOTDIR);
	close(file);
	/* where a folder should be */
	close(openat(folder, "class", O_RDWR | O_CREAT, 0600));
	cr_expect_eq(device_tree_write(folder, &d, ""), ENOTDIR);
	cr_expect_str_eq(text_of("engine"), "", "who finds it finds all of them");
}

Test(device_tree, clearing_follows_no_links)
{
	char outside[] = "/tmp/uroce-outside-XXXXXX", file[64];

	cr_assert_not_null(mkdtemp(outside));
	snprintf(file, sizeof(file), "%s/kept", outside);
	close(open(file, O_RDWR | O_CREAT, 0600));
	cr_assert_eq(mkdirat(folder, "a", 0700), 0);
	cr_assert_eq(symlinkat(outside, folder, "a/link"), 0);
	device_tree_clear(folder);
	cr_expect_eq(access(file, F_OK), 0);
	cr_expect_eq(faccessat(folder, "a", F_OK, 0), -1);
	unlink(file);
	rmdir(outside);
}

Test(device_tree, the_interface)
{
	struct reply_device d = device();
	char name[16];

	snprintf(d.netdev, sizeof(d.netdev), "eth3");
	device_tree_netdev(&d, name);
	cr_expect_str_eq(name, "eth3", "the port's");
	d.netdev[0] = '\0';
	d.gid[1] = (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 77 } };
	device_tree_netdev(&d, name);
	cr_expect_str_eq(name, "", "nobody has it");
	d.gid[2] = (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	device_tree_netdev(&d, name);
	cr_expect_str_eq(name, "lo");
}
