// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/blas_lt.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>

namespace backplane::gpu_host {

namespace {

// The reduction scheme in which sums of splits have the dtype of the computation, and are added in a fixed order. The
// value is equal to CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE.
constexpr uint32_t kSumsInComputeType = 2;

}  // namespace

struct LtLibrary::Functions {
#define BP_LT(name, ...) int32_t (*name)(__VA_ARGS__) = nullptr;
#include "gpu_host/blas_lt.def"
#undef BP_LT
};

class LtPlan {
 public:
  using Destroy = int32_t (*)(void*);
  using Object = std::unique_ptr<void, Destroy>;

  explicit LtPlan(Destroy destroy_description, Destroy destroy_layout)
      : description(nullptr, destroy_description),
        layouts{Object{nullptr, destroy_layout}, Object{nullptr, destroy_layout}, Object{nullptr, destroy_layout}} {}

  Object description;
  std::array<Object, 3> layouts;  // the layouts of a, b and d
  std::vector<std::byte> algorithm;
  uint64_t scratch_bytes = 0;
  bool has_bias = false;
  std::atomic<bool> has_run{false};
  std::mutex mutex;  // locked during a call, which sets the address of the bias
};

LtLibrary::LtLibrary(const LtKind& kind, const char* plugin)
    : kind_(kind), plugin_(plugin), functions_(std::make_unique<Functions>()) {}

LtLibrary::~LtLibrary() = default;

kit::Result<std::unique_ptr<LtLibrary>> LtLibrary::open(const LtKind& kind, const char* plugin) {
  const char* const setting = std::getenv(kind.setting);
  std::vector<const char*> files(kind.files.begin(), kind.files.end());
  const std::string_view given = setting == nullptr ? "" : setting;
  if (!given.empty() && given != "on") files = {setting};
  std::string reasons;
  for (const char* file : files) {
    std::unique_ptr<LtLibrary> out(new LtLibrary(kind, plugin));
    kit::Status status = out->load(file);
    if (status.ok()) return out;
    reasons += (reasons.empty() ? "" : "; ") + status.message();
  }
  return kit::Status{BP_UNAVAILABLE, kit::text(plugin, ": ", kind.name, " cannot be used: ", reasons, "; ", kind.remedy,
                                               ", or state its file in ", kind.setting)};
}

kit::Status LtLibrary::load(const char* file) {
  // Stays open until the process ends, because the library registers exit handlers.
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {BP_UNAVAILABLE, ::dlerror()};
  const auto look_up = [&](const char* name) { return ::dlsym(library, (std::string(kind_.prefix) + name).c_str()); };
  const char* missing = nullptr;
#define BP_LT(name, ...)                                                           \
  functions_->name = reinterpret_cast<decltype(functions_->name)>(look_up(#name)); \
  if (functions_->name == nullptr) missing = #name;
#include "gpu_host/blas_lt.def"
#undef BP_LT
  if (missing != nullptr) return {BP_UNAVAILABLE, kit::text(file, " has no ", kind_.prefix, missing)};
  auto handle = take_handle();
  if (!handle.ok()) return {BP_UNAVAILABLE, kit::text(file, ": ", handle.status().message())};
  give_back(handle.value());
  description_ = kit::text(kind_.name, " ", kind_.version(library, handle.value()), " (", file, ")");
  return {};
}

kit::Status LtLibrary::status_of(int32_t code, const char* function) const {
  if (code == 0) return {};
  LtResult known{code, "an unknown status", BP_INTERNAL};
  for (const LtResult& each : kind_.results) {
    if (each.code == code) known = each;
  }
  return {known.status,
          kit::text(plugin_, ": ", kind_.prefix, function, " returned ", code, ", ", known.name, "; set ",
                    kind_.setting, "=off to compute products without the library"),
          code};
}

kit::Result<Handle> LtLibrary::take_handle() {
  {
    std::lock_guard lock(mutex_);
    if (!handles_.empty()) {
      const Handle out = handles_.back();
      handles_.pop_back();
      return out;
    }
  }
  Handle out = nullptr;
  kit::Status status = status_of(functions_->Create(&out), "Create");
  if (!status.ok()) return status;
  return out;
}

void LtLibrary::give_back(Handle handle) {
  std::lock_guard lock(mutex_);
  handles_.push_back(handle);
}

kit::Status LtLibrary::describe(LtPlan& plan, const LtProduct& product, const std::byte* bias) const {
  const LtNumbers& numbers = kind_.numbers;
  kit::Status status;
  const auto check = [&](int32_t code, const char* function) {
    if (status.ok()) status = status_of(code, function);
  };
  const auto set = [&](int32_t attribute, const auto& value) {
    check(functions_->MatmulDescSetAttribute(plan.description.get(), attribute, &value, sizeof(value)),
          "MatmulDescSetAttribute");
  };
  void* made = nullptr;
  const int32_t compute = product.allows_tf32 != 0 ? numbers.compute_tf32 : numbers.compute_f32;
  check(functions_->MatmulDescCreate(&made, compute, kLtF32), "MatmulDescCreate");
  if (!status.ok()) return status;
  plan.description.reset(made);
  set(numbers.trans_a, product.transposes_a != 0 ? numbers.op_t : numbers.op_n);
  set(numbers.trans_b, product.transposes_b != 0 ? numbers.op_t : numbers.op_n);
  plan.has_bias = product.has_bias != 0;
  if (plan.has_bias) {
    set(numbers.epilogue, kLtBias);
    set(numbers.bias_type, static_cast<int32_t>(product.d_type));
    set(numbers.bias_pointer, bias);
  }
  struct Layout {
    uint64_t type, rows, columns;
    int64_t ld, batch_stride;
  };
  const auto& p = product;
  const Layout layouts[3] = {
      {p.type, p.transposes_a != 0 ? p.depth : p.rows, p.transposes_a != 0 ? p.rows : p.depth, p.ld_a, p.stride_a},
      {p.type, p.transposes_b != 0 ? p.columns : p.depth, p.transposes_b != 0 ? p.depth : p.columns, p.ld_b,
       p.stride_b},
      {p.d_type, p.rows, p.columns, p.ld_d, p.stride_d}};
  const auto batches = static_cast<int32_t>(p.batches);
  for (std::size_t i = 0; i < plan.layouts.size(); ++i) {
    const Layout& each = layouts[i];
    check(functions_->MatrixLayoutCreate(&made, static_cast<int32_t>(each.type), each.rows, each.columns, each.ld),
          "MatrixLayoutCreate");
    if (!status.ok()) return status;
    plan.layouts[i].reset(made);
    if (batches == 1) continue;
    check(functions_->MatrixLayoutSetAttribute(made, numbers.batch_count, &batches, sizeof(batches)),
          "MatrixLayoutSetAttribute");
    check(
        functions_->MatrixLayoutSetAttribute(made, numbers.batch_stride, &each.batch_stride, sizeof(each.batch_stride)),
        "MatrixLayoutSetAttribute");
  }
  return status;
}

kit::Status LtLibrary::choose(Handle handle, LtPlan& plan, const LtProduct& product) const {
  const LtNumbers& numbers = kind_.numbers;
  void* made = nullptr;
  kit::Status status = status_of(functions_->MatmulPreferenceCreate(&made), "MatmulPreferenceCreate");
  if (!status.ok()) return status;
  const LtPlan::Object preference(made, functions_->MatmulPreferenceDestroy);
  const auto set = [&](int32_t attribute, const auto& value) {
    if (!status.ok() || attribute == kLtAbsent) return;
    status = status_of(functions_->MatmulPreferenceSetAttribute(made, attribute, &value, sizeof(value)),
                       "MatmulPreferenceSetAttribute");
  };
  const uint64_t alignments[] = {product.alignment_a, product.alignment_b, product.alignment_d, product.alignment_d};
  set(numbers.max_workspace, product.scratch_bytes);
  set(numbers.reduction_mask, kSumsInComputeType);
  for (std::size_t i = 0; i < std::size(alignments); ++i) {
    set(numbers.alignments[i], static_cast<uint32_t>(alignments[i]));
  }
  if (!status.ok()) return status;

  alignas(8) std::byte result[kLtMaxHeuristicBytes] = {};
  int32_t count = 0;
  void* const d = plan.layouts[2].get();
  const int32_t code = functions_->MatmulAlgoGetHeuristic(handle, plan.description.get(), plan.layouts[0].get(),
                                                          plan.layouts[1].get(), d, d, made, 1, result, &count);
  if (code == numbers.not_supported || code == numbers.arch_mismatch) return {};
  if (status = status_of(code, "MatmulAlgoGetHeuristic"); !status.ok() || count == 0) return status;
  std::size_t bytes = 0;
  int32_t state = 0;
  std::memcpy(&bytes, result + numbers.algorithm_bytes, sizeof(bytes));
  std::memcpy(&state, result + numbers.algorithm_bytes + sizeof(bytes), sizeof(state));
  if (state != 0 || bytes > product.scratch_bytes) return {};
  plan.algorithm.assign(result, result + numbers.algorithm_bytes);
  plan.scratch_bytes = bytes;
  return {};
}

kit::Result<std::shared_ptr<LtPlan>> LtLibrary::plan(Handle handle, const LtProduct& product,
                                                     const std::byte* bias) const {
  auto out = std::make_shared<LtPlan>(functions_->MatmulDescDestroy, functions_->MatrixLayoutDestroy);
  kit::Status status = describe(*out, product, bias);
  if (status.ok()) status = choose(handle, *out, product);
  if (!status.ok()) return status;
  if (out->algorithm.empty()) out.reset();
  return out;
}

bool LtLibrary::has_run(const LtPlan& plan) { return plan.has_run.load(std::memory_order_acquire); }

kit::Status LtLibrary::multiply(Handle handle, LtPlan& plan, const LtAddresses& at, Handle stream) const {
  constexpr float kOne = 1, kZero = 0;
  std::lock_guard lock(plan.mutex);
  if (plan.has_bias) {
    kit::Status status = status_of(functions_->MatmulDescSetAttribute(
                                       plan.description.get(), kind_.numbers.bias_pointer, &at.bias, sizeof(at.bias)),
                                   "MatmulDescSetAttribute");
    if (!status.ok()) return status;
  }
  void* const d = plan.layouts[2].get();
  plan.has_run.store(true, std::memory_order_release);
  return status_of(functions_->Matmul(handle, plan.description.get(), &kOne, at.a, plan.layouts[0].get(), at.b,
                                      plan.layouts[1].get(), &kZero, at.d, d, at.d, d, plan.algorithm.data(),
                                      at.scratch, plan.scratch_bytes, stream),
                   "Matmul");
}

}  // namespace backplane::gpu_host
