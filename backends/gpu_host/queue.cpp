// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/queue.hpp"

#include <backplane/kit/driver_guard.hpp>
#include <optional>

namespace backplane::gpu_host {

kit::Result<std::unique_ptr<Queue>> Queue::create(const Context& context, Kernels& kernels, Events& events,
                                                  Products& products, int priority) {
  std::unique_ptr<Queue> out(new Queue(context, kernels, events, products));
  const Scope scope(context);
  if (!scope) return context.check(scope.status());
  auto stream = context.with_room([&] { return context.stack().create_stream(priority); });
  if (!stream.ok()) return context.check(stream.status());
  out->stream_ = stream.value();
  out->owns_stream_ = true;
  out->library_ = products.take_handle();
  return out;
}

std::unique_ptr<Queue> Queue::wrap(const Context& context, Kernels& kernels, Events& events, Products& products,
                                   Handle stream) {
  std::unique_ptr<Queue> out(new Queue(context, kernels, events, products));
  out->stream_ = stream;
  return out;
}

Queue::~Queue() {
  products_.give_back(library_);
  if (!owns_stream_) return;
  const Scope scope(context_);
  if (scope) context_.stack().destroy_stream(stream_);
}

template <class Body>
kit::Status Queue::in_context(const Body& body, Calls calls) const {
  const Scope scope(context_, calls);
  if (scope.exiting()) return {};
  return context_.check(scope ? context_.with_room([&] { return body(context_.stack()); }) : scope.status());
}

kit::Result<Mark> Queue::mark(bool timed) {
  Mark out;
  kit::Status status = in_context([&](const Stack& stack) {
    auto point = events_.take(timed);
    if (!point.ok()) return point.status();
    out = std::move(point.value());
    return stack.record(out->event, stream_);
  });
  if (!status.ok()) return status;
  return out;
}

kit::Status Queue::wait_for(const Mark& mark) {
  if (mark == nullptr) return {};
  return in_context([&](const Stack& stack) { return stack.wait_event(stream_, mark->event); });
}

kit::Status Queue::signal(Semaphore& semaphore, uint64_t value) {
  return in_context([&](const Stack& stack) { return semaphore.signal(stack, value, stream_); });
}

kit::Status Queue::wait(const Semaphore& semaphore, uint64_t value) {
  return in_context([&](const Stack& stack) { return stack.external()->wait(semaphore.handle(), value, stream_); });
}

kit::Status Queue::copy(std::byte* dst, const std::byte* src, uint64_t bytes) {
  if (graph_ != nullptr) {
    graph_->add_copy(after_, dst, src, bytes);
    recorded();
    return {};
  }
  return in_context([&](const Stack& stack) { return stack.copy(dst, src, bytes, stream_); });
}

void Queue::record(Graph* graph, std::span<const uint32_t> after) {
  graph_ = graph;
  after_.assign(after.begin(), after.end());
}

kit::Status Queue::launch_graph(Graph& graph, std::span<const Graph::Range> ranges) {
  return graph.launch(stream_, library_, ranges);
}

kit::Result<bool> Queue::enqueue_product(const simt::MatrixProduct& product) {
  if (auto call = products_.unit_call(product)) {
    if (call->params.splits == 1) {
      kit::Status status = enqueue(call->launch());
      if (!status.ok()) return status;
      return true;
    }
    kit::Status status = launch(call->launch());
    if (status.ok()) status = enqueue(call->combination());
    if (!status.ok()) return status;
    return true;
  }
  if (graph_ == nullptr) return products_.multiply(library_, stream_, product);
  auto planned = products_.record(library_, product);
  if (!planned.ok()) return planned.status();
  if (planned.value().plan == nullptr) return false;
  graph_->add_product(after_, planned.value());
  recorded();
  return true;
}

bool Queue::is_known(uint32_t number) const { return number < known_.size() && known_[number] != nullptr; }

Handle Queue::kernel(uint32_t number) {
  if (number >= known_.size()) known_.resize(number + 1);
  if (known_[number] == nullptr) known_[number] = kernels_.kernel(number);
  return known_[number];
}

kit::Status Queue::enqueue(const simt::Launch& launch) {
  const std::size_t count = launch.places.size();
  auto* const offsets = static_cast<uint64_t*>(launch.params);
  arguments_.resize(count * sizeof(std::byte*) + launch.params_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const simt::Place& place = launch.places[i];
    const std::byte* const address = place.memory == nullptr ? nullptr : place.memory->address + place.offset;
    offsets[i] = address == nullptr ? place.offset : 0;
    std::memcpy(arguments_.data() + i * sizeof(address), &address, sizeof(address));
  }
  std::memcpy(arguments_.data() + count * sizeof(std::byte*), launch.params, launch.params_bytes);
  if (graph_ != nullptr) {
    graph_->add_kernel(after_, kernel(launch.kernel), launch.groups, launch.group_size, launch.local_bytes, arguments_,
                       count, launch.maps);
    recorded();
    return {};
  }
  // The first launch of a kernel may load the kernel.
  const bool is_first = !is_known(launch.kernel);
  std::optional<kit::DriverGuard> guard;
  if (is_first) guard.emplace();
  return in_context(
      [&](const Stack& stack) {
        return stack.launch(kernel(launch.kernel), launch.groups, launch.group_size, launch.local_bytes, arguments_,
                            launch.maps, stream_);
      },
      is_first ? Calls::kAny : Calls::kEnqueue);
}

}  // namespace backplane::gpu_host
