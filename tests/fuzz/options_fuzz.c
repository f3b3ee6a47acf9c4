/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for uroced's command line and its configuration file. The words of the input are
 * separated by zeros; what follows the octet 1 is the file. Whatever is wrong is said in one line,
 * and what was accepted is in the range that the usage announces.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/uroced/uroced_eal_options.h"
#include "engine/address.h"
#include "input.h"

#define WORDS	  24
#define FILE_MARK 1

static int file = -1;
static char file_name[64];

/* A file in memory, whose name is the same for every input. */
static void write_file(const char *text, size_t length)
{
	if (file < 0) {
		file = memfd_create("uroced.conf", MFD_CLOEXEC);
		demand(file >= 0);
		snprintf(file_name, sizeof(file_name), "/proc/self/fd/%d", file);
	}
	demand(ftruncate(file, 0) == 0);
	demand(pwrite(file, text, length, 0) == (ssize_t)length);
}

static int split(char *text, size_t length, char **argv)
{
	int argc = 1;

	argv[0] = (char *)(uintptr_t) "--";
	for (size_t i = 0; i < length && argc < WORDS; i++)
		if (i == 0 || text[i - 1] == '\0')
			argv[argc++] = text + i;
	return argc;
}

static void look_at(const struct uroced_options *o)
{
	const struct uroce_options *e = &o->engine;

	demand(e->addresses <= 16 && e->gateways <= 2);
	demand(e->mtu == 0 || (e->mtu >= 336 && e->mtu <= 9978));
	demand(e->vlan <= 4094);
	demand(e->socket_mode <= 0777);
	demand(e->exit_when_idle <= 86400);
	demand(o->log <= 8);
	for (uint32_t i = 0; i < e->addresses; i++)
		demand(address_wrong(&e->address[i]) == NULL &&
		       e->address[i].prefix <= (address_is_ipv4(&e->address[i]) ? 32 : 128));
	demand(e->gateways < 2 ||
	       address_is_ipv4(&e->gateway[0]) != address_is_ipv4(&e->gateway[1]));
	demand(o->netdev[0] == '\0' || o->port[0] == '\0');
}

static void parse(int argc, char **argv)
{
	static struct uroced_options o;
	char why[256];
	int status = uroced_options_parse(&o, argc, argv, why, sizeof(why));

	demand(strchr(why, '\n') == NULL && strlen(why) < sizeof(why));
	if (status == OPTIONS_OK) {
		demand(why[0] == '\0');
		look_at(&o);
	} else {
		demand(status == OPTIONS_HELP || why[0] != '\0');
	}
}

static void arguments_of_eal(int argc, char **argv)
{
	static struct eal_arguments eal;
	const struct eal_facts facts = { .hugepages = argc & 1, .pid = 1, .cpus = "0-1" };
	char why[256];
	int own;

	if (eal_arguments_make(&eal, argc, argv, &facts, &own, why, sizeof(why)) != 0)
		return;
	demand(own >= 0 && own <= argc);
	demand(eal.argc > 0 && eal.argc < EAL_ARGUMENTS_MAX);
	demand(eal.argv[eal.argc] == NULL);
	why[0] = '\0';
	demand((eal_options_check(&eal, why, sizeof(why)) == 0) == (why[0] == '\0'));
	demand(strchr(why, '\n') == NULL && strlen(why) < sizeof(why));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[WORDS + 3];
	const uint8_t *mark = size > 0 ? memchr(data, FILE_MARK, size) : NULL;
	size_t words = mark != NULL ? (size_t)(mark - data) : size;
	int argc;

	if (size > 0)
		memcpy(text, data, size);
	text[words] = '\0';
	for (size_t i = 0; i < words; i++)
		if (text[i] == '\n') /* a message repeats the given text */
			text[i] = ' ';
	argc = split(text, words, argv);
	if (mark != NULL) {
		write_file((const char *)mark + 1, size - words - 1);
		argv[argc++] = (char *)(uintptr_t) "--config";
		argv[argc++] = file_name;
	}
	argv[argc] = NULL;
	parse(argc, argv);
	arguments_of_eal(argc, argv);
	free(text);
	return 0;
}
