/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a small accelerator, as a vendor might ship it. The host cannot address the card's memory.
 * Each in-order queue has its own thread, which executes the queue's commands. The card is simulated in the
 * process, and its handles are not host addresses. */
#ifndef CARD_H
#define CARD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum card_result { CARD_OK, CARD_PENDING, CARD_NO_MEMORY, CARD_BAD_ACCESS, CARD_NO_THREAD } card_result;

typedef uint64_t card_memory; /* identifies an allocation; 0 means no allocation */
typedef struct card_queue card_queue;
typedef struct card_fence card_fence; /* a point in a queue, with a reference count */

uint64_t card_memory_size(void);
uint64_t card_memory_free(void);
card_result card_allocate(uint64_t bytes, card_memory* out);
void card_release(card_memory memory);

card_result card_queue_open(card_queue** out);
void card_queue_close(card_queue* queue); /* first waits until all commands have run */

/* These functions enqueue a command and return. They borrow host memory until the queue has
 * executed the command. */
card_result card_write(card_queue* queue, card_memory to, uint64_t offset, const void* from, uint64_t bytes);
card_result card_read(card_queue* queue, void* to, card_memory from, uint64_t offset, uint64_t bytes);
card_result card_move(card_queue* queue, card_memory to, uint64_t to_offset, card_memory from, uint64_t from_offset,
                      uint64_t bytes);
card_result card_wait_for(card_queue* queue, card_fence* fence);
card_result card_signal(card_queue* queue, card_fence** out);

/* An argument of a kernel, either bytes of card memory or a value. */
typedef struct card_argument {
  card_memory memory; /* 0 means that the argument is `value` */
  uint64_t offset;
  /* Number of bytes, beginning at `offset`, that the kernel accesses. The command fails if the allocation
   * ends earlier. */
  uint64_t bytes;
  uint64_t value;
} card_argument;
typedef union card_parameter {
  void* address; /* an address on the card */
  uint64_t value;
} card_parameter;
typedef void (*card_kernel)(const card_parameter* parameters, uint64_t items);
#define CARD_ARGUMENTS 8
card_result card_launch(card_queue* queue, card_kernel kernel, const card_argument* arguments, uint32_t count,
                        uint64_t items);

/* Returns OK, PENDING, or the failure of the first command that failed. After a failure, the queue skips
 * copies and kernels. A timeout of 0 polls, and UINT64_MAX waits forever. */
card_result card_fence_wait(card_fence* fence, uint64_t timeout_ns);
/* Returns the time at which the queue reached the fence, in nanoseconds of the card's clock. */
uint64_t card_fence_time(card_fence* fence);
void card_fence_release(card_fence* fence);

#ifdef __cplusplus
}
#endif
#endif
