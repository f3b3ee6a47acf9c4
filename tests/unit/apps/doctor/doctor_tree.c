/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor_tree.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void make_parents(char *path)
{
	for (char *c = path + strlen(root) + 1; (c = strchr(c, '/')) != NULL; c++) {
		*c = '\0';
		mkdir(path, 0755);
		*c = '/';
	}
}

static void make_one(const struct tree_file *file)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, file->path);
	make_parents(path);
	if (file->text == NULL) {
		cr_assert(mkdir(path, 0755) == 0, "%s", path);
	} else if (strncmp(file->text, "->", 2) == 0) {
		cr_assert(symlink(file->text + 2, path) == 0, "%s", path);
	} else {
		f = fopen(path, "we");
		cr_assert_not_null(f, "%s", path);
		fputs(file->text, f);
		cr_assert_eq(fclose(f), 0);
	}
}

const char *tree_make(const struct tree_file *file)
{
	snprintf(root, sizeof(root), "/tmp/uroce-doctor-XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	cr_assert_eq(chmod(root, 0755), 0);
	for (size_t i = 0; i < TREE_FILES && file[i].path != NULL; i++)
		make_one(&file[i]);
	return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

void tree_remove(void)
{
	cr_assert_eq(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0, "%s", root);
}

void expect_finding(void (*check)(const struct machine *m, struct finding *f),
		    const struct doctor_row *row)
{
	struct finding f = { .verdict = CHECK_NONE };
	struct machine m = row->m;

	m.root = tree_make(row->file);
	if (row->port == NULL)
		m.node = -1;
	else
		cr_assert(machine_choose_port(&m, row->port), "%s: %s", row->what, row->port);
	check(&m, &f);
	tree_remove();
	cr_expect_eq(f.verdict, row->verdict, "%s: %d, %s", row->what, f.verdict, f.text);
	if (row->text != NULL)
		cr_expect_not_null(strstr(f.text, row->text), "%s: %s", row->what, f.text);
	if (row->mend != NULL)
		cr_expect_not_null(strstr(f.mend, row->mend), "%s: %s", row->what, f.mend);
	cr_expect_eq(f.mend[0] != '\0', row->verdict > CHECK_OK, "%s: '%s'", row->what, f.mend);
	cr_expect_eq(f.text[0] != '\0', row->verdict > CHECK_NONE, "%s: '%s'", row->what, f.text);
}

void expect_rows(void (*check)(const struct machine *m, struct finding *f),
		 const struct doctor_row *row, size_t rows)
{
	for (size_t i = 0; i < rows; i++)
		expect_finding(check, &row[i]);
}
