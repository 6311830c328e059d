// SPDX-License-Identifier: Apache-2.0
// A stream of the driver.
#pragma once

#include "gpu_host/graph.hpp"
#include "gpu_host/kernels.hpp"
#include "gpu_host/semaphore.hpp"

namespace backplane::gpu_host {

class Queue : public simt::Launcher {
 public:
  static kit::Result<std::unique_ptr<Queue>> create(const Context& context, Kernels& kernels, Events& events,
                                                    Products& products, int priority);
  // Wraps a stream of the caller. The queue does not destroy this stream.
  static std::unique_ptr<Queue> wrap(const Context& context, Kernels& kernels, Events& events, Products& products,
                                     Handle stream);
  ~Queue() override;

  Handle stream() const { return stream_; }
  // Returns a mark, which completes after all earlier commands of this queue. While the process
  // exits, the mark is null.
  kit::Result<Mark> mark(bool timed);
  kit::Status wait_for(const Mark& mark);
  kit::Status copy(std::byte* dst, const std::byte* src, uint64_t bytes);
  kit::Status signal(Semaphore& semaphore, uint64_t value);
  kit::Status wait(const Semaphore& semaphore, uint64_t value);
  // Until record(nullptr, {}), commands add nodes to the graph, and execute nothing. The first node follows the nodes
  // `after`, and each other node follows the node before it.
  void record(Graph* graph, std::span<const uint32_t> after);
  kit::Status launch_graph(Graph& graph, std::span<const Graph::Range> ranges);

 private:
  Queue(const Context& context, Kernels& kernels, Events& events, Products& products)
      : Launcher(context.device().limits), context_(context), kernels_(kernels), events_(events), products_(products) {}
  kit::Status enqueue(const simt::Launch& launch) override;
  kit::Result<bool> enqueue_product(const simt::MatrixProduct& product) override;
  // Calls `body(stack)` in the context. While the process exits, commands have no effect.
  template <class Body>
  kit::Status in_context(const Body& body, Calls calls = Calls::kEnqueue) const;
  // Returns whether this queue has launched or recorded the kernel.
  bool is_known(uint32_t number) const;
  Handle kernel(uint32_t number);
  // The next node that is recorded follows the latest node.
  void recorded() { after_.assign(1, graph_->size() - 1); }

  const Context& context_;
  Kernels& kernels_;
  Events& events_;
  Products& products_;
  Handle library_ = nullptr;  // the queue's handle of the library for products, or null before the first product
  Handle stream_ = nullptr;   // null is the default stream, which a caller may wrap
  bool owns_stream_ = false;
  std::vector<Handle> known_;         // the kernels that this queue has launched; the index is the kernel's number
  std::vector<std::byte> arguments_;  // the block of arguments of the last launch
  Graph* graph_ = nullptr;            // receives the commands, or null
  std::vector<uint32_t> after_;       // the nodes that the next recorded node follows
};

}  // namespace backplane::gpu_host
