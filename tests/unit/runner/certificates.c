/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every test program. Criterion uses libgit2 to show how two texts differ, and each test is
 * a process of its own. libgit2 reads all certificates of the system when it is loaded: 5 of the 12 ms
 * that a small test takes. It goes on without them if they cannot be read, so these functions stand
 * before those of libmbedx509. No program that is tested uses that library.
 */

#define SEEN	   __attribute__((visibility("default")))
#define UNREADABLE -0x3e00 /* MBEDTLS_ERR_PK_FILE_IO_ERROR */

struct mbedtls_x509_crt;
int mbedtls_x509_crt_parse_file(struct mbedtls_x509_crt *chain, const char *path);
int mbedtls_x509_crt_parse_path(struct mbedtls_x509_crt *chain, const char *path);

SEEN int mbedtls_x509_crt_parse_file(struct mbedtls_x509_crt *chain, const char *path)
{
	return UNREADABLE;
}

SEEN int mbedtls_x509_crt_parse_path(struct mbedtls_x509_crt *chain, const char *path)
{
	return UNREADABLE;
}
