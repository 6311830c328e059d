// SPDX-License-Identifier: Apache-2.0
// Computes a device's matrix products with the vendor's library where possible. The plugin's kernels compute the
// other products.
#pragma once

#include <backplane/kit/plugin.hpp>
#include <list>
#include <optional>
#include <unordered_map>

#include "gpu_host/blas_lt.hpp"
#include "gpu_host/units.hpp"

namespace backplane::gpu_host {

// A product in the library's terms, with the addresses of its operands.
struct LtCall {
  LtProduct product;
  LtAddresses addresses;
};
// Returns nothing if the library's layouts cannot describe the operands.
std::optional<LtCall> lt_call(const simt::MatrixProduct& product);

// A product that a graph enqueues again, with other addresses of at least the same alignment.
struct RecordedProduct {
  std::shared_ptr<LtPlan> plan;  // null if the kernels compute the product
  LtAddresses addresses;
};

class Products {
 public:
  Products(const Context& context, Kernels& kernels) : context_(context), units_(context, kernels) {}
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // Opens the library if the user's setting requires a library. Otherwise is_available() opens it.
  kit::Status open_required();
  // Returns whether a library computes products. The first call opens the library, which can take a second, and logs
  // which code computes products and why.
  bool is_available(const kit::Host& host);
  // Opens the library or, if there is none, loads the stack's own kernels for products of `dtype`. Returns false if
  // there are no such kernels either.
  bool is_available(const kit::Host& host, uint32_t dtype);
  // Returns the launches of the stack's own kernels, or nothing if the library or the kernels of simt compute the
  // product.
  std::optional<UnitCall> unit_call(const simt::MatrixProduct& product);

  // Returns a handle of the library for a new stream, or null. If it is null, the stream's first product sets the
  // handle.
  Handle take_handle();
  void give_back(Handle handle);
  // Enqueues the product, or returns false if kernels must compute it. Sets `handle` if it is null.
  kit::Result<bool> multiply(Handle& handle, Handle stream, const simt::MatrixProduct& product);
  // Returns the product that multiply() would enqueue. Sets `handle` if it is null.
  kit::Result<RecordedProduct> record(Handle& handle, const simt::MatrixProduct& product);
  // Enqueues a recorded product. The caller has entered the context.
  kit::Status enqueue(Handle& handle, Handle stream, const RecordedProduct& product);
  // Returns the number of products whose plans are stored.
  std::size_t stored_plans();

 private:
  // A null plan means that the library has no algorithm.
  using Entry = std::pair<LtProduct, std::shared_ptr<LtPlan>>;
  struct Hash {
    std::size_t operator()(const LtProduct& product) const;
  };

  kit::Status open();
  // Returns nothing if kernels must compute the product.
  std::optional<LtCall> call_of(const simt::MatrixProduct& product) const;
  // These functions set `handle` if it is null. The caller has entered the context.
  kit::Status need_handle(Handle& handle);
  kit::Result<RecordedProduct> plan_of(Handle& handle, const LtCall& call);
  kit::Result<std::shared_ptr<LtPlan>> find_plan(Handle handle, const LtCall& call);
  // Returns the failure of a product. If earlier work has lost the device, returns the failure of the device instead.
  kit::Status failure(kit::Status status) const;

  const Context& context_;
  Units units_;
  std::mutex opening_;  // locked while the library is opened
  std::atomic<bool> is_open_{false};
  std::atomic<bool> is_logged_{false};  // set after the first call of is_available()
  std::unique_ptr<LtLibrary> library_;  // constant after is_open_ is set
  std::mutex mutex_;                    // guards plans_ and index_
  std::list<Entry> plans_;              // the most recently used plan is the first
  std::unordered_map<LtProduct, std::list<Entry>::iterator, Hash> index_;
};

}  // namespace backplane::gpu_host
