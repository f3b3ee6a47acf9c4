/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: each check tests one property of a machine and of the port that an engine is to
 * have. A check reads files below `root` and changes nothing, so a test can give it a tree of its
 * own.
 */
#ifndef APPS_DOCTOR_H
#define APPS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verdict_of_check {
	CHECK_NONE, /* the check says nothing about this kind of port */
	CHECK_OK,
	CHECK_SLOW, /* works, but costs speed, or a part does not work */
	CHECK_MISSING, /* an engine does not start, or serves no program */
};

struct finding {
	enum verdict_of_check verdict;
	char text[256];
	char mend[256]; /* the command, or what to do where no command helps; "" if all is well */
};

enum port_kind {
	PORT_NONE, /* not given: programs of this host only */
	PORT_NETDEV, /* --netdev: a Linux interface */
	PORT_PCI, /* --port: a PCI device for DPDK */
};

struct machine {
	const char *
		root; /* "": this machine's own files; otherwise a folder that has dev, proc, sys */
	enum port_kind kind;
	char iface
		[16]; /* PORT_NETDEV; or the interface that a kernel driver made of the PCI device */
	char pci[16]; /* "0000:03:00.0"; "": the port is not a PCI device */
	int32_t node; /* of the port; -1: not known */

	/* this process: an engine that it starts has the same */
	uint64_t memlock; /* octets that it may lock */
	bool may_lock; /* without limit */
	bool may_packet; /* may open packet sockets and configure interfaces */
	bool root_user;

	/* the engine that `uroce` commands would use */
	char socket[108];
	int engine_error; /* 0: it answers; otherwise what locate.h says */
	char engine[512]; /* its description, or one line about what failed */
	int32_t engine_pid; /* 0: unknown */
	bool engine_active; /* its port is */
};

struct check {
	const char *name;
	void (*run)(const struct machine *m, struct finding *f);
};

/* Ends with a NULL name. */
extern const struct check checks[];

/*
 * Sets kind, iface, pci and node from the name of a Linux interface or an address of a PCI device
 * ("0000:03:00.0", "03:00.0"). False: the machine has no such port.
 */
bool machine_choose_port(struct machine *m, const char *name);
/* Fills in the properties of this process. */
void machine_read_process(struct machine *m);

void check_hugepages(const struct machine *m, struct finding *f);
void check_memory_lock(const struct machine *m, struct finding *f);
void check_iommu(const struct machine *m, struct finding *f);
void check_vfio(const struct machine *m, struct finding *f);
void check_driver(const struct machine *m, struct finding *f);
void check_group(const struct machine *m, struct finding *f);
void check_pcie(const struct machine *m, struct finding *f);
void check_cpu(const struct machine *m, struct finding *f);
void check_governor(const struct machine *m, struct finding *f);
void check_idle_states(const struct machine *m, struct finding *f);
void check_isolcpus(const struct machine *m, struct finding *f);
void check_nohz_full(const struct machine *m, struct finding *f);
void check_numa(const struct machine *m, struct finding *f);
void check_privileges(const struct machine *m, struct finding *f);
void check_link(const struct machine *m, struct finding *f);
void check_mtu(const struct machine *m, struct finding *f);
void check_udp_port(const struct machine *m, struct finding *f);
void check_tun(const struct machine *m, struct finding *f);
void check_ptrace(const struct machine *m, struct finding *f);
void check_engine(const struct machine *m, struct finding *f);

/* ---- for checks ---- */

/* How DPDK reaches a PCI device, by the name of the driver that it is bound to. */
enum bound_to {
	BOUND_NONE,
	BOUND_KERNEL,
	BOUND_VFIO,
	BOUND_UIO, /* without an IOMMU: physical addresses */
	BOUND_SHARED, /* DPDK works beside the kernel's driver */
};

enum bound_to device_bound_to(const struct machine *m, char *driver, size_t size);
/* Whether the engine above has the PCI device, as far as this process may see it. */
bool device_is_of_engine(const struct machine *m);
/* vfio without an IOMMU is switched on. */
bool vfio_is_unsafe(const struct machine *m);

/* Characters that cannot be printed become question marks. */
void finding_set(struct finding *f, enum verdict_of_check verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void finding_mend(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
