// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/graph.hpp"

#include <algorithm>
#include <thread>

namespace backplane::gpu_host {

namespace {

// The maximum number of instances of a graph. If all of them are running, and none has the addresses of a launch, the
// launch waits for the instance that was launched first.
constexpr std::size_t kMaxInstances = 4;

// The largest access of a kernel or a library, in bytes. The choice of a kernel depends on the addresses of its
// operands modulo this size.
constexpr uintptr_t kAccessBytes = 16;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Graph::Graph(const Context& context, Events& events, Products& products, std::span<const Range> ranges)
    : context_(context), events_(events), products_(products) {
  for (const Range& range : ranges) {
    sizes_.push_back(range.bytes);
    recorded_.push_back(range.memory->address + range.offset);
  }
  current_ = wanted_ = recorded_;
}

Graph::~Graph() {
  const Scope scope(context_);
  if (!scope) return;
  for (Instance& instance : instances_) destroy(instance);
}

void Graph::shrink(uint32_t size) {
  nodes_.resize(size);
  while (!patches_.empty() && patches_.back().node >= size) patches_.pop_back();
}

void Graph::add_kernel(std::span<const uint32_t> after, Handle kernel, const uint32_t (&groups)[3], uint32_t group_size,
                       uint32_t local_bytes, std::span<const std::byte> arguments, std::size_t addresses,
                       std::span<const simt::TensorMap> maps) {
  Node node;
  node.kernel = kernel;
  std::copy_n(groups, 3, node.groups);
  node.group_size = group_size;
  node.local_bytes = local_bytes;
  node.values.assign(arguments.begin(), arguments.end());
  node.maps.assign(maps.begin(), maps.end());
  add(std::move(node), after, addresses);
}

void Graph::add_copy(std::span<const uint32_t> after, std::byte* dst, const std::byte* src, uint64_t bytes) {
  Node node;
  node.kind = GraphNode::Kind::kCopy;
  node.bytes = bytes;
  const std::byte* const addresses[] = {dst, src};
  const auto values = bytes_of(addresses);
  node.values.assign(values.begin(), values.end());
  add(std::move(node), after, 2);
}

void Graph::add_product(std::span<const uint32_t> after, const RecordedProduct& product) {
  Node node;
  node.is_product = true;
  node.plan = product.plan;
  const auto values = bytes_of(product.addresses);
  node.values.assign(values.begin(), values.end());
  add(std::move(node), after, sizeof(product.addresses) / sizeof(std::byte*));
}

void Graph::add(Node node, std::span<const uint32_t> after, std::size_t addresses) {
  node.after.assign(after.begin(), after.end());
  const uint32_t number = size();
  nodes_.push_back(std::move(node));
  for (std::size_t i = 0; i < addresses; ++i) {
    uintptr_t address = 0;
    std::memcpy(&address, nodes_.back().values.data() + i * sizeof(address), sizeof(address));
    for (uint32_t range = 0; range < recorded_.size(); ++range) {
      const auto begin = reinterpret_cast<uintptr_t>(recorded_[range]);
      if (address < begin || address - begin >= sizes_[range]) continue;
      patches_.push_back({number, range, i * sizeof(address), static_cast<std::ptrdiff_t>(address - begin)});
      break;
    }
  }
}

kit::Status Graph::build() {
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    if (reinterpret_cast<uintptr_t>(recorded_[i]) % kAccessBytes == 0) continue;
    // A launch may replace this range with another one of the same alignment, at which the recorded kernels would fail.
    return kit::unsupported("graph_end: binding ", i, " does not begin at a multiple of ", kAccessBytes,
                            " bytes, for which kernels are chosen; align the range");
  }
  divide();
  const Scope scope(context_);
  if (!scope) return context_.check(scope.status());
  kit::Status status = add_instance();
  if (status.ok() || status.code() == BP_OUT_OF_MEMORY || status.code() == BP_DEVICE_LOST) return status;
  return {BP_UNSUPPORTED, kit::text("graph_end: the driver does not build the graph: ", status.message()),
          status.vendor_code()};
}

void Graph::divide() {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const bool is_product = nodes_[i].is_product;
    if (sections_.empty() || is_product || sections_.back().is_product) sections_.push_back({i, i, is_product});
    sections_.back().end = i + 1;
  }
}

void Graph::bind(const std::vector<std::byte*>& addresses) {
  if (addresses == current_) return;
  for (const Patch& patch : patches_) {
    std::byte* const address = addresses[patch.range] + patch.delta;
    std::memcpy(nodes_[patch.node].values.data() + patch.at, &address, sizeof(address));
  }
  current_ = addresses;
}

GraphNode Graph::describe(const Node& node) const {
  GraphNode out;
  out.kind = node.kind;
  if (node.kind == GraphNode::Kind::kKernel) {
    out.kernel = node.kernel;
    std::copy_n(node.groups, 3, out.groups);
    out.group_size = node.group_size;
    out.local_bytes = node.local_bytes;
    out.arguments = node.values;
    out.maps = node.maps;
    return out;
  }
  std::memcpy(&out.dst, node.values.data(), sizeof(out.dst));
  std::memcpy(&out.src, node.values.data() + sizeof(out.dst), sizeof(out.src));
  out.bytes = node.bytes;
  out.context = context_.handle();
  return out;
}

kit::Status Graph::instantiate(Instance& out) const {
  out.addresses = current_;
  out.sections.resize(sections_.size());
  kit::Status status;
  try {
    for (std::size_t i = 0; i < sections_.size() && status.ok(); ++i) {
      if (!sections_[i].is_product) status = instantiate(sections_[i], out.sections[i]);
    }
  } catch (...) {
    destroy(out);
    throw;
  }
  if (!status.ok()) destroy(out);
  return context_.check(std::move(status));
}

kit::Status Graph::instantiate(const Section& section, Built& out) const {
  const Stack& stack = context_.stack();
  auto graph = stack.create_graph();
  if (!graph.ok()) return graph.status();
  out.graph = graph.value();
  std::vector<Handle> after;
  for (uint32_t i = section.begin; i < section.end; ++i) {
    after.clear();
    for (const uint32_t other : nodes_[i].after) {
      if (other >= section.begin) after.push_back(out.nodes[other - section.begin]);
    }
    auto node = stack.add_node(out.graph, after, describe(nodes_[i]));
    if (!node.ok()) return node.status();
    out.nodes.push_back(node.value());
  }
  auto executable = context_.with_room([&] { return stack.instantiate(out.graph); });
  out.executable = executable.value();
  return executable.status();
}

void Graph::destroy(Instance& instance) const {
  for (Built& built : instance.sections) {
    if (built.executable != nullptr) context_.stack().destroy_executable(built.executable);
    if (built.graph != nullptr) context_.stack().destroy_graph(built.graph);
  }
  instance.sections.clear();
}

bool Graph::is_running(const Instance& instance) const {
  return instance.last != nullptr && context_.stack().query(instance.last->event).code() == BP_TIMEOUT;
}

std::list<Graph::Instance>::iterator Graph::find_idle() {
  if (context_.stack().updates_running_graphs()) return instances_.begin();
  const auto idle = std::ranges::find_if(instances_, [&](const Instance& each) { return !is_running(each); });
  if (idle != instances_.end() || instances_.size() < kMaxInstances) return idle;
  while (is_running(instances_.front())) std::this_thread::yield();
  return instances_.begin();
}

kit::Status Graph::select_instance() {
  auto found = std::ranges::find(instances_, current_, &Instance::addresses);
  if (found == instances_.end()) {
    found = find_idle();
    if (found == instances_.end()) return add_instance();
    kit::Status status = context_.check(update(*found));
    if (!status.ok()) {
      destroy(*found);
      instances_.erase(found);
      if (status.code() == BP_OUT_OF_MEMORY || status.code() == BP_DEVICE_LOST) return status;
      // A driver refuses to change a copy if the new memory has another origin, for example managed instead of
      // registered.
      return add_instance();
    }
  }
  instances_.splice(instances_.end(), instances_, found);
  return {};
}

kit::Status Graph::add_instance() {
  Instance made;
  kit::Status status = instantiate(made);
  if (status.ok()) instances_.push_back(std::move(made));
  return status;
}

kit::Status Graph::update(Instance& instance) const {
  uint32_t done = UINT32_MAX;
  std::size_t section = 0;
  for (const Patch& patch : patches_) {
    if (patch.node == done || instance.addresses[patch.range] == current_[patch.range]) continue;
    done = patch.node;
    while (sections_[section].end <= patch.node) ++section;
    if (sections_[section].is_product) continue;
    const Built& built = instance.sections[section];
    const Handle node = built.nodes[patch.node - sections_[section].begin];
    kit::Status status = context_.stack().set_node(built.executable, node, describe(nodes_[patch.node]));
    if (!status.ok()) return status;
  }
  instance.addresses = current_;
  return {};
}

kit::Status Graph::launch(Handle stream, Handle& library, std::span<const Range> ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) wanted_[i] = ranges[i].memory->address + ranges[i].offset;
  bind(wanted_);
  const Scope scope(context_);
  if (scope.exiting()) return {};
  if (!scope) return context_.check(scope.status());
  if (kit::Status status = select_instance(); !status.ok()) return status;
  Instance& instance = instances_.back();
  if (context_.stack().updates_running_graphs()) return context_.check(enqueue(instance, stream, library));
  auto mark = events_.take(false);
  if (!mark.ok()) return context_.check(mark.status());
  kit::Status status = context_.check(enqueue(instance, stream, library));
  if (!status.ok()) return status;
  status = context_.check(context_.stack().record(mark.value()->event, stream));
  instance.last = std::move(mark.value());
  if (status.ok() || status.code() == BP_DEVICE_LOST) return status;
  return {BP_EXECUTION_FAILED, kit::text("a graph was enqueued without an event at its end: ", status.message()),
          status.vendor_code()};
}

kit::Status Graph::enqueue(const Instance& instance, Handle stream, Handle& library) const {
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    const Node& node = nodes_[sections_[i].begin];
    kit::Status status;
    if (sections_[i].is_product) {
      RecordedProduct product{node.plan, {}};
      std::memcpy(&product.addresses, node.values.data(), sizeof(product.addresses));
      status = products_.enqueue(library, stream, product);
    } else {
      status = context_.stack().launch_graph(instance.sections[i].executable, stream);
    }
    if (status.ok()) continue;
    if (i == 0 || status.code() == BP_DEVICE_LOST) return status;
    return {BP_EXECUTION_FAILED, kit::text("a part of the graph was enqueued: ", status.message()),
            status.vendor_code()};
  }
  return {};
}

}  // namespace backplane::gpu_host
