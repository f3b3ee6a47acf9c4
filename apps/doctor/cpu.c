/* SPDX-License-Identifier: BSD-3-Clause */
/* The cores: their instructions, speed and wake-up time, and what else runs on them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cpus.h"
#include "tree.h"

#define CPU "/sys/devices/system/cpu"
#define WAKE_US \
	10 /* an adaptive engine sleeps: this much is lost in the noise of waking a thread */
#define WORDS 256

static bool read_cpus(const struct machine *m, cpu_set_t *set, const char *path)
{
	char text[WORDS];

	CPU_ZERO(set);
	return tree_line(m, text, sizeof(text), "%s", path) && cpus_read(text, set);
}

/* ---- what they can ---- */

/* Whether the first line of cpuinfo that begins with `key` has the word. */
static bool has_flag(const struct machine *m, const char *key, const char *word)
{
	FILE *f = tree_file(m, "/proc/cpuinfo");
	char *line = NULL, *rest, *one;
	bool found = false;
	size_t size = 0;

	while (f != NULL && getline(&line, &size, f) >= 0) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		rest = line;
		while (!found && (one = strsep(&rest, " \t\n")) != NULL)
			found = strcmp(one, word) == 0;
		break;
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return found;
}

void check_cpu(const struct machine *m, struct finding *f)
{
	if (has_flag(m, "flags", "vpclmulqdq") && has_flag(m, "flags", "avx512f"))
		finding_set(f, CHECK_OK, "AVX-512 and VPCLMULQDQ for the checksum of each packet");
	else if (has_flag(m, "flags", "pclmulqdq"))
		finding_set(f, CHECK_OK, "PCLMULQDQ for the checksum of each packet");
	else if (has_flag(m, "Features", "pmull"))
		finding_set(f, CHECK_OK, "PMULL for the checksum of each packet");
	else {
		finding_set(f, CHECK_SLOW,
			    "no PCLMULQDQ: the checksum of each packet (ICRC) is made "
			    "by tables");
		finding_mend(f, "a virtual machine: pass the host's CPU through (QEMU: -cpu host)");
	}
}

/* ---- clock and sleep ---- */

void check_governor(const struct machine *m, struct finding *f)
{
	DIR *policies = tree_folder(m, CPU "/cpufreq");
	char governor[32], other[32] = "";
	uint32_t all = 0, slow = 0;
	const char *name;
	int32_t number;

	while ((name = tree_next(policies)) != NULL) {
		if (!tree_numbered(name, "policy", &number) ||
		    !tree_line(m, governor, sizeof(governor), CPU "/cpufreq/%s/scaling_governor",
			       name))
			continue;
		all++;
		if (strcmp(governor, "performance") == 0)
			continue;
		slow++;
		memcpy(other, governor, sizeof(other));
	}
	if (policies != NULL)
		closedir(policies);
	if (all == 0)
		finding_set(f, CHECK_OK, "the kernel does not set the cores' clock");
	else if (slow == 0)
		finding_set(f, CHECK_OK, "performance");
	else {
		finding_set(f, CHECK_SLOW,
			    "%s on %u of %u clocks: cores of an engine that sleeps "
			    "begin slowly",
			    other, slow, all);
		finding_mend(f, "cpupower frequency-set -g performance");
	}
}

/* The enabled state of cpu0 that takes longest to leave; its time in us. */
static int64_t deepest(const struct machine *m, char *name, size_t size)
{
	int64_t latency, disabled, longest = -1;
	char one[32];

	name[0] = '\0';
	for (int32_t i = 0; tree_has(m, CPU "/cpu0/cpuidle/state%d", i); i++) {
		tree_number(m, &disabled, CPU "/cpu0/cpuidle/state%d/disable", i);
		if (disabled != 0 ||
		    !tree_number(m, &latency, CPU "/cpu0/cpuidle/state%d/latency", i) ||
		    latency <= longest)
			continue;
		longest = latency;
		tree_line(m, one, sizeof(one), CPU "/cpu0/cpuidle/state%d/name", i);
		snprintf(name, size, "%s", one);
	}
	return longest;
}

void check_idle_states(const struct machine *m, struct finding *f)
{
	char name[32];
	int64_t us = deepest(m, name, sizeof(name));

	if (us < 0)
		finding_set(f, CHECK_OK, "the kernel does not set how deep the cores sleep");
	else if (us <= WAKE_US)
		finding_set(f, CHECK_OK, "%s takes %" PRId64 " us to leave", name, us);
	else {
		finding_set(f, CHECK_SLOW, "a core takes %" PRId64 " us to leave %s", us, name);
		finding_mend(f, "cpupower idle-set -D %d", WAKE_US);
	}
}

/* ---- what else runs on them ---- */

/* The last two CPUs near the port, as an example; "": there are too few. */
static void example(const struct machine *m, char *text, size_t size)
{
	cpu_set_t near, two;
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", m->node);
	if (m->node < 0 || !read_cpus(m, &near, path))
		read_cpus(m, &near, CPU "/online");
	CPU_ZERO(&two);
	for (int i = CPU_SETSIZE - 1; i > 0 && CPU_COUNT(&two) < 2; i--)
		if (CPU_ISSET(i, &near))
			CPU_SET(i, &two);
	text[0] = '\0';
	if (CPU_COUNT(&near) > 2)
		cpus_write(&two, text, size);
}

static void look_at_list(const struct machine *m, const char *name, const char *what,
			 const char *also, struct finding *f)
{
	char cores[32], text[WORDS], file[64];
	cpu_set_t set;

	snprintf(file, sizeof(file), CPU "/%s", name);
	if (read_cpus(m, &set, file) && CPU_COUNT(&set) > 0) {
		cpus_write(&set, text, sizeof(text));
		finding_set(f, CHECK_OK, "cores %.180s", text);
		return;
	}
	example(m, cores, sizeof(cores));
	finding_set(f, CHECK_SLOW, "%s", what);
	if (cores[0] == '\0')
		finding_mend(f, "there are too few cores: keep --idle adaptive, which shares them");
	else
		finding_mend(f, "add %s=%s%s%s to the kernel's command line, reboot",
			     name[0] == 'i' ? "isolcpus" : name, cores, also,
			     also[0] != '\0' ? cores : "");
}

void check_isolcpus(const struct machine *m, struct finding *f)
{
	look_at_list(m, "isolated", "the scheduler puts other threads on every core", "", f);
}

void check_nohz_full(const struct machine *m, struct finding *f)
{
	look_at_list(m, "nohz_full", "the timer interrupts every core", " rcu_nocbs=", f);
}

/* ---- how far from the port ---- */

void check_numa(const struct machine *m, struct finding *f)
{
	cpu_set_t near, isolated, both;
	char path[64], text[WORDS], own[WORDS];

	if (m->kind == PORT_NONE || !tree_has(m, "/sys/devices/system/node/node1")) {
		if (m->kind != PORT_NONE)
			finding_set(f, CHECK_OK, "all cores are equally far from the port");
		return;
	}
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", m->node);
	if (m->node < 0 || !read_cpus(m, &near, path)) {
		finding_set(f, CHECK_OK, "the port does not say which node it is on");
		return;
	}
	cpus_write(&near, text, sizeof(text));
	if (!read_cpus(m, &isolated, CPU "/isolated") || CPU_COUNT(&isolated) == 0) {
		finding_set(f, CHECK_OK, "the port is on node %d: give EAL's -l some of %.150s",
			    m->node, text);
		return;
	}
	CPU_AND(&both, &near, &isolated);
	cpus_write(CPU_COUNT(&both) > 0 ? &both : &isolated, own, sizeof(own));
	if (CPU_COUNT(&both) > 0) {
		finding_set(f, CHECK_OK, "the port is on node %d: give EAL's -l some of %.150s",
			    m->node, own);
		return;
	}
	finding_set(f, CHECK_SLOW,
		    "the port is on node %d, and the cores that are kept free (%.100s) "
		    "are not",
		    m->node, own);
	finding_mend(f, "isolate some of %.150s instead", text);
}
