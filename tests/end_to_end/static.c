/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that no library can be put under. */
int main(void)
{
	return 0;
}
