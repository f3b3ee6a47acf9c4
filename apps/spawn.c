/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes the lock beside the socket, checks again whether an engine answers (the shell that held the
 * lock may have started it), starts uroced in a session of its own with its output in a log file,
 * and waits until it answers, dies, or the time is over.
 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

#define START_TRIES    1500 /* times START_PAUSE_MS: 30 s */
#define START_PAUSE_MS 20
#define IDLE_SECONDS   "10"

/* The path of another file in the socket's folder. */
static void beside(const char *socket, const char *name, char path[PATH_MAX])
{
	int folder = (int)(strrchr(socket, '/') - socket);

	snprintf(path, PATH_MAX, "%.*s/%s", folder, socket, name);
}

static int lock_start(const char *socket, char *why, size_t why_size)
{
	char path[PATH_MAX];
	int fd;

	beside(socket, "start.lock", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	snprintf(why, why_size, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static void become_engine(const char *program, const char *socket, const char *log)
{
	int in = open("/dev/null", O_RDONLY);
	int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	sigset_t none;

	if (in < 0 || out < 0)
		_exit(127);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	closefrom(STDERR_FILENO + 1); /* the engine must not keep the shell's pipes open */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/") == 0)
		execl(program, program, "--no-huge", "--", "--socket", socket, "--exit-when-idle",
		      IDLE_SECONDS, (char *)NULL);
	dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

/*
 * The engine must not be a child of the program that this process is about to become, so a process
 * in between starts it and exits. Returns a pidfd of the engine, or -1.
 */
static int start_detached(const char *program, const char *socket, const char *log)
{
	int tell[2], status;
	pid_t between, engine = -1;

	if (pipe2(tell, O_CLOEXEC) != 0)
		return -1;
	between = fork();
	if (between == 0) {
		engine = fork();
		if (engine == 0)
			become_engine(program, socket, log);
		_exit(write(tell[1], &engine, sizeof(engine)) != (ssize_t)sizeof(engine));
	}
	close(tell[1]);
	if (between > 0 && read(tell[0], &engine, sizeof(engine)) != (ssize_t)sizeof(engine))
		engine = -1;
	if (between > 0)
		waitpid(between, &status, 0);
	close(tell[0]);
	return engine > 0 ? (int)syscall(SYS_pidfd_open, engine, 0) : -1;
}

/* The last line that the engine printed. */
static void last_line(const char *log, char *line, size_t size)
{
	FILE *f = fopen(log, "r");
	char text[512];

	snprintf(line, size, "it printed nothing");
	while (f != NULL && fgets(text, sizeof(text), f) != NULL) {
		text[strcspn(text, "\n")] = '\0';
		if (text[0] != '\0')
			snprintf(line, size, "%.*s", (int)size - 1, text);
	}
	if (f != NULL)
		fclose(f);
}

static int await_engine(int pidfd, const char *log, struct engine_place *where,
			struct reply_device *device, char *why, size_t why_size)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	char said[256], reason[256];

	for (int i = 0; i < START_TRIES; i++) {
		if (engine_try(where->path, device, reason, sizeof(reason)) == 0)
			return 0;
		if (pidfd < 0 || poll(&end, 1, START_PAUSE_MS) > 0) {
			last_line(log, said, sizeof(said));
			snprintf(why, why_size, "cannot start an engine for you: %s", said);
			return ESRCH;
		}
	}
	snprintf(why, why_size, "the engine started for you did not serve %s within 30 s; see %s",
		 where->path, log);
	return ETIMEDOUT;
}

int spawn_engine(struct engine_place *where, struct reply_device *device, bool *started, char *why,
		 size_t why_size)
{
	char program[PATH_MAX], log[PATH_MAX], reason[256];
	int error = engine_own_place(true, where, why, why_size), lock, pidfd;

	if (error != 0)
		return error;
	if (own_program("uroced", program, why, why_size) != 0)
		return ENOENT;
	lock = lock_start(where->path, why, why_size);
	if (lock < 0)
		return EACCES;
	error = engine_try(where->path, device, reason, sizeof(reason));
	if (error != 0) {
		beside(where->path, "uroced.log", log);
		pidfd = start_detached(program, where->path, log);
		error = await_engine(pidfd, log, where, device, why, why_size);
		*started = error == 0;
		if (pidfd >= 0)
			close(pidfd);
	}
	close(lock);
	return error;
}
