/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a peer of `backplane bench ops`. A peer is a shared library that computes the
 * same operators without Backplane. The library has a name of the form libbackplane_peer_*.so and
 * exports one function. The peer receives operators as descriptors of the plugin ABI. */
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
  /* Prepares the operator `desc` on operands in host memory, which have the strides of `desc`. The
   * operands stay valid until `release`. If the peer does not support the operator, returns null
   * and writes the reason to `why`, which has room for `why_bytes` bytes. Must not throw. */
  void* (*prepare)(const bp_op_desc* desc, void* const* inputs, void* const* outputs, char* why, uint64_t why_bytes);
  /* Executes the prepared operator and returns after its work has completed. Returns 0 on success,
   * and another value on failure. */
  int (*run)(void* prepared);
  void (*release)(void* prepared);
} bench_peer;

#define BENCH_PEER_SYMBOL "backplane_bench_peer"
BP_EXPORT const bench_peer* backplane_bench_peer(void);

#ifdef __cplusplus
}
#endif

#endif
