/* SPDX-License-Identifier: BSD-3-Clause */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LINES_OF_NO_TERMINAL 24u

/* The other page, where lines do not wrap and there is no cursor; and back. */
#define PAGE_OPEN  "\033[?1049h\033[?7l\033[?25l"
#define PAGE_CLOSE "\033[?25h\033[?7h\033[?1049l"
#define PAGE_CLEAR "\033[H\033[2J"

static struct {
	bool page;
	bool keys; /* standard input gives each key at once */
	struct termios before;
} screen;

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	ended = 1;
}

static void take_keys(void)
{
	struct termios t;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &screen.before) != 0)
		return;
	t = screen.before;
	t.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	screen.keys = tcsetattr(STDIN_FILENO, TCSANOW, &t) == 0;
}

void screen_open(bool page)
{
	struct sigaction end = { .sa_handler = on_signal };

	screen.page = page;
	if (!page)
		return; /* signals end it as they are */
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	take_keys();
	fputs(PAGE_OPEN, stdout);
}

void screen_close(void)
{
	if (!screen.page)
		return;
	fputs(PAGE_CLOSE, stdout);
	fflush(stdout);
	if (screen.keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
	screen.page = screen.keys = false;
}

uint32_t screen_lines(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
		return LINES_OF_NO_TERMINAL;
	return size.ws_row;
}

void screen_begin(void)
{
	if (screen.page)
		fputs(PAGE_CLEAR, stdout);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Keys that wait. The end of the input does not mean that the user wants to end: the command may
 * run in the background.
 */
static bool key_ends(void)
{
	char key[16];
	ssize_t n = read(STDIN_FILENO, key, sizeof(key));

	if (n <= 0)
		screen.keys = false;
	return n > 0 && memchr(key, 'q', (size_t)n) != NULL;
}

bool screen_wait(double seconds)
{
	double end = now() + seconds, left;

	while (ended == 0 && (left = end - now()) > 0) {
		struct pollfd p = { .fd = screen.keys ? STDIN_FILENO : -1, .events = POLLIN };
		struct timespec t = { .tv_sec = (time_t)left };

		t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
		if (ppoll(&p, 1, &t, NULL) > 0 && key_ends())
			return false;
	}
	return ended == 0;
}
