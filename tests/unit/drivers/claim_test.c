/* SPDX-License-Identifier: BSD-3-Clause */
/* One engine for an interface and VLAN, and the name of its holder. Each test has its own network namespace. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/ethdev/claim.h"
#include "net_namespace.h"

#define NOBODY 65534

static char why[256];

TestSuite(claim, .init = net_namespace_enter, .timeout = 30);

enum {
	NONE = -1,
	TAKEN = -2
};

/* The descriptor of the claim, or one of these. */
static int claim(uint32_t ifindex, uint16_t vlan)
{
	struct claim c = claim_none();

	why[0] = '\0';
	return claim_take(&c, ifindex, vlan, why, sizeof(why)) ? c.fd : TAKEN;
}

/* A process that claims interface 7 as this user, and lives until it is killed. */
static pid_t other_process(uid_t user, int *claimed)
{
	int tell[2];
	pid_t pid;

	cr_assert_eq(pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		if (user != 0 && setuid(user) != 0)
			_exit(1);
		*claimed = claim(7, 0);
		if (write(tell[1], claimed, sizeof(*claimed)) != sizeof(*claimed))
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(tell[0], claimed, sizeof(*claimed)), sizeof(*claimed));
	close(tell[0]);
	close(tell[1]);
	return pid;
}

static void kill_it(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(claim, the_second_one_hears_who_was_first)
{
	char wanted[256];
	int theirs, ours;
	pid_t pid = other_process(0, &theirs);

	cr_assert_geq(theirs, 0);
	cr_expect_eq(claim(7, 0), TAKEN);
	snprintf(
		wanted, sizeof(wanted),
		"interface 7: another engine (process %d) has this interface: use or stop that engine, or "
		"choose another interface or --vlan",
		pid);
	cr_expect_str_eq(why, wanted);
	cr_expect_eq(claim(7, 0), TAKEN, "who asks does not change it");
	kill_it(pid);
	ours = claim(7, 0);
	cr_expect_geq(ours, 0, "it ended with its process: %s", why);
	close(ours);
}

/* As a service manager asks that starts a second engine again and again. */
Test(claim, it_stays_however_often_others_ask)
{
	int one = claim(7, 0);

	cr_assert_geq(one, 0, "%s", why);
	for (int asked = 0; asked < 300; asked++)
		cr_assert_eq(claim(7, 0), TAKEN, "after %d questions", asked);
	cr_expect_str_eq(
		why,
		"interface 7: another engine has this interface: use or stop that engine, or choose "
		"another interface or --vlan");
	close(one);
}

Test(claim, other_interfaces_and_vlans_are_free)
{
	int one = claim(7, 0), other = claim(8, 0), vlan = claim(7, 5), again;

	cr_expect(one >= 0 && other >= 0 && vlan >= 0, "%s", why);
	cr_expect_eq(claim(7, 5), TAKEN);
	close(vlan);
	again = claim(7, 5);
	cr_expect_geq(again, 0);
	close(one);
	close(other);
	close(again);
}

Test(claim, another_namespace_has_other_interfaces)
{
	int one = claim(7, 0), other;

	net_namespace_enter();
	other = claim(7, 0);
	cr_expect(one >= 0 && other >= 0, "%s", why);
	close(one);
	close(other);
}

/* Any user may bind the name, which must not keep root's engine from its interface. */
Test(claim, users_who_could_not_have_the_interface_do_not_count)
{
	int theirs;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("becoming another user needs root");
	pid = other_process(NOBODY, &theirs);
	cr_assert_geq(theirs, 0);
	for (int asked = 0; asked < 300; asked++)
		cr_assert_eq(claim(7, 0), NONE, "after %d questions", asked);
	cr_expect_str_eq(why, "");
	kill_it(pid);
}

/* ... even if that user's socket does not answer. */
Test(claim, a_name_that_does_not_say_whose_it_is_does_not_count)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t n;

	cr_assert_geq(fd, 0);
	n = (size_t)snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "uroce/netdev/7/0");
	cr_assert_eq(bind(fd, (struct sockaddr *)&at,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)),
		     0);
	cr_expect_eq(claim(7, 0), NONE, "%s", why);
	close(fd);
}

Test(claim, who_has_a_file_open)
{
	char path[] = "/tmp/claim_test_XXXXXX";
	int fd = mkstemp(path), tell[2];
	char octet = 0;
	pid_t pid;

	cr_assert_geq(fd, 0);
	cr_expect_eq(claim_holder_of(path), 0, "others were asked for");
	close(fd);
	cr_assert_eq(pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		if (open(path, O_RDONLY) < 0 || write(tell[1], &octet, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(tell[0], &octet, 1), 1);
	cr_expect_eq(claim_holder_of(path), pid);
	kill_it(pid);
	cr_expect_eq(claim_holder_of(path), 0);
	unlink(path);
}
