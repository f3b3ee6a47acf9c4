/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that registers memory while memory hooks are active: those of UCX (libucm, which
 * replaces libc's mapping calls) or of a preloaded allocator. Its buffers keep their contents,
 * calloc returns zeros, and the hooks do not see registration. Runs with an engine at
 * $UROCE_SOCKET. usage: beside-hooks none | ucm
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OCTETS ((size_t)4 << 20)
#define ROUNDS 20

/* libucm's ucm/api/ucm.h, which Debian has in another package. */
#define UCM_VM_MAPPED	(1 << 16)
#define UCM_VM_UNMAPPED (1 << 17)

union ucm_event {
	struct {
		void *address;
		size_t size;
	} vm;
};

typedef int ucm_set_event_handler_function(int events, int priority,
					   void (*heard)(int type, union ucm_event *event,
							 void *argument),
					   void *argument);

static uint8_t *buffer[2];
static uint32_t heard_all, heard_ours;

static void hear(int type, union ucm_event *event, void *argument)
{
	uint8_t *from = event->vm.address, *to = from + event->vm.size;

	heard_all++;
	for (int i = 0; i < 2; i++)
		if (buffer[i] != NULL && from < buffer[i] + OCTETS && to > buffer[i])
			heard_ours++;
}

static void fail(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static void need(bool good, const char *what)
{
	if (!good)
		fail(what);
}

static void install_ucm(void)
{
	/* libucm calls libucs, which loads it */
	void *library = dlopen("libucs.so.0", RTLD_LAZY | RTLD_GLOBAL);
	ucm_set_event_handler_function *set;
	void *p;

	if (library == NULL) {
		printf("skipped: %s\n", dlerror());
		exit(77);
	}
	*(void **)&set = dlsym(library, "ucm_set_event_handler");
	need(set != NULL, "no ucm_set_event_handler");
	need(set(UCM_VM_MAPPED | UCM_VM_UNMAPPED, 0, hear, NULL) == 0, "hooks are not installed");
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 4096);
	need(heard_all >= 2, "the hooks do not hear of mmap and munmap");
}

static struct ibv_pd *open_pd(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;

	need(pd != NULL, "no device");
	ibv_free_device_list(list);
	return pd;
}

static void need_all(const uint8_t *p, uint8_t value, const char *what)
{
	for (size_t i = 0; i < OCTETS; i++)
		if (p[i] != value) {
			printf("%s: octet %zu is %u, not %u\n", what, i, p[i], value);
			exit(1);
		}
}

static struct ibv_mr *reg(struct ibv_pd *pd, uint8_t *p)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, p, OCTETS, IBV_ACCESS_LOCAL_WRITE);

	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void two_buffers(struct ibv_pd *pd)
{
	struct ibv_mr *mr;

	for (int i = 0; i < 2; i++) {
		uint8_t *p = malloc(OCTETS);

		need(p != NULL, "malloc");
		memset(p, 0xa0 + i, OCTETS);
		buffer[i] = p;
	}
	mr = reg(pd, buffer[0]);
	need_all(buffer[0], 0xa0, "a buffer while it is registered");
	need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	need_all(buffer[0], 0xa0, "a buffer that was registered");
	mr = reg(pd, buffer[1]);
	need_all(buffer[0], 0xa0, "a buffer beside one that is registered");
	need_all(buffer[1], 0xa1, "the other buffer");
	need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	need_all(buffer[1], 0xa1, "the other buffer after that");
	if (heard_ours != 0) {
		printf("the hooks heard %u times of buffers that were only registered\n",
		       heard_ours);
		exit(1);
	}
	for (int i = 0; i < 2; i++) {
		uint8_t *p = buffer[i];

		buffer[i] = NULL;
		free(p);
	}
}

/* Allocators rely on pages that the kernel has dropped to be zero. */
static void what_calloc_gives(struct ibv_pd *pd)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t *p = calloc(1, OCTETS);

		need(p != NULL, "calloc");
		need_all(p, 0, "memory from calloc");
		memset(p, i + 1, OCTETS);
		need(ibv_dereg_mr(reg(pd, p)) == 0, "ibv_dereg_mr");
		need_all(p, (uint8_t)(i + 1), "memory from calloc that was registered");
		free(p);
	}
}

int main(int argc, char **argv)
{
	struct ibv_pd *pd;

	if (argc == 2 && strcmp(argv[1], "ucm") == 0)
		install_ucm();
	pd = open_pd();
	two_buffers(pd);
	what_calloc_gives(pd);
	printf("all stayed as it was\n");
	return 0;
}
