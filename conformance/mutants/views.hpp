// SPDX-License-Identifier: Apache-2.0
// Functions to iterate over views and to change the views of a call.
#pragma once

#include <backplane/kit/loops.hpp>
#include <chrono>
#include <thread>

namespace backplane::conformance::mutants {

using namespace kit;

inline int64_t bytes_of(const View& view) { return static_cast<int64_t>(dtype_bytes(view.dtype)); }

// Calls visit(address, n) for each element, where n is the logical index of the element.
template <class Visit>
void each(const View& view, const Visit& visit) {
  const int64_t count = view.elements(), size = bytes_of(view);
  std::byte* at = view.data;
  int64_t index[BP_MAX_RANK] = {};
  for (int64_t n = 0; n < count; ++n) {
    visit(at, n);
    for (uint32_t d = view.rank; d-- > 0;) {
      at += view.strides[d] * size;
      if (++index[d] < view.shape[d]) break;
      at -= view.strides[d] * view.shape[d] * size;
      index[d] = 0;
    }
  }
}

// Replaces each element by f(element). The argument and the result of f have the type to which T is widened.
template <class T, class F>
void each_value(const View& view, const F& f) {
  each(view, [&](std::byte* at, int64_t) {
    T& value = *reinterpret_cast<T*>(at);
    value = narrow<T>(f(widen(value)));
  });
}

// Calls body.operator()<T>() for the type T of `dtype`, if `Ts` contains T.
template <class... Ts, class Body>
void with_type(Types<Ts...>, uint32_t dtype, const Body& body) {
  (void)((kDtypeOf<Ts> == dtype ? (body.template operator()<Ts>(), true) : false) || ...);
}

inline double get(uint32_t dtype, const std::byte* at) {
  double out = 0;
  with_type(All{}, dtype, [&]<class T>() { out = static_cast<double>(widen(*reinterpret_cast<const T*>(at))); });
  return out;
}
// Stores a value. If `dtype` is a float, `value` is rounded once. Otherwise `dtype` must represent
// `value` exactly.
inline void put(uint32_t dtype, std::byte* at, double value) {
  with_type(All{}, dtype, [&]<class T>() {
    if constexpr (Half<T>) {
      *reinterpret_cast<T*>(at) = T::from(value);
    } else {
      *reinterpret_cast<T*>(at) = narrow<T>(static_cast<Wide<T>>(value));
    }
  });
}

// Returns the elements as doubles, in logical order.
inline std::vector<double> read(const View& view) {
  std::vector<double> out(static_cast<std::size_t>(view.elements()));
  each(view, [&](std::byte* at, int64_t n) { out[static_cast<std::size_t>(n)] = get(view.dtype, at); });
  return out;
}
inline void write(const View& view, const std::vector<double>& values) {
  each(view, [&](std::byte* at, int64_t n) { put(view.dtype, at, values[static_cast<std::size_t>(n)]); });
}

// save() returns the bytes of all elements in logical order. restore() copies such bytes back to a
// view.
inline std::vector<std::byte> save(const View& view) {
  const int64_t size = bytes_of(view);
  std::vector<std::byte> out(static_cast<std::size_t>(view.elements() * size));
  each(view, [&](std::byte* at, int64_t n) { std::memcpy(out.data() + n * size, at, static_cast<std::size_t>(size)); });
  return out;
}
inline void restore(const View& view, const std::vector<std::byte>& bytes) {
  const int64_t size = bytes_of(view);
  each(view,
       [&](std::byte* at, int64_t n) { std::memcpy(at, bytes.data() + n * size, static_cast<std::size_t>(size)); });
}

// Sets row-major strides.
inline void make_dense(View& view) {
  int64_t stride = 1;
  for (uint32_t d = view.rank; d-- > 0; stride *= view.shape[d]) view.strides[d] = stride;
}
inline bool is_immediate(const View& view) { return view.data == reinterpret_cast<const std::byte*>(&view.immediate); }

// Restricts the view to [begin, begin + count) of dimension d.
inline void cut(View& view, uint32_t d, int64_t begin, int64_t count) {
  view.data += begin * view.strides[d] * bytes_of(view);
  view.shape[d] = count;
}

// A copy of a call whose views, attributes and scalars can be changed.
class Altered {
 public:
  explicit Altered(const Call& call) : call_(call), inputs_(call.inputs.size()) {
    call_.views.assign(call.inputs.begin(), call.inputs.end());
    call_.views.insert(call_.views.end(), call.outputs.begin(), call.outputs.end());
    for (std::size_t i = 0; i < inputs_; ++i) {
      if (is_immediate(call.inputs[i])) in(i).data = reinterpret_cast<std::byte*>(&in(i).immediate);
    }
    call_.inputs = {call_.views.data(), inputs_};
    call_.outputs = {call_.views.data() + inputs_, call.outputs.size()};
  }
  Altered(const Altered&) = delete;
  Altered& operator=(const Altered&) = delete;

  View& in(std::size_t i) { return call_.views[i]; }
  View& out(std::size_t i = 0) { return call_.views[inputs_ + i]; }
  std::size_t inputs() const { return inputs_; }
  template <class T>
  T& attributes() {
    return *reinterpret_cast<T*>(call_.attribute_bytes.bytes);
  }
  Call& call() { return call_; }
  void run(Kernel kernel) const { kernel(call_); }

 private:
  Call call_;
  std::size_t inputs_;
};

// Runs `kernel` with `temporary` in place of output 0, waits for 100 microseconds, and copies the
// result to the output. Concurrent calls that share the temporary overwrite its contents. If the
// temporary is too small, the kernel writes directly to the output.
inline void run_in_temporary(const Call& call, Kernel kernel, std::span<std::byte> temporary) {
  const View& out = call.out();
  const auto bytes = static_cast<std::size_t>(out.elements() * bytes_of(out));
  if (bytes > temporary.size()) return kernel(call);
  Altered altered(call);
  altered.out().data = temporary.data();
  make_dense(altered.out());
  altered.run(kernel);
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  restore(out, {temporary.data(), temporary.data() + bytes});
}

}  // namespace backplane::conformance::mutants
