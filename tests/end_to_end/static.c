/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that loads no library. */
int main(void)
{
	return 0;
}
