/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many seeds a test tries. Each run of a sanitizer takes several times as long, and finds its mistakes
 * on paths, which an eighth of the seeds take, too; what only one seed in hundreds shows is a matter of
 * the build as it is shipped.
 */
#ifndef UROCE_TESTS_SIM_SEEDS_H
#define UROCE_TESTS_SIM_SEEDS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS(n) ((n) / 8)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEEDS(n) ((n) / 8)
#endif
#endif

#ifndef SEEDS
#define SEEDS(n) (n)
#endif

#endif
