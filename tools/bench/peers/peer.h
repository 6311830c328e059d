/* SPDX-License-Identifier: Apache-2.0 */
/* What `backplane bench ops` asks of a peer in its own process: a library that does the same work without Backplane. A peer is a
 * shared library named libbackplane_peer_*.so with one exported function. It gets the operator in the words of the plugin ABI. */
#ifndef BACKPLANE_BENCH_PEER_H
#define BACKPLANE_BENCH_PEER_H

#include <backplane/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_peer {
  const char* name;    /* "oneDNN"; static, as all strings here */
  const char* version; /* "2.6.3" */
  /* Host threads that it may use from now on. */
  void (*set_threads)(int threads);
  /* Makes `desc` ready on host operands, which lie as their strides say and outlive it. Null if it cannot, with why in `why`. Nothing is thrown. */
  void* (*prepare)(const bp_op_desc* desc, void* const* inputs, void* const* outputs, char* why, uint64_t why_bytes);
  /* Does the work, to its end. 0, or not 0 if it failed. */
  int (*run)(void* prepared);
  void (*release)(void* prepared);
} bench_peer;

#define BENCH_PEER_SYMBOL "backplane_bench_peer"
BP_EXPORT const bench_peer* backplane_bench_peer(void);

#ifdef __cplusplus
}
#endif

#endif
