// SPDX-License-Identifier: Apache-2.0
// The plugin skeleton for a device with its own command queues. It contains a class Native, which adapts the
// card's driver to the kit, the operators, and the symbol that a host loads.
#include <backplane/kit/queue_device.hpp>
#include <cmath>

#include "card.h"

namespace {

using namespace backplane::kit;

// [native]
// Adapts the card's driver to the kit (queue_device.hpp), and uses the driver's own handles.
class Native {
 public:
  using Memory = card_memory;
  struct Queue {
    card_queue* handle = nullptr;
    ~Queue() { card_queue_close(handle); }
  };
  using Mark = std::shared_ptr<card_fence>;
  using Kernel = card_kernel;
  using Program = card_kernel;  // the card needs no compilation

  static Result<uint32_t> count() { return 1u; }
  static Status info(uint32_t, bp_device_info& info) {
    std::strncpy(info.name, "card", sizeof(info.name) - 1);
    info.max_buffer_bytes = card_memory_size();
    info.capabilities = BP_CAP_DETERMINISTIC;
    return {};
  }
  static Result<std::unique_ptr<Native>> open(uint32_t, const Host&) { return std::make_unique<Native>(); }

  Status memory_info(uint32_t, bp_memory_info& out) {
    out.total_bytes = card_memory_size();
    out.free_bytes = card_memory_free();
    return {};
  }
  Result<Memory> allocate(const bp_buffer_desc& desc) {
    Memory memory = 0;
    if (card_allocate(desc.bytes, &memory) == CARD_OK) return memory;
    return out_of_memory("the card has no ", desc.bytes, " bytes left, ", card_memory_free(), " are free");
  }
  void free(Memory memory) { card_release(memory); }

  Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&) {
    auto queue = std::make_unique<Queue>();
    if (card_queue_open(&queue->handle) == CARD_OK) return queue;
    return out_of_memory("the card has no thread for another queue");
  }
  Result<Mark> mark(Queue& queue, bool) {
    card_fence* fence = nullptr;
    if (Status status = check(card_signal(queue.handle, &fence), "card_signal"); !status.ok()) return status;
    return Mark(fence, card_fence_release);
  }
  Status poll(const Mark& mark) { return wait(mark, 0); }
  Status wait(const Mark& mark, uint64_t timeout_ns) {
    return check(card_fence_wait(mark.get(), timeout_ns), "card_fence_wait");
  }
  Status wait_for(Queue& queue, const Mark& mark) {
    return check(card_wait_for(queue.handle, mark.get()), "card_wait_for");
  }
  Result<int64_t> elapsed(const Mark& begin, const Mark& end) {
    return static_cast<int64_t>(card_fence_time(end.get()) - card_fence_time(begin.get()));
  }

  Status copy(Queue& queue, Memory dst, uint64_t dst_offset, Memory src, uint64_t src_offset, uint64_t bytes) {
    return check(card_move(queue.handle, dst, dst_offset, src, src_offset, bytes), "card_move");
  }
  Status copy_in(Queue& queue, Memory dst, uint64_t offset, const void* src, uint64_t bytes) {
    return check(card_write(queue.handle, dst, offset, src, bytes), "card_write");
  }
  Status copy_out(Queue& queue, void* dst, Memory src, uint64_t offset, uint64_t bytes) {
    return check(card_read(queue.handle, dst, src, offset, bytes), "card_read");
  }

  Result<Program> compile(const Kernel& kernel, const CheckedDesc&, const PlanForm&) { return kernel; }
  // Passes the inputs to the kernel, followed by the outputs. All operands are dense, because core makes
  // strided operands dense. The kernel has one item per output element.
  Status launch(Queue& queue, const Program& program, const QueueCall<Memory>& call) {
    card_argument arguments[CARD_ARGUMENTS] = {};
    uint32_t count = 0;
    for (const auto views : {call.inputs, call.outputs}) {
      for (const QueueView<Memory>& view : views) {
        const auto bytes = static_cast<uint64_t>(view.elements()) * dtype_bytes(view.dtype);
        arguments[count++] = {view.place.memory, view.place.offset, bytes, 0};
      }
    }
    const auto items = static_cast<uint64_t>(call.out().elements());
    return items == 0 ? Status{} : check(card_launch(queue.handle, program, arguments, count, items), "card_launch");
  }

 private:
  static Status check(card_result result, const char* call) {
    switch (result) {
      case CARD_OK:
        return {};
      case CARD_PENDING:
        return timed_out();
      case CARD_NO_MEMORY:
        return out_of_memory(call, ": the card is out of memory");
      default:
        return {BP_EXECUTION_FAILED, text(call, ": the card says ", static_cast<int>(result)), result};
    }
  }
};
// [/native]

// [kernel]
// A kernel in the card's language, which applies f to the elements of dense f32 inputs.
template <auto f>
void map(const card_parameter* parameters, uint64_t items) {
  const auto at = [&](int i) { return static_cast<float*>(parameters[i].address); };
  for (uint64_t i = 0; i < items; ++i) {
    if constexpr (requires { f(1.0f, 1.0f); }) {
      at(2)[i] = f(at(0)[i], at(1)[i]);
    } else {
      at(1)[i] = f(at(0)[i]);
    }
  }
}
// [/kernel]

// [driver]
class Driver : public QueueDriver<Native> {
 public:
  explicit Driver(Host host) : QueueDriver(host, {.name = "skeleton", .version = PLUGIN_VERSION}) {
    operators().add(BP_OP_ADD, BP_F32, {.kernel = map<[](float a, float b) { return a + b; }>});
    operators().add(BP_OP_MUL, BP_F32, {.kernel = map<[](float a, float b) { return a * b; }>});
    operators().add(BP_OP_NEG, BP_F32, {.kernel = map<[](float x) { return -x; }>});
    operators().add(BP_OP_SQRT, BP_F32, {.kernel = map<[](float x) { return std::sqrt(x); }>});
  }
};
// [/driver]

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return query<Driver>(host, out, error);
}
