/* SPDX-License-Identifier: BSD-3-Clause */
/* The device in the file system, as programs look for it there. */
#ifndef CONTROL_DEVICE_FILES_H
#define CONTROL_DEVICE_FILES_H

struct engine;

void device_files_open(struct engine *e);
/* The device or its port has changed. */
void device_files_update(struct engine *e);
void device_files_close(struct engine *e);

#endif
