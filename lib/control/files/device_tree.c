/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats are those of Linux's drivers/infiniband/core/sysfs.c, which programs parse. */
#include "control/files/device_tree.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERBS_ABI    6 /* libibverbs expects it in /sys/class/infiniband_verbs/abi_version */
#define CLEAR_DEPTH  12
#define CONTENT_SIZE 128
#define PORT_ACTIVE  4
#define CAPABILITIES 0x04010000 /* IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS */

/* A tree that is being written. After the first error the rest does nothing. */
struct writer {
	int folder;
	int error;
	char name[33]; /* of the device */
};

static const char *path_of(const struct writer *w, const char *format, va_list list,
			   char path[PATH_MAX])
{
	char inside[PATH_MAX / 2];

	vsnprintf(inside, sizeof(inside), format, list);
	snprintf(path, PATH_MAX, "class/infiniband/%s/%s", w->name, inside);
	return path;
}

static bool is_same(const struct writer *w, const char *path, const char *content, size_t length)
{
	int fd = openat(w->folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char now[CONTENT_SIZE];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, now, sizeof(now));
	close(fd);
	return n == (ssize_t)length && memcmp(now, content, length) == 0;
}

/* Replaces the file, so that a program that has the old one open still reads the old content. */
static void put(struct writer *w, const char *path, const char *content)
{
	size_t length = strlen(content);
	int fd;

	if (w->error != 0 || is_same(w, path, content, length))
		return;
	unlinkat(w->folder, ".new", 0);
	fd = openat(w->folder, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0) {
		w->error = errno;
		return;
	}
	if (write(fd, content, length) != (ssize_t)length || fchmod(fd, 0444) != 0 ||
	    renameat(w->folder, ".new", w->folder, path) != 0)
		w->error = errno;
	close(fd);
}

/* Writes one line to a file of the device. */
static __attribute__((format(printf, 3, 4))) void put_line(struct writer *w, const char *file,
							   const char *format, ...)
{
	char path[PATH_MAX], content[CONTENT_SIZE];
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(content, sizeof(content) - 1, format, list);
	va_end(list);
	if (n < 0 || n >= (int)sizeof(content) - 1)
		n = sizeof(content) - 2;
	strcpy(content + n, "\n");
	snprintf(path, sizeof(path), "class/infiniband/%s/%s", w->name, file);
	put(w, path, content);
}

static void make_folder(struct writer *w, const char *path)
{
	if (w->error != 0)
		return;
	if (mkdirat(w->folder, path, 0755) == 0) {
		if (fchmodat(w->folder, path, 0755, 0) != 0) /* whatever the umask is */
			w->error = errno;
	} else if (errno != EEXIST) {
		w->error = errno;
	}
}

static __attribute__((format(printf, 2, 3))) void make_own_folder(struct writer *w,
								  const char *format, ...)
{
	char path[PATH_MAX];
	va_list list;

	va_start(list, format);
	make_folder(w, path_of(w, format, list, path));
	va_end(list);
}

static __attribute__((format(printf, 2, 3))) void drop(struct writer *w, const char *format, ...)
{
	char path[PATH_MAX];
	va_list list;

	va_start(list, format);
	if (unlinkat(w->folder, path_of(w, format, list, path), 0) != 0 && errno != ENOENT)
		w->error = errno;
	va_end(list);
}

static void make_link(struct writer *w, const char *path, const char *target)
{
	char now[PATH_MAX];
	ssize_t n;

	if (w->error != 0)
		return;
	n = readlinkat(w->folder, path, now, sizeof(now));
	if (n == (ssize_t)strlen(target) && memcmp(now, target, (size_t)n) == 0)
		return;
	unlinkat(w->folder, path, 0);
	if (symlinkat(target, w->folder, path) != 0)
		w->error = errno;
}

/* ---- the content ---- */

static void guid_text(uint64_t guid, char text[24])
{
	const uint8_t *o = (const uint8_t *)&guid; /* octets in network order */

	snprintf(text, 24, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", o[0], o[1], o[2], o[3], o[4],
		 o[5], o[6], o[7]);
}

static void gid_line(const struct gid *g, char text[48])
{
	const uint8_t *o = g->octet;

	for (int i = 0; i < 8; i++)
		snprintf(text + 5 * i, 48 - 5 * (size_t)i, i < 7 ? "%02x%02x:" : "%02x%02x",
			 o[2 * i], o[2 * i + 1]);
}

/* ibv_port_attr.active_speed and active_width in words and hundreds of Mbit/s. */
static void rate_line(const struct reply_device *d, char text[48])
{
	static const struct {
		const char *name;
		unsigned int rate;
	} speed[] = { { "SDR", 25 },  { "DDR", 50 },  { "QDR", 100 }, { "FDR10", 100 },
		      { "FDR", 140 }, { "EDR", 250 }, { "HDR", 500 }, { "NDR", 1000 } };
	static const unsigned int width[] = { 1, 4, 8, 12, 2 };
	unsigned int s = 0, w = 0;

	while (s + 1 < sizeof(speed) / sizeof(speed[0]) && !(d->active_speed >> s & 1))
		s++;
	while (w + 1 < sizeof(width) / sizeof(width[0]) && !(d->active_width >> w & 1))
		w++;
	snprintf(text, 48, "%u%s Gb/sec (%uX %s)", speed[s].rate * width[w] / 10,
		 speed[s].rate * width[w] % 10 ? ".5" : "", width[w], speed[s].name);
}

static const char *state_word(uint8_t state)
{
	static const char *const word[] = {
		"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"
	};

	return state < sizeof(word) / sizeof(word[0]) ? word[state] : "UNKNOWN";
}

static void write_gid(struct writer *w, const struct gid *g, unsigned int index, const char *netdev)
{
	static const struct gid free_entry;
	char file[64], text[48];

	gid_line(g, text);
	snprintf(file, sizeof(file), "ports/1/gids/%u", index);
	put_line(w, file, "%s", text);
	/* The kernel has no type and no interface for a free entry. */
	if (memcmp(g, &free_entry, sizeof(*g)) == 0) {
		drop(w, "ports/1/gid_attrs/types/%u", index);
		drop(w, "ports/1/gid_attrs/ndevs/%u", index);
		return;
	}
	snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%u", index);
	put_line(w, file, "RoCE v2");
	if (netdev[0] == '\0') {
		drop(w, "ports/1/gid_attrs/ndevs/%u", index);
		return;
	}
	snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%u", index);
	put_line(w, file, "%s", netdev);
}

static void write_port(struct writer *w, const struct reply_device *d, const char *netdev)
{
	bool active = d->port_state == PORT_ACTIVE;
	char rate[48];

	rate_line(d, rate);
	put_line(w, "ports/1/state", "%u: %s", d->port_state, state_word(d->port_state));
	put_line(w, "ports/1/phys_state", active ? "5: LinkUp" : "3: Disabled");
	put_line(w, "ports/1/rate", "%s", rate);
	put_line(w, "ports/1/link_layer", "Ethernet");
	put_line(w, "ports/1/lid", "0x0");
	put_line(w, "ports/1/lid_mask_count", "0");
	put_line(w, "ports/1/sm_lid", "0x0");
	put_line(w, "ports/1/sm_sl", "0");
	put_line(w, "ports/1/cap_mask", "0x%08x", CAPABILITIES);
	put_line(w, "ports/1/pkeys/0", "0xffff");
	for (unsigned int i = 0; i < LIMIT_GIDS; i++)
		write_gid(w, &d->gid[i], i, netdev);
}

static void write_device(struct writer *w, const struct reply_device *d)
{
	char guid[24];

	guid_text(d->node_guid, guid);
	put_line(w, "node_type", "1: CA");
	put_line(w, "node_guid", "%s", guid);
	guid_text(d->sys_image_guid, guid);
	put_line(w, "sys_image_guid", "%s", guid);
	put_line(w, "node_desc", "%s", w->name);
	put_line(w, "fw_ver", "%s", UROCE_VERSION);
	put_line(w, "hw_rev", "0");
	put_line(w, "hca_type", "uroce");
	put_line(w, "board_id", "uroce-%s", UROCE_VERSION);
	put_line(w, "device/vendor", "0x%04x", DEVICE_VENDOR_ID);
	put_line(w, "device/device", "0x%04x", DEVICE_PART_ID);
	put_line(w, "device/numa_node", "-1");
}

/* device/net/IFACE, as the interface's own directory. */
static void write_netdev(struct writer *w, const char *netdev)
{
	char path[PATH_MAX], target[64];
	int fd;

	snprintf(path, sizeof(path), "class/infiniband/%s/device/net", w->name);
	snprintf(target, sizeof(target), "/sys/class/net/%s", netdev);
	if (netdev[0] != '\0')
		make_folder(w, path);
	fd = openat(w->folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && (netdev[0] == '\0' || faccessat(fd, netdev, F_OK, AT_SYMLINK_NOFOLLOW)))
		device_tree_clear(fd); /* left by another engine */
	if (fd >= 0)
		close(fd);
	if (netdev[0] == '\0') {
		unlinkat(w->folder, path, AT_REMOVEDIR);
		return;
	}
	snprintf(path, sizeof(path), "class/infiniband/%s/device/net/%s", w->name, netdev);
	make_link(w, path, target);
}

static void make_folders(struct writer *w)
{
	static const char *const own[] = { "",
					   "device",
					   "ports",
					   "ports/1",
					   "ports/1/gids",
					   "ports/1/pkeys",
					   "ports/1/gid_attrs",
					   "ports/1/gid_attrs/types",
					   "ports/1/gid_attrs/ndevs" };

	make_folder(w, "class");
	make_folder(w, "class/infiniband");
	make_folder(w, "class/infiniband_verbs");
	make_folder(w, "dev");
	make_folder(w, "dev/infiniband");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		make_own_folder(w, "%s", own[i]);
}

static void write_verbs(struct writer *w)
{
	char path[PATH_MAX], text[CONTENT_SIZE];

	snprintf(path, sizeof(path), "class/infiniband_verbs/%s", w->name);
	make_folder(w, path);
	snprintf(path, sizeof(path), "class/infiniband_verbs/%s/ibdev", w->name);
	snprintf(text, sizeof(text), "%s\n", w->name);
	put(w, path, text);
	snprintf(path, sizeof(path), "class/infiniband_verbs/%s/abi_version", w->name);
	put(w, path, "1\n");
	snprintf(path, sizeof(path), "class/infiniband_verbs/%s/device", w->name);
	snprintf(text, sizeof(text), "../../infiniband/%s/device", w->name);
	make_link(w, path, text);
	snprintf(text, sizeof(text), "%u\n", VERBS_ABI);
	put(w, "class/infiniband_verbs/abi_version", text);
	snprintf(path, sizeof(path), "dev/infiniband/%s", w->name);
	make_link(w, path, "/dev/full");
}

int device_tree_write(int folder, const struct reply_device *d, const char *netdev)
{
	struct writer w = { .folder = folder };
	char text[CONTENT_SIZE];

	snprintf(w.name, sizeof(w.name), "%.*s", (int)sizeof(d->name), d->name);
	if (w.name[0] == '\0' || w.name[0] == '.' || strchr(w.name, '/') != NULL ||
	    netdev[0] == '.' || strchr(netdev, '/') != NULL)
		return EINVAL;
	make_folders(&w);
	write_device(&w, d);
	write_port(&w, d, netdev);
	write_netdev(&w, netdev);
	write_verbs(&w);
	/* last: a program that finds this file finds the others */
	snprintf(text, sizeof(text), "%016" PRIx64 "\n", d->engine_id);
	put(&w, "engine", text);
	return w.error;
}

/* ---- removal ---- */

static void clear(int folder, int depth)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), inside;
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (list == NULL && fd >= 0)
		close(fd);
	while (list != NULL && (entry = readdir(list)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    unlinkat(folder, entry->d_name, 0) == 0 || depth == 0)
			continue;
		inside = openat(folder, entry->d_name,
				O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (inside < 0)
			continue;
		clear(inside, depth - 1);
		close(inside);
		unlinkat(folder, entry->d_name, AT_REMOVEDIR);
	}
	if (list != NULL)
		closedir(list);
}

void device_tree_clear(int folder)
{
	clear(folder, CLEAR_DEPTH);
}

/* ---- the interface ---- */

static bool has(const struct reply_device *d, const struct sockaddr *a)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff } };

	if (a->sa_family == AF_INET)
		memcpy(g.octet + 12, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
	else if (a->sa_family == AF_INET6)
		memcpy(g.octet, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
	else
		return false;
	for (unsigned int i = 0; i < LIMIT_GIDS; i++)
		if (memcmp(&d->gid[i], &g, sizeof(g)) == 0)
			return true;
	return false;
}

void device_tree_netdev(const struct reply_device *d, char name[16])
{
	struct ifaddrs *all = NULL;

	snprintf(name, 16, "%.*s", (int)sizeof(d->netdev) - 1, d->netdev);
	if (name[0] != '\0' || getifaddrs(&all) != 0)
		return;
	for (struct ifaddrs *a = all; a != NULL && name[0] == '\0'; a = a->ifa_next)
		if (a->ifa_addr != NULL && has(d, a->ifa_addr))
			snprintf(name, 16, "%s", a->ifa_name);
	freeifaddrs(all);
}
