/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_reload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "uroced_log.h"

#define SOCKET_MODE 0600 /* unless an option says otherwise */

/* The options as given at the start; the ones in force have defaults filled in. */
static struct {
	struct uroced_options options;
	int argc;
	char **argv;
} started;

void reload_begin(const struct uroced_options *o, int argc, char **argv)
{
	started.options = *o;
	started.argc = argc;
	started.argv = argv;
}

/* ---- what differs ---- */

#define OWN(name, field)                                                                    \
	{                                                                                   \
		name, offsetof(struct uroced_options, field), sizeof(started.options.field) \
	}

/* Those that are read once, when the engine starts. */
static const struct {
	const char *name;
	size_t offset, size;
} at_start[] = {
	OWN("netdev", netdev),
	OWN("netdev-driver", netdev_driver),
	OWN("port", port),
	OWN("kernel-interface", kernel_interface),
	OWN("ip", engine.address),
	OWN("gateway", engine.gateway),
	OWN("mtu", engine.mtu),
	OWN("descriptors", descriptors),
	OWN("offload", offloads),
	OWN("vlan", engine.vlan),
	OWN("socket", socket),
	OWN("priority", engine.urgent),
	OWN("exit-when-idle", engine.exit_when_idle),
	OWN("confine", unconfined),
	OWN("cmdline-file", cmdline_file),
	OWN("interactive", interactive),
};

static void add(char *text, size_t size, const char *word)
{
	size_t n = strlen(text);

	snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "", word);
}

/* The names of the options that would need a restart; "": none. */
static void list_refused(const struct uroced_options *new, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(at_start); i++)
		if (memcmp((const char *)new + at_start[i].offset,
			   (const char *)&started.options + at_start[i].offset,
			   at_start[i].size) != 0)
			add(text, size, at_start[i].name);
}

/* ---- the socket ---- */

static mode_t mode_of(const struct uroced_options *o)
{
	return o->engine.socket_mode != 0 ? (mode_t)o->engine.socket_mode : SOCKET_MODE;
}

static gid_t group_of(const struct uroced_options *o)
{
	return o->engine.socket_gid >= 0 ? (gid_t)o->engine.socket_gid : getegid();
}

/*
 * Sets the users who may attach from now on. An engine that has dropped its privileges gives the
 * socket to a group that it is a member of. While the group changes, the mode has only the rights
 * that both the old and the new options give, so nobody is let in whom neither of them lets in. If
 * the group cannot be changed, the old mode returns. 0 or an errno.
 */
static int change_socket(const struct uroced_options *from, const struct uroced_options *to,
			 const char *path)
{
	mode_t both = mode_of(from) & mode_of(to);
	int error = 0;

	if (mode_of(from) == mode_of(to) && group_of(from) == group_of(to))
		return 0;
	if (chmod(path, both) != 0)
		return errno;
	if (group_of(from) != group_of(to) && chown(path, (uid_t)-1, group_of(to)) != 0)
		error = errno;
	if (chmod(path, mode_of(error == 0 ? to : from)) != 0 && error == 0)
		error = errno;
	return error;
}

/* ---- all ---- */

static void say_changes(const struct uroced_options *new, const struct uroced_options *o)
{
	char text[256] = "", word[64];

	if (new->engine.adaptive != o->engine.adaptive) {
		snprintf(word, sizeof(word), "idle %s", new->engine.adaptive ? "adaptive" : "spin");
		add(text, sizeof(text), word);
	}
	if (log_level() != log_chosen(new->log)) {
		snprintf(word, sizeof(word), "log %s", log_level_name(log_chosen(new->log)));
		add(text, sizeof(text), word);
	}
	if (mode_of(new) != mode_of(o)) {
		snprintf(word, sizeof(word), "socket-mode %04o", (unsigned int)mode_of(new));
		add(text, sizeof(text), word);
	}
	if (group_of(new) != group_of(o)) {
		snprintf(word, sizeof(word), "socket-group %u", (unsigned int)group_of(new));
		add(text, sizeof(text), word);
	}
	SAY(NOTICE, "reloaded %s: %s", new->config, text[0] != '\0' ? text : "nothing has changed");
}

static void put_into_force(struct uroce_engine *e, const struct uroced_options *new,
			   struct uroced_options *o)
{
	uroce_set_adaptive(e, new->engine.adaptive);
	log_choose(new->log);
	o->engine.adaptive = new->engine.adaptive;
	o->engine.socket_mode = new->engine.socket_mode;
	o->engine.socket_gid = new->engine.socket_gid;
	o->log = new->log;
}

void reload(struct uroce_engine *e, struct uroced_options *o)
{
	static struct uroced_options new;
	char why[512], refused[256];
	int error;

	if (uroced_options_parse(&new, started.argc, started.argv, why, sizeof(why)) !=
	    OPTIONS_OK) {
		SAY(ERR, "cannot reload: %s: nothing has changed", why);
		return;
	}
	error = change_socket(o, &new, o->socket);
	if (error != 0) {
		SAY(ERR,
		    "cannot reload %s: socket-mode and socket-group of %s: %s: nothing has changed",
		    new.config, o->socket, strerror(error));
		return;
	}
	say_changes(&new, o);
	list_refused(&new, refused, sizeof(refused));
	if (refused[0] != '\0')
		SAY(WARNING, "restart uroced for the other changes in %s: %s", new.config, refused);
	put_into_force(e, &new, o);
}
