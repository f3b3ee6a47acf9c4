/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine made of a few files, for one check of `uroce doctor`. */
#ifndef TESTS_APPS_DOCTOR_TREE_H
#define TESTS_APPS_DOCTOR_TREE_H

#include "doctor.h"

#define TREE_FILES 10

/* A link if `text` begins with "->"; a folder if it is NULL. The end of a list: no path. */
struct tree_file {
	const char *path; /* below the root, without a slash before it */
	const char *text;
};

/* One look at one machine. */
struct doctor_row {
	const char *what;
	struct tree_file file[TREE_FILES];
	const char *port; /* NULL: no port is chosen */
	struct machine m; /* facts that do not come from files */
	enum verdict_of_check verdict;
	const char *text, *mend; /* a text in the finding; NULL: it has none */
};

/* Makes the files below a new folder, whose path this returns; asserts. */
const char *tree_make(const struct tree_file *file);
void tree_remove(void);

/* ---- files of many rows ---- */

#define NIC	"0000:03:00.0"
#define DEVICES "sys/bus/pci/devices/"
#define NODES	"sys/devices/system/node/"
#define CPU	"sys/devices/system/cpu/"
#define NO_IOMMU                                                               \
	{                                                                      \
		"sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n" \
	}
#define NIC_ON(node)                                \
	{                                           \
		DEVICES NIC "/numa_node", node "\n" \
	}
#define DRIVER(name)                                                      \
	{                                                                 \
		DEVICES NIC "/driver", "->../../../bus/pci/drivers/" name \
	}
#define CPUINFO(text)                                        \
	{                                                    \
		"proc/cpuinfo", "processor\t: 0\n" text "\n" \
	}

/* ---- rows ---- */

/* Makes the row's machine, looks at it, and expects the row's finding. */
void expect_finding(void (*check)(const struct machine *m, struct finding *f),
		    const struct doctor_row *row);
void expect_rows(void (*check)(const struct machine *m, struct finding *f),
		 const struct doctor_row *row, size_t rows);

#define EXPECT(check, rows) expect_rows(check, rows, ARRAY_SIZE(rows))

#endif
