/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a small accelerator, as a vendor might ship it: memory that only the card reaches, and in-order queues, each worked
 * by a thread of the card's. This one lives in the process; nothing that it hands out is a host address. */
#ifndef CARD_H
#define CARD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum card_result { CARD_OK, CARD_PENDING, CARD_NO_MEMORY, CARD_BAD_ACCESS, CARD_NO_THREAD } card_result;

typedef uint64_t card_memory; /* names an allocation; 0 is none */
typedef struct card_queue card_queue;
typedef struct card_fence card_fence; /* a point in a queue; counted references */

uint64_t card_memory_size(void);
uint64_t card_memory_free(void);
card_result card_allocate(uint64_t bytes, card_memory* out);
void card_release(card_memory memory);

card_result card_queue_open(card_queue** out);
void card_queue_close(card_queue* queue); /* after its last command */

/* All of these enqueue and return. Host memory is borrowed until the queue has passed the command. */
card_result card_write(card_queue* queue, card_memory to, uint64_t offset, const void* from, uint64_t bytes);
card_result card_read(card_queue* queue, void* to, card_memory from, uint64_t offset, uint64_t bytes);
card_result card_move(card_queue* queue, card_memory to, uint64_t to_offset, card_memory from, uint64_t from_offset,
                      uint64_t bytes);
card_result card_wait_for(card_queue* queue, card_fence* fence);
card_result card_signal(card_queue* queue, card_fence** out);

/* What a kernel is given on the card: its arguments are bytes of card memory, or values. */
typedef struct card_argument {
  card_memory memory; /* 0: the argument is `value` */
  uint64_t offset;
  uint64_t bytes; /* that the kernel touches from there on: more than there is, and the command fails */
  uint64_t value;
} card_argument;
typedef union card_parameter {
  void* address; /* the card's own, of card memory */
  uint64_t value;
} card_parameter;
typedef void (*card_kernel)(const card_parameter* parameters, uint64_t items);
#define CARD_ARGUMENTS 8
card_result card_launch(card_queue* queue, card_kernel kernel, const card_argument* arguments, uint32_t count,
                        uint64_t items);

/* OK, PENDING, or the failure of a command before the fence; every later command of that queue is then dropped. */
card_result card_fence_wait(card_fence* fence, uint64_t timeout_ns); /* 0 polls, UINT64_MAX waits for ever */
uint64_t card_fence_time(card_fence* fence);                         /* ns, of the card's clock */
void card_fence_release(card_fence* fence);

#ifdef __cplusplus
}
#endif
#endif
