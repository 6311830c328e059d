/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a peer of `backplane bench ops`: a shared library that does the same work
 * without Backplane. Its name is libbackplane_peer_*.so, and it exports one function. It receives
 * operators as descriptors of the plugin ABI. */
#ifndef BACKPLANE_BENCH_PEER_H
#define BACKPLANE_BENCH_PEER_H

#include <backplane/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_peer {
  const char* name;    /* "oneDNN"; static, like all strings here */
  const char* version; /* "2.6.3" */
  /* Sets the number of host threads for later calls. */
  void (*set_threads)(int threads);
  /* Prepares `desc` on host operands with its strides; they outlive the result. Returns null if it
   * cannot, with the reason in `why`. Must not throw. */
  void* (*prepare)(const bp_op_desc* desc, void* const* inputs, void* const* outputs, char* why, uint64_t why_bytes);
  /* Runs the work and waits for it. Returns 0, or another value on failure. */
  int (*run)(void* prepared);
  void (*release)(void* prepared);
} bench_peer;

#define BENCH_PEER_SYMBOL "backplane_bench_peer"
BP_EXPORT const bench_peer* backplane_bench_peer(void);

#ifdef __cplusplus
}
#endif

#endif
