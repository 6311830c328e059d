/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a peer of `backplane bench ops`. A peer is a shared library that computes the
 * same operators without Backplane. The library has a name of the form libbackplane_peer_*.so and
 * exports one function. It receives operators as descriptors of the plugin ABI. */
#ifndef BACKPLANE_BENCH_PEER_H
#define BACKPLANE_BENCH_PEER_H

#include <backplane/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_peer {
  const char* name;    /* for example "oneDNN"; every string of this struct is static */
  const char* version; /* for example "2.6.3" */
  /* Sets the number of host threads for later calls. */
  void (*set_threads)(int threads);
  /* Prepares `desc` on host operands with the strides of `desc`. The operands outlive the result.
   * If the peer cannot do this, returns null and writes the reason to `why`. Must not throw. */
  void* (*prepare)(const bp_op_desc* desc, void* const* inputs, void* const* outputs, char* why, uint64_t why_bytes);
  /* Runs the work and waits until it is complete. Returns 0, or another value on failure. */
  int (*run)(void* prepared);
  void (*release)(void* prepared);
} bench_peer;

#define BENCH_PEER_SYMBOL "backplane_bench_peer"
BP_EXPORT const bench_peer* backplane_bench_peer(void);

#ifdef __cplusplus
}
#endif

#endif
