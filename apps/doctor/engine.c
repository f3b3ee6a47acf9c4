/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine that `uroce` commands would use: whether it runs, and what holds its socket if not. */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>

#include "holder.h"
#include "tree.h"

static void say_who_may(const struct machine *m, struct finding *f)
{
	const struct group *g;
	struct stat st;
	char path[256];

	tree_path(m, path, sizeof(path), "%s", m->socket);
	finding_set(f, CHECK_MISSING, "this user may not attach to %s", m->socket);
	if (stat(path, &st) == 0 && (st.st_mode & S_IWGRP) != 0 && st.st_gid != 0 &&
	    (g = getgrgid(st.st_gid)) != NULL)
		finding_mend(f, "usermod -aG %s USER, and log in again", g->gr_name);
	else
		finding_mend(f,
			     "uroced ... --socket-group rdma --socket-mode 0660, and usermod -aG "
			     "rdma USER");
}

/* Nothing answers there. */
static void look_at_lock(const struct machine *m, struct finding *f)
{
	struct holder h;
	char lock[128];

	snprintf(lock, sizeof(lock), "%s.lock", m->socket);
	if (holder_of_lock(m, lock, &h)) {
		finding_set(f, CHECK_MISSING, "%s (process %d) holds %s but does not serve (yet)",
			    h.program[0] != '\0' ? h.program : "?", h.pid, m->socket);
		finding_mend(f, "kill %d, if it stays so", h.pid);
	} else if (tree_has(m, "%s", m->socket)) {
		finding_set(f, CHECK_OK,
			    "none runs; a dead engine left %s, which the next one replaces",
			    m->socket);
	} else {
		finding_set(f, CHECK_OK, "none runs at %s", m->socket);
	}
}

static void say_hangs(const struct machine *m, struct finding *f)
{
	finding_set(f, CHECK_MISSING, "%.200s", m->engine);
	if (m->engine_pid > 0)
		finding_mend(f, "systemctl restart uroced, or: kill -9 %d", m->engine_pid);
	else
		finding_mend(f, "systemctl restart uroced");
}

void check_engine(const struct machine *m, struct finding *f)
{
	switch (m->engine_error) {
	case 0:
		if (m->engine_pid > 0)
			finding_set(f, CHECK_OK, "%.120s at %s, process %d", m->engine, m->socket,
				    m->engine_pid);
		else
			finding_set(f, CHECK_OK, "%.120s at %s", m->engine, m->socket);
		break;
	case EACCES:
	case EPERM:
		say_who_may(m, f);
		break;
	case ENOENT:
	case ECONNREFUSED:
		look_at_lock(m, f);
		break;
	case ETIMEDOUT:
		say_hangs(m, f);
		break;
	default:
		finding_set(f, CHECK_MISSING, "%.200s", m->engine);
		finding_mend(f, "uroce stat --socket PATH names another engine");
	}
}
