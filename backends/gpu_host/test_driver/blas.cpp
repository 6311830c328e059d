// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/blas.hpp"

#include <algorithm>
#include <backplane/kit/half.hpp>
#include <unordered_map>

#include "gpu_host/test_driver/modules.hpp"

namespace backplane::gpu_host::test_driver {

// Declares each function with the prefix of the vendor's library, which the build defines.
#define BP_LT(name, ...) \
  extern "C" __attribute__((visibility("default"))) int32_t lt_##name(__VA_ARGS__) asm(LT_PREFIX #name);
#include "gpu_host/blas_lt.def"
#undef BP_LT

namespace {

struct BlasHandle {
  Context& context;
  uint64_t stream = 0, command = 0;  // the last command that uses the handle
};
struct BlasDescription {
  int32_t compute = 0, scale = 0, bias_type = -1;
  int32_t op_a = 0, op_b = 0;
  uint32_t epilogue = kLtNoEpilogue;
  const void* bias = nullptr;
};
struct BlasLayout {
  int32_t type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, batch_stride = 0;
  int32_t batches = 1;
  bool operator==(const BlasLayout&) const = default;
};
struct BlasPreference {
  uint64_t workspace = 0;
  uint32_t reduction_mask = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
// The problem for which a heuristic returned an algorithm.
struct BlasProblem {
  BlasDescription description;
  BlasLayout a, b, d;
  uint32_t alignments[4];
  uint64_t bias_alignment;
  std::size_t workspace;
};

template <class T>
std::unordered_map<const void*, std::unique_ptr<T>>& objects() {
  static auto* const all = new std::unordered_map<const void*, std::unique_ptr<T>>;
  return *all;
}
std::vector<BlasProblem>& problems() {
  static auto* const all = new std::vector<BlasProblem>;
  return *all;
}

int32_t invalid(const std::string& rule) {
  (void)violate(Result::kInvalidValue, rule);
  return blas_traits().invalid_value;
}

// Executes a function of the library. `body(call)` returns a status of the library.
template <class Body>
int32_t run_blas(const char* function, Needs needs, const Body& body) {
  Call call(function, needs);
  auto code = static_cast<int32_t>(call.result());
  // A code below kNoDevice, which TEST_DRIVER_FAIL may request, is a status of the library. Other codes are failures
  // of the driver.
  if (code >= static_cast<int32_t>(Result::kNoDevice)) code = blas_traits().execution_failed;
  if (code == 0) code = body(call);
  // A call of the driver inside the library has failed, too, so the driver stores a failure for the thread.
  const bool is_failure = code != 0 && code != blas_traits().numbers.not_supported;
  if (is_failure && traits().stores_failures) Thread::current().last_failure = Result::kInvalidValue;
  return code;
}

template <class T, class... Values>
int32_t add_object(void** out, Values&&... values) {
  if (out == nullptr) return invalid("the result has no address");
  auto made = std::make_unique<T>(T{std::forward<Values>(values)...});
  *out = made.get();
  objects<T>()[*out] = std::move(made);
  return 0;
}
template <class T>
T* find_object(const void* handle) {
  const auto found = objects<T>().find(handle);
  if (found != objects<T>().end()) return found->second.get();
  (void)violate(Result::kInvalidHandle, "an object is used that was destroyed, or never existed");
  return nullptr;
}
template <class T>
int32_t remove_object(const void* handle) {
  if (find_object<T>(handle) == nullptr) return blas_traits().invalid_value;
  objects<T>().erase(handle);
  return 0;
}

// An attribute that a call sets.
struct Attribute {
  int32_t number;
  const void* value;
  std::size_t bytes;
  bool is_set = false;

  template <class T>
  void put(int32_t name, T& to) {
    if (name != number || bytes != sizeof(T)) return;
    std::memcpy(&to, value, sizeof(T));
    is_set = true;
  }
  int32_t status() const { return is_set ? 0 : invalid("the attribute does not exist, or has another size"); }
};

std::size_t bytes_of_type(int32_t type) { return type == kLtF32 ? 4 : 2; }

bool is_type(int32_t type) { return type == kLtF32 || type == kLtF16 || type == kLtBf16; }

// The bytes from the first to the last element of all batches.
uint64_t span_of(const BlasLayout& layout) {
  const auto last = static_cast<uint64_t>(layout.ld) * (layout.columns - 1) + layout.rows +
                    static_cast<uint64_t>(layout.batch_stride) * static_cast<uint64_t>(layout.batches - 1);
  return last * bytes_of_type(layout.type);
}

// Returns a rule that the problem violates, or null.
const char* broken_rule(const BlasDescription& description, const BlasLayout& a, const BlasLayout& b,
                        const BlasLayout& d) {
  const LtNumbers& numbers = blas_traits().numbers;
  for (const BlasLayout& each : {a, b, d}) {
    if (!is_type(each.type)) return "a matrix has a type that the plugin does not state";
    if (each.rows == 0 || each.columns == 0) return "a matrix is empty";
    if (each.ld < static_cast<int64_t>(each.rows)) return "columns of a matrix overlap";
    if (each.batches < 1 || each.batches != d.batches || each.batch_stride < 0) return "the batches differ";
  }
  for (const int32_t op : {description.op_a, description.op_b}) {
    if (op != numbers.op_n && op != numbers.op_t) return "the operation on a matrix does not exist";
  }
  const bool flips_a = description.op_a == numbers.op_t, flips_b = description.op_b == numbers.op_t;
  if ((flips_a ? a.columns : a.rows) != d.rows || (flips_b ? b.rows : b.columns) != d.columns ||
      (flips_a ? a.rows : a.columns) != (flips_b ? b.columns : b.rows)) {
    return "the extents of the matrices differ";
  }
  if (description.compute != numbers.compute_f32 && description.compute != numbers.compute_tf32) {
    return "the type of the computation is not that of f32";
  }
  if (description.epilogue != kLtNoEpilogue && description.epilogue != kLtBias) return "the epilogue is unknown";
  if (description.epilogue == kLtBias && (description.bias == nullptr || description.bias_type != d.type)) {
    return "the bias has no address, or not the type of d";
  }
  return nullptr;
}

uint64_t lowest_bit(uint64_t value) { return value & (~value + 1); }
uint64_t alignment_at(const void* address) { return lowest_bit(reinterpret_cast<uintptr_t>(address) | 256); }

float element_at(const std::byte* from, int32_t type, int64_t index) {
  if (type == kLtF32) {
    float out = 0;
    std::memcpy(&out, from + index * 4, sizeof(out));
    return out;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from + index * 2, sizeof(bits));
  return type == kLtF16 ? kit::f16_to_f32(bits) : kit::bf16_to_f32(bits);
}
void put_element(std::byte* to, int32_t type, int64_t index, float value) {
  if (type == kLtF32) {
    std::memcpy(to + index * 4, &value, sizeof(value));
    return;
  }
  const uint16_t bits = type == kLtF16 ? kit::f32_to_f16(value) : kit::f32_to_bf16(value);
  std::memcpy(to + index * 2, &bits, sizeof(bits));
}

// Returns a matrix as rows of `depth` contiguous values.
std::vector<float> lines_of(const std::byte* from, const BlasLayout& layout, bool along_rows, int64_t batch,
                            bool truncates) {
  std::vector<float> out(layout.rows * layout.columns);
  const auto rows = static_cast<int64_t>(layout.rows), columns = static_cast<int64_t>(layout.columns);
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      float value = element_at(from, layout.type, batch * layout.batch_stride + column * layout.ld + row);
      if (truncates) value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFFE000u);
      out[static_cast<std::size_t>(along_rows ? column * rows + row : row * columns + column)] = value;
    }
  }
  return out;
}

float dot_product(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  float sums[kLanes] = {};
  std::size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) sums[i] += a[k + i] * b[k + i];
  }
  float sum = 0;
  for (; k < count; ++k) sum += a[k] * b[k];
  for (const float each : sums) sum += each;
  return sum;
}

void compute(const BlasProblem& problem, const std::byte* a, const std::byte* b, std::byte* d) {
  const LtNumbers& numbers = blas_traits().numbers;
  const BlasDescription& description = problem.description;
  // If TF32 is a separate type of computation, it drops the last 13 bits of each operand.
  const bool truncates = description.compute == numbers.compute_tf32 && numbers.compute_tf32 != numbers.compute_f32;
  const bool flips_a = description.op_a == numbers.op_t, flips_b = description.op_b == numbers.op_t;
  const std::size_t depth = flips_a ? problem.a.rows : problem.a.columns;
  for (int64_t batch = 0; batch < problem.d.batches; ++batch) {
    const std::vector<float> left = lines_of(a, problem.a, flips_a, batch, truncates);
    const std::vector<float> right = lines_of(b, problem.b, !flips_b, batch, truncates);
    for (std::size_t column = 0; column < problem.d.columns; ++column) {
      for (std::size_t row = 0; row < problem.d.rows; ++row) {
        float sum = dot_product(left.data() + row * depth, right.data() + column * depth, depth);
        if (description.epilogue == kLtBias) {
          sum += element_at(static_cast<const std::byte*>(description.bias), problem.d.type, static_cast<int64_t>(row));
        }
        const auto index = static_cast<int64_t>(column) * problem.d.ld + static_cast<int64_t>(row);
        put_element(d, problem.d.type, batch * problem.d.batch_stride + index, sum);
      }
    }
  }
}

// Notes that the next command of a stream uses a range of memory.
Result use_range(const Stream& stream, const void* address, uint64_t bytes) {
  const auto* const first = static_cast<const std::byte*>(address);
  const Allocation* const allocation = find_allocation(first);
  if (allocation != nullptr && first + bytes > static_cast<const std::byte*>(allocation->address) + allocation->bytes) {
    return violate(Result::kIllegalAddress, "a matrix exceeds an allocation");
  }
  return use_in_kernel(stream, address);
}

}  // namespace

int32_t lt_Create(void** out) {
  return run_blas(LT_PREFIX "Create", Needs::kContext,
                  [&](Call& call) { return add_object<BlasHandle>(out, call.context()); });
}

int32_t lt_MatmulDescCreate(void** out, int32_t compute, int32_t scale) {
  return run_blas(LT_PREFIX "MatmulDescCreate", Needs::kStart, [&](Call&) {
    const LtNumbers& numbers = blas_traits().numbers;
    return add_object<BlasDescription>(out, compute, scale, -1, numbers.op_n, numbers.op_n);
  });
}

int32_t lt_MatmulDescDestroy(void* handle) {
  return run_blas(LT_PREFIX "MatmulDescDestroy", Needs::kStart,
                  [&](Call&) { return remove_object<BlasDescription>(handle); });
}

int32_t lt_MatmulDescSetAttribute(void* handle, int32_t number, const void* value, std::size_t bytes) {
  return run_blas(LT_PREFIX "MatmulDescSetAttribute", Needs::kStart, [&](Call&) {
    auto* const description = find_object<BlasDescription>(handle);
    if (description == nullptr) return blas_traits().invalid_value;
    const LtNumbers& numbers = blas_traits().numbers;
    Attribute given{number, value, bytes};
    given.put(numbers.trans_a, description->op_a);
    given.put(numbers.trans_b, description->op_b);
    given.put(numbers.epilogue, description->epilogue);
    given.put(numbers.bias_pointer, description->bias);
    given.put(numbers.bias_type, description->bias_type);
    return given.status();
  });
}

int32_t lt_MatrixLayoutCreate(void** out, int32_t type, uint64_t rows, uint64_t columns, int64_t ld) {
  return run_blas(LT_PREFIX "MatrixLayoutCreate", Needs::kStart,
                  [&](Call&) { return add_object<BlasLayout>(out, type, rows, columns, ld); });
}

int32_t lt_MatrixLayoutDestroy(void* handle) {
  return run_blas(LT_PREFIX "MatrixLayoutDestroy", Needs::kStart,
                  [&](Call&) { return remove_object<BlasLayout>(handle); });
}

int32_t lt_MatrixLayoutSetAttribute(void* handle, int32_t number, const void* value, std::size_t bytes) {
  return run_blas(LT_PREFIX "MatrixLayoutSetAttribute", Needs::kStart, [&](Call&) {
    auto* const layout = find_object<BlasLayout>(handle);
    if (layout == nullptr) return blas_traits().invalid_value;
    Attribute given{number, value, bytes};
    given.put(blas_traits().numbers.batch_count, layout->batches);
    given.put(blas_traits().numbers.batch_stride, layout->batch_stride);
    return given.status();
  });
}

int32_t lt_MatmulPreferenceCreate(void** out) {
  return run_blas(LT_PREFIX "MatmulPreferenceCreate", Needs::kStart,
                  [&](Call&) { return add_object<BlasPreference>(out); });
}

int32_t lt_MatmulPreferenceDestroy(void* handle) {
  return run_blas(LT_PREFIX "MatmulPreferenceDestroy", Needs::kStart,
                  [&](Call&) { return remove_object<BlasPreference>(handle); });
}

int32_t lt_MatmulPreferenceSetAttribute(void* handle, int32_t number, const void* value, std::size_t bytes) {
  return run_blas(LT_PREFIX "MatmulPreferenceSetAttribute", Needs::kStart, [&](Call&) {
    auto* const preference = find_object<BlasPreference>(handle);
    if (preference == nullptr) return blas_traits().invalid_value;
    const LtNumbers& numbers = blas_traits().numbers;
    Attribute given{number, value, bytes};
    given.put(numbers.max_workspace, preference->workspace);
    given.put(numbers.reduction_mask, preference->reduction_mask);
    for (std::size_t i = 0; i < std::size(numbers.alignments); ++i) {
      given.put(numbers.alignments[i], preference->alignments[i]);
    }
    return given.status();
  });
}

int32_t lt_MatmulAlgoGetHeuristic(void* handle, void* description_handle, void* a_handle, void* b_handle, void*,
                                  void* d_handle, void* preference_handle, int32_t wanted, void* results,
                                  int32_t* count) {
  return run_blas(LT_PREFIX "MatmulAlgoGetHeuristic", Needs::kContext, [&](Call& call) {
    const auto* const blas = find_object<BlasHandle>(handle);
    const auto* const description = find_object<BlasDescription>(description_handle);
    const auto* const a = find_object<BlasLayout>(a_handle);
    const auto* const b = find_object<BlasLayout>(b_handle);
    const auto* const d = find_object<BlasLayout>(d_handle);
    const auto* const preference = find_object<BlasPreference>(preference_handle);
    if (blas == nullptr || description == nullptr || a == nullptr || b == nullptr || d == nullptr ||
        preference == nullptr) {
      return blas_traits().invalid_value;
    }
    if (&blas->context != &call.context()) return invalid("the handle has another context");
    if (wanted != 1 || results == nullptr || count == nullptr) return invalid("the plugin needs one algorithm");
    if (const char* rule = broken_rule(*description, *a, *b, *d); rule != nullptr) return invalid(rule);
    *count = 0;
    if (lacks("products") || a->type != b->type || (d->type != a->type && d->type != kLtF32)) {
      return blas_traits().numbers.not_supported;
    }
    if (lacks("unaligned") && std::ranges::any_of(preference->alignments, [](uint32_t each) { return each < 16; })) {
      return blas_traits().numbers.not_supported;
    }
    const std::size_t sums = d->rows * d->columns * sizeof(float);
    BlasProblem problem{*description, *a, *b, *d, {}, alignment_at(description->bias), 0};
    std::copy_n(preference->alignments, 4, problem.alignments);
    problem.workspace = sums <= preference->workspace ? sums : 0;
    const uint64_t number = problems().size();
    problems().push_back(problem);
    const LtNumbers& numbers = blas_traits().numbers;
    auto* const to = static_cast<std::byte*>(results);
    std::memset(to, 0, numbers.algorithm_bytes);
    std::memcpy(to, &number, sizeof(number));
    std::memcpy(to + numbers.algorithm_bytes, &problem.workspace, sizeof(problem.workspace));
    std::memset(to + numbers.algorithm_bytes + sizeof(problem.workspace), 0, sizeof(int32_t));
    *count = 1;
    return 0;
  });
}

int32_t lt_Matmul(void* handle, void* description_handle, const void* alpha, const void* a, void* a_handle,
                  const void* b, void* b_handle, const void* beta, const void*, void*, void* d, void* d_handle,
                  const void* algorithm, void* workspace, std::size_t workspace_bytes, void* stream_handle) {
  return run_blas(LT_PREFIX "Matmul", Needs::kContext, [&](Call& call) {
    auto* const blas = find_object<BlasHandle>(handle);
    const auto* const description = find_object<BlasDescription>(description_handle);
    const auto* const a_layout = find_object<BlasLayout>(a_handle);
    const auto* const b_layout = find_object<BlasLayout>(b_handle);
    const auto* const d_layout = find_object<BlasLayout>(d_handle);
    const auto stream = find_stream(call, stream_handle);
    if (blas == nullptr || description == nullptr || a_layout == nullptr || b_layout == nullptr ||
        d_layout == nullptr || stream == nullptr) {
      return blas_traits().invalid_value;
    }
    if (&blas->context != &call.context()) return invalid("the handle has another context");
    if (blas->stream != 0 && !stream->follows(blas->stream, blas->command)) {
      return invalid("another stream uses the handle");
    }
    uint64_t number = 0;
    std::memcpy(&number, algorithm, sizeof(number));
    if (number >= problems().size()) return invalid("no heuristic returned the algorithm");
    BlasProblem problem = problems()[number];
    const BlasDescription& planned = problem.description;
    const bool is_planned = *a_layout == problem.a && *b_layout == problem.b && *d_layout == problem.d &&
                            description->op_a == planned.op_a && description->op_b == planned.op_b &&
                            description->epilogue == planned.epilogue && description->compute == planned.compute;
    if (!is_planned) return invalid("the algorithm is for another product");
    const void* const addresses[] = {a, b, d, d};
    const bool has_alignments = blas_traits().numbers.alignments[0] != kLtAbsent;
    for (std::size_t i = 0; i < std::size(addresses) && has_alignments; ++i) {
      if (alignment_at(addresses[i]) < problem.alignments[i]) return invalid("a matrix is less aligned than stated");
    }
    if (description->epilogue == kLtBias &&
        alignment_at(description->bias) < std::min(problem.bias_alignment, uint64_t{16})) {
      return invalid("the bias is less aligned than for the heuristic");
    }
    if (workspace_bytes < problem.workspace || (problem.workspace != 0 && alignment_at(workspace) < 256)) {
      return invalid("the workspace is smaller than the algorithm needs, or misaligned");
    }
    float factors[2] = {};
    std::memcpy(&factors[0], alpha, sizeof(float));
    std::memcpy(&factors[1], beta, sizeof(float));
    if (factors[0] != 1 || factors[1] != 0) return blas_traits().numbers.not_supported;
    if (is_faulty_launch()) {
      call.context().fault = Result::kIllegalAddress;
      return 0;
    }
    problem.description.bias = description->bias;
    Result result = use_range(*stream, a, span_of(problem.a));
    if (result == Result::kSuccess) result = use_range(*stream, b, span_of(problem.b));
    if (result == Result::kSuccess) result = use_range(*stream, d, span_of(problem.d));
    if (result == Result::kSuccess && problem.workspace != 0) result = use_range(*stream, workspace, problem.workspace);
    if (result == Result::kSuccess && description->epilogue == kLtBias) {
      result = use_range(*stream, description->bias, problem.d.rows * bytes_of_type(problem.d.type));
    }
    if (result != Result::kSuccess) {
      call.context().fault = result;
      return 0;
    }
    result = stream->command([&](Work& work) {
      return work.run([=] {
        if (problem.workspace != 0) std::memset(workspace, 0xFF, problem.workspace);
        compute(problem, static_cast<const std::byte*>(a), static_cast<const std::byte*>(b),
                static_cast<std::byte*>(d));
      });
    });
    blas->stream = stream->number();
    blas->command = stream->commands();
    return result == Result::kSuccess ? 0 : blas_traits().execution_failed;
  });
}

}  // namespace backplane::gpu_host::test_driver
