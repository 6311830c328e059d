// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/products.hpp"

#include <backplane/kit/driver_guard.hpp>

#include "gpu_host/storage.hpp"

namespace backplane::gpu_host {

namespace {

// Maximum number of plans per device. The library stores several hundred bytes per plan.
constexpr std::size_t kMaxPlans = 512;

std::string_view setting_of(const LtKind& kind) {
  const char* const value = std::getenv(kind.setting);
  return value == nullptr ? std::string_view() : value;
}

uint64_t alignment_of(const std::byte* address) {
  const auto value = reinterpret_cast<uintptr_t>(address) | kLtMaxAlignment;
  return value & (~value + 1);
}

std::optional<uint64_t> type_of_dtype(uint32_t dtype) {
  switch (dtype) {
    case BP_F32:
      return kLtF32;
    case BP_F16:
      return kLtF16;
    case BP_BF16:
      return kLtBf16;
    default:
      return std::nullopt;
  }
}

}  // namespace

// Describes the product c = a b to the library, whose matrices are column-major. The library computes d = op(b)
// op(a), the transpose of c.
std::optional<LtCall> lt_call(const simt::MatrixProduct& given) {
  auto c = storage_of(given.c, given.rows, given.columns);
  if (!c) return std::nullopt;
  if (!c->by_rows) {
    if (given.bias_dtype != 0) return std::nullopt;  // the library adds a bias only along contiguous elements
    simt::MatrixProduct other = given;
    std::swap(other.rows, other.columns);
    other.a = transposed(given.b);
    other.b = transposed(given.a);
    other.c = transposed(given.c);
    return lt_call(other);
  }
  const auto a = storage_of(given.a, given.rows, given.depth), b = storage_of(given.b, given.depth, given.columns);
  const auto type = type_of_dtype(given.a.dtype), d_type = type_of_dtype(given.c.dtype);
  if (!a || !b || !type || !d_type || given.a.dtype != given.b.dtype) return std::nullopt;
  if (*d_type != *type && *d_type != kLtF32) return std::nullopt;
  // The library's activations differ from those of the specification, and the library adds only a bias of the dtype
  // of c.
  if (given.activation != BP_ACTIVATION_NONE) return std::nullopt;
  if (given.bias_dtype != 0 && given.bias_dtype != given.c.dtype) return std::nullopt;
  if (std::max({given.rows, given.columns, given.depth, given.batches}) > INT_MAX) return std::nullopt;

  LtCall out;
  LtProduct& p = out.product;
  out.addresses = {address_of(given.b.place), address_of(given.a.place), nullptr, address_of(given.c.place),
                   address_of(given.scratch)};
  p.rows = given.columns;
  p.columns = given.rows;
  p.depth = given.depth;
  p.batches = given.batches;
  p.type = *type;
  p.d_type = *d_type;
  p.transposes_a = b->by_rows ? 0 : 1;
  p.transposes_b = a->by_rows ? 0 : 1;
  p.allows_tf32 = given.a.dtype == BP_F32 && (given.precision & BP_PRECISION_ALLOW_TF32) != 0 ? 1 : 0;
  p.ld_a = b->pitch;
  p.ld_b = a->pitch;
  p.ld_d = c->pitch;
  if (p.batches != 1) {
    p.stride_a = given.b.batch_stride;
    p.stride_b = given.a.batch_stride;
    p.stride_d = given.c.batch_stride;
  }
  p.alignment_a = alignment_of(out.addresses.a);
  p.alignment_b = alignment_of(out.addresses.b);
  p.alignment_d = alignment_of(out.addresses.d);
  p.scratch_bytes = given.scratch_bytes;
  if (given.bias_dtype != 0) {
    p.has_bias = 1;
    out.addresses.bias = address_of(given.bias);
    p.alignment_bias = alignment_of(out.addresses.bias);
  }
  return out;
}

std::size_t Products::Hash::operator()(const LtProduct& product) const {
  static_assert(std::has_unique_object_representations_v<LtProduct>);
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&product), sizeof(product)});
}

kit::Status Products::open() {
  const Stack& stack = context_.stack();
  const LtKind& kind = stack.product_library();
  const std::string& architecture = context_.device().architecture;
  const bool is_named = !setting_of(kind).empty() && setting_of(kind) != "on";
  if (!is_named && !kind.has_kernels(architecture)) {
    return {BP_UNAVAILABLE, kit::text(stack.plugin(), ": ", kind.name, " has no kernels for ", architecture)};
  }
  const kit::DriverGuard guard;
  const Scope scope(context_);
  if (!scope) return context_.check(scope.status());
  auto opened = LtLibrary::open(kind, stack.plugin());
  if (!opened.ok()) {
    stack.forget_failure();
    return opened.status();
  }
  library_ = std::move(opened.value());
  simt::DriverCall::stop_at_exit();  // runs before the exit handlers of the library
  is_open_.store(true, std::memory_order_release);
  return {};
}

kit::Status Products::open_required() {
  const std::string_view setting = setting_of(context_.stack().product_library());
  if (setting.empty() || setting == "off") return {};
  std::lock_guard lock(opening_);
  return is_open_ ? kit::Status() : open();
}

bool Products::is_available(const kit::Host& host) {
  const auto is_open = [&] { return is_open_.load(std::memory_order_acquire); };
  if (is_logged_.load(std::memory_order_acquire)) return is_open();
  std::lock_guard lock(opening_);
  if (is_logged_) return is_open();
  const LtKind& kind = context_.stack().product_library();
  std::string line = kit::text("the plugin's kernels compute matrix products, because ", kind.setting, " is off");
  if (!is_open() && setting_of(kind) != "off") {
    const kit::Status status = open();
    if (status.code() == BP_DEVICE_LOST) return false;
    if (!status.ok()) {
      // Removes the plugin's name from the message, because the host adds the name to each log line.
      const std::string who = kit::text(context_.stack().plugin(), ": ");
      const std::string& why = status.message();
      line = kit::text(why.starts_with(who) ? why.substr(who.size()) : why,
                       "; the plugin's kernels compute matrix products");
    }
  }
  if (is_open()) line = kit::text(library_->description(), " computes matrix products");
  if (!is_open() && units_.is_on()) line += ", those of f16 and bf16 with kernels for matrix units";
  is_logged_.store(true, std::memory_order_release);
  host.log(BP_LOG_INFO, line);
  return is_open();
}

bool Products::is_available(const kit::Host& host, uint32_t dtype) {
  return is_available(host) || units_.load(dtype, host);
}

std::optional<UnitCall> Products::unit_call(const simt::MatrixProduct& product) {
  if (is_open_.load(std::memory_order_acquire)) return std::nullopt;
  return units_.call_of(product);
}

Handle Products::take_handle() {
  if (!is_open_.load(std::memory_order_acquire)) return nullptr;
  auto handle = library_->take_handle();
  return handle.ok() ? handle.value() : nullptr;  // the stream's first product reports the failure
}

void Products::give_back(Handle handle) {
  if (handle != nullptr) library_->give_back(handle);
}

kit::Result<std::shared_ptr<LtPlan>> Products::find_plan(Handle handle, const LtCall& call) {
  std::lock_guard lock(mutex_);
  if (const auto known = index_.find(call.product); known != index_.end()) {
    plans_.splice(plans_.begin(), plans_, known->second);
    return known->second->second;
  }
  const kit::DriverGuard guard;
  const Scope scope(context_);
  auto made = library_->plan(handle, call.product, call.addresses.bias);
  if (!made.ok()) return made.status();
  plans_.emplace_front(call.product, made.value());
  index_[call.product] = plans_.begin();
  if (plans_.size() > kMaxPlans) {
    index_.erase(plans_.back().first);
    plans_.pop_back();
  }
  return made;
}

kit::Status Products::failure(kit::Status status) const {
  context_.stack().forget_failure();
  uint64_t free_bytes = 0, total_bytes = 0;
  kit::Status lost = context_.check(context_.stack().memory_info(free_bytes, total_bytes));
  return lost.code() == BP_DEVICE_LOST ? lost : context_.check(std::move(status));
}

kit::Status Products::need_handle(Handle& handle) {
  if (handle != nullptr) return {};
  const kit::DriverGuard guard;
  const Scope scope(context_);
  auto taken = library_->take_handle();
  if (!taken.ok()) return failure(taken.status());
  handle = taken.value();
  return {};
}

std::optional<LtCall> Products::call_of(const simt::MatrixProduct& product) const {
  if (!is_open_.load(std::memory_order_acquire)) return std::nullopt;
  if (!library_->kind().is_accurate(product.a.dtype, context_.device().architecture)) return std::nullopt;
  return lt_call(product);
}

kit::Result<RecordedProduct> Products::plan_of(Handle& handle, const LtCall& call) {
  if (kit::Status status = need_handle(handle); !status.ok()) return status;
  auto plan = find_plan(handle, call);
  if (!plan.ok()) return failure(plan.status());
  return RecordedProduct{std::move(plan.value()), call.addresses};
}

kit::Result<bool> Products::multiply(Handle& handle, Handle stream, const simt::MatrixProduct& product) {
  const std::optional<LtCall> call = call_of(product);
  if (!call) return false;
  const Scope scope(context_, Calls::kEnqueue);
  if (scope.exiting()) return true;
  if (!scope) return context_.check(scope.status());
  auto planned = plan_of(handle, *call);
  if (!planned.ok()) return planned.status();
  if (planned.value().plan == nullptr) return false;
  if (kit::Status status = enqueue(handle, stream, planned.value()); !status.ok()) return status;
  return true;
}

kit::Result<RecordedProduct> Products::record(Handle& handle, const simt::MatrixProduct& product) {
  const std::optional<LtCall> call = call_of(product);
  if (!call) return RecordedProduct{};
  const Scope scope(context_);
  if (!scope) return context_.check(scope.status());
  return plan_of(handle, *call);
}

kit::Status Products::enqueue(Handle& handle, Handle stream, const RecordedProduct& product) {
  if (kit::Status status = need_handle(handle); !status.ok()) return status;
  std::optional<kit::DriverGuard> guard;
  std::optional<Scope> scope;
  if (!LtLibrary::has_run(*product.plan)) {
    guard.emplace();
    scope.emplace(context_);
  }
  kit::Status status = library_->multiply(handle, *product.plan, product.addresses, stream);
  return status.ok() ? status : failure(std::move(status));
}

std::size_t Products::stored_plans() {
  std::lock_guard lock(mutex_);
  return plans_.size();
}

}  // namespace backplane::gpu_host
