/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many seeds a test tries. Under a sanitizer each run takes several times as long. A sanitizer
 * finds mistakes by the paths that a run takes, and an eighth of the seeds takes the same paths.
 * The build as it is shipped tries all seeds, for mistakes that only one seed in hundreds shows.
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
