// SPDX-License-Identifier: Apache-2.0
// Recorded work, which a stream launches as graphs of the driver.
#pragma once

#include <backplane/kit/queue_graph.hpp>

#include "gpu_host/events.hpp"
#include "gpu_host/products.hpp"

namespace backplane::gpu_host {

// The nodes are kernels, copies and products of the library. The products divide the nodes into sections. A launch
// enqueues each section as a graph of the driver, and each product as a call of the library, in the recorded order.
class Graph {
 public:
  using Range = kit::QueueRange<simt::Buffer*>;

  // A launch may replace `ranges`.
  Graph(const Context& context, Events& events, Products& products, std::span<const Range> ranges);
  // Requires that all launches have ended, or that the device is lost.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  // Keeps the first `size` nodes, and removes the others.
  void shrink(uint32_t size);

  // These functions add a node that follows the nodes `after`. `arguments` begin with `addresses` addresses. If a
  // launch replaces addresses, the stack encodes `maps` again.
  void add_kernel(std::span<const uint32_t> after, Handle kernel, const uint32_t (&groups)[3], uint32_t group_size,
                  uint32_t local_bytes, std::span<const std::byte> arguments, std::size_t addresses,
                  std::span<const simt::TensorMap> maps);
  void add_copy(std::span<const uint32_t> after, std::byte* dst, const std::byte* src, uint64_t bytes);
  void add_product(std::span<const uint32_t> after, const RecordedProduct& product);

  // Builds the graphs of the driver. Returns UNSUPPORTED if the driver cannot build them.
  kit::Status build();
  // Enqueues all nodes. `library` is the stream's handle of the library for products.
  kit::Status launch(Handle stream, Handle& library, std::span<const Range> ranges);
  // Returns the number of instances (see Instance).
  std::size_t instances() const { return instances_.size(); }

 private:
  struct Node {
    GraphNode::Kind kind = GraphNode::Kind::kKernel;
    bool is_product = false;
    Handle kernel = nullptr;
    uint32_t groups[3] = {1, 1, 1};
    uint32_t group_size = 1;
    uint32_t local_bytes = 0;
    uint64_t bytes = 0;             // size of a copy
    std::shared_ptr<LtPlan> plan;   // plan of a product
    std::vector<std::byte> values;  // arguments of a kernel, the two addresses of a copy, or LtAddresses
    std::vector<simt::TensorMap> maps;
    std::vector<uint32_t> after;  // nodes that this node follows
  };
  // An address in the values of a node that points into a range.
  struct Patch {
    uint32_t node;
    uint32_t range;
    std::size_t at;  // bytes from the start of the values
    std::ptrdiff_t delta;
  };
  // Nodes that a launch enqueues together: a product, or a graph of the driver.
  struct Section {
    uint32_t begin, end;
    bool is_product;
  };
  // A graph of the driver for a section, and its executable.
  struct Built {
    Handle graph = nullptr, executable = nullptr;
    std::vector<Handle> nodes;
  };
  // Executables for all sections. Each launch uses one instance.
  struct Instance {
    std::vector<Built> sections;
    std::vector<std::byte*> addresses;  // the starts of the ranges in this instance
    Mark last;                          // the end of the latest launch; null if the driver does not need it
  };

  void add(Node node, std::span<const uint32_t> after, std::size_t addresses);
  void divide();
  // Sets the addresses in the nodes for ranges that begin at `addresses`.
  void bind(const std::vector<std::byte*>& addresses);
  GraphNode describe(const Node& node) const;
  // Finds, changes or adds an instance with the current addresses, and makes it the last of instances_.
  kit::Status select_instance();
  // Returns an instance that may be changed, or the end of instances_.
  std::list<Instance>::iterator find_idle();
  kit::Status add_instance();
  bool is_running(const Instance& instance) const;
  kit::Status instantiate(Instance& out) const;
  kit::Status instantiate(const Section& section, Built& out) const;
  // Changes the executables so that they have the current addresses.
  kit::Status update(Instance& instance) const;
  void destroy(Instance& instance) const;
  kit::Status enqueue(const Instance& instance, Handle stream, Handle& library) const;

  const Context& context_;
  Events& events_;
  Products& products_;
  std::vector<Node> nodes_;
  std::vector<Patch> patches_;        // in the order of the nodes
  std::vector<uint64_t> sizes_;       // bytes of each range
  std::vector<std::byte*> recorded_;  // the starts of the recorded ranges
  std::vector<std::byte*> current_;   // the starts of the ranges to which the nodes refer
  std::vector<std::byte*> wanted_;
  std::vector<Section> sections_;
  std::list<Instance> instances_;  // the instance of the latest launch is the last
};

}  // namespace backplane::gpu_host
