/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to tests of rsockets with an engine: a stream and a datagram socket, and a listener. */
#ifndef TESTS_RDMACM_RS_RIG_H
#define TESTS_RDMACM_RS_RIG_H

#include "rig.h"

extern int s, d; /* of AF_INET, neither bound nor connected: a stream, and datagrams */

void rs_pair_open(void);
void rs_pair_close(void);

/* A listener at OWN_ADDRESS, and its address. */
int rs_listening(struct sockaddr_in *a);
/* Connects `s` to it. The other end. */
int rs_connect_stream(int listener, const struct sockaddr_in *a);

/* Sets an option that is a number. 0 or an errno. */
int rs_set(int socket, int level, int name, int value);
/* Asks for one. Fails if there is none. */
int rs_ask(int socket, int level, int name);

#endif
