// SPDX-License-Identifier: Apache-2.0
// Loops over strided views. Dimensions are reordered and merged, so that innermost rows are
// contiguous if possible.
#pragma once

#include <algorithm>
#include <backplane/kit/call.hpp>
#include <backplane/kit/types.hpp>

namespace backplane::kit {

// A loop nest over N views of the same shape. The nest may reorder dimensions. Strides are in
// bytes.
template <std::size_t N>
class LoopNest {
 public:
  using Pointers = std::array<std::byte*, N>;
  using Strides = std::array<int64_t, N>;

  [[gnu::noinline]] explicit LoopNest(const std::array<const View*, N>& views) {
    const View& lead = *views[0];
    for (std::size_t k = 0; k < N; ++k) data_[k] = views[k]->data;
    for (uint32_t i = 0; i < lead.rank; ++i) {
      if (lead.shape[i] == 1) continue;
      if (lead.shape[i] == 0) empty_ = true;
      shape_[rank_] = lead.shape[i];
      for (std::size_t k = 0; k < N; ++k) {
        strides_[rank_][k] = views[k]->strides[i] * static_cast<int64_t>(dtype_bytes(views[k]->dtype));
      }
      ++rank_;
    }
    order();
    merge();
    if (rank_ == 0) {
      shape_[0] = 1;
      for (std::size_t k = 0; k < N; ++k) strides_[0][k] = static_cast<int64_t>(dtype_bytes(views[k]->dtype));
      rank_ = 1;
    }
  }

  int64_t inner_count() const { return shape_[rank_ - 1]; }
  const Strides& inner_strides() const { return strides_[rank_ - 1]; }

  int64_t elements() const {
    int64_t count = empty_ ? 0 : 1;
    for (uint32_t d = 0; d < rank_; ++d) count *= shape_[d];
    return count;
  }
  // Returns the index of the longest dimension, or of the outermost one if several are equally
  // long. Threads divide this dimension with cut(), which returns a part of the nest.
  uint32_t longest() const { return static_cast<uint32_t>(std::max_element(shape_, shape_ + rank_) - shape_); }
  uint32_t rank() const { return rank_; }  // at least 1
  int64_t extent(uint32_t d) const { return shape_[d]; }
  const Strides& strides(uint32_t d) const { return strides_[d]; }
  LoopNest cut(uint32_t d, int64_t begin, int64_t end) const {
    LoopNest part = *this;
    for (std::size_t k = 0; k < N; ++k) part.data_[k] += begin * strides_[d][k];
    part.shape_[d] = end - begin;
    return part;
  }

  // Calls row(pointers, strides, count) for each innermost row.
  template <class Row>
  void rows(const Row& row) const {
    rows_at(data_, row);
  }
  // Like rows(), but element 0 of each view is at the address in `at`.
  template <class Row>
  void rows_at(const Pointers& at, const Row& row) const {
    walk(at, &row, [](const void* context, const Pointers& from, const Strides& strides, int64_t count) {
      (*static_cast<const Row*>(context))(from, strides, count);
    });
  }

 private:
  using RowFunction = void (*)(const void* context, const Pointers& at, const Strides& strides, int64_t count);

  // `row` is not a template parameter, so this function is compiled once per N.
  [[gnu::noinline]] void walk(Pointers at, const void* context, RowFunction row) const {
    if (empty_) return;
    int64_t index[BP_MAX_RANK] = {};
    const uint32_t inner = rank_ - 1;
    while (true) {
      row(context, at, strides_[inner], shape_[inner]);
      uint32_t d = inner;
      while (true) {
        if (d == 0) return;
        --d;
        for (std::size_t k = 0; k < N; ++k) at[k] += strides_[d][k];
        if (++index[d] < shape_[d]) break;
        for (std::size_t k = 0; k < N; ++k) at[k] -= strides_[d][k] * shape_[d];
        index[d] = 0;
      }
    }
  }

  // Sorts dimensions by the first view's strides. The dimension with the smallest stride becomes
  // the innermost.
  void order() {
    const auto reach = [&](uint32_t d) { return std::abs(strides_[d][0]); };
    for (uint32_t i = 1; i < rank_; ++i) {
      for (uint32_t d = i; d > 0 && reach(d - 1) < reach(d); --d) {
        std::swap(shape_[d - 1], shape_[d]);
        std::swap(strides_[d - 1], strides_[d]);
      }
    }
  }
  // Merges adjacent dimensions if the strides of every view allow one loop over both.
  void merge() {
    if (rank_ == 0) return;
    uint32_t kept = 0;
    for (uint32_t d = 1; d < rank_; ++d) {
      bool joins = true;
      for (std::size_t k = 0; k < N; ++k) joins = joins && strides_[kept][k] == strides_[d][k] * shape_[d];
      if (joins) {
        shape_[kept] *= shape_[d];
      } else {
        shape_[++kept] = shape_[d];
      }
      strides_[kept] = strides_[d];
    }
    rank_ = kept + 1;
  }

  Pointers data_;
  uint32_t rank_ = 0;
  bool empty_ = false;
  int64_t shape_[BP_MAX_RANK];
  Strides strides_[BP_MAX_RANK];
};

// Marks a loop whose iterations are independent. The iterations of the kit's loops are independent,
// because an output is either identical to an input or overlaps no input.
#if defined(__clang__)
#define BACKPLANE_KIT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
// Suppresses the warning about a loop that the compiler does not vectorise.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define BACKPLANE_KIT_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Computes out = f(in) element by element; f takes and returns values of the stored types.
template <class Out, class In, class F>
void map_stored(const Call& call, const F& f) {
  LoopNest<2>({&call.out(), &call.in(0)}).rows([&](const auto& at, const auto& strides, int64_t count) {
    if (strides[0] == sizeof(Out) && strides[1] == sizeof(In)) {
      auto* out = reinterpret_cast<Out*>(at[0]);
      const auto* in = reinterpret_cast<const In*>(at[1]);
      BACKPLANE_KIT_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        *reinterpret_cast<Out*>(at[0] + i * strides[0]) = f(*reinterpret_cast<const In*>(at[1] + i * strides[1]));
      }
    }
  });
}

// Computes out = f(in) element by element; f takes and returns widened values (WideOf in types.hpp).
template <class Out, class In, class F>
void map_unary(const Call& call, const F& f) {
  map_stored<Out, In>(call, [&](In in) { return narrow<Out>(f(widen(in))); });
}

// Computes out = f(a, b) element by element; f takes and returns widened values (WideOf in types.hpp).
template <class Out, class A, class B, class F>
void map_binary(const View& to, const View& left, const View& right, const F& f) {
  LoopNest<3>({&to, &left, &right}).rows([&](const auto& at, const auto& strides, int64_t count) {
    auto* out = reinterpret_cast<Out*>(at[0]);
    const auto* a = reinterpret_cast<const A*>(at[1]);
    const auto* b = reinterpret_cast<const B*>(at[2]);
    const bool packed = strides[0] == sizeof(Out);
    if (packed && strides[1] == sizeof(A) && strides[2] == sizeof(B)) {
      BACKPLANE_KIT_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) out[i] = narrow<Out>(f(widen(a[i]), widen(b[i])));
    } else if (packed && strides[1] == sizeof(A) && strides[2] == 0) {
      const auto fixed = widen(*b);
      BACKPLANE_KIT_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) out[i] = narrow<Out>(f(widen(a[i]), fixed));
    } else if (packed && strides[1] == 0 && strides[2] == sizeof(B)) {
      const auto fixed = widen(*a);
      BACKPLANE_KIT_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) out[i] = narrow<Out>(f(fixed, widen(b[i])));
    } else {
      for (int64_t i = 0; i < count; ++i) {
        *reinterpret_cast<Out*>(at[0] + i * strides[0]) =
            narrow<Out>(f(widen(*reinterpret_cast<const A*>(at[1] + i * strides[1])),
                          widen(*reinterpret_cast<const B*>(at[2] + i * strides[2]))));
      }
    }
  });
}

template <class Out, class A, class B, class F>
void map_binary(const Call& call, const F& f) {
  map_binary<Out, A, B>(call.out(), call.in(0), call.in(1), f);
}

// Computes out = f(a, b, c) element by element; f takes and returns values of the stored types.
template <class Out, class A, class B, class C, class F>
void map_ternary_stored(const Call& call, const F& f) {
  LoopNest<4>({&call.out(), &call.in(0), &call.in(1), &call.in(2)})
      .rows([&](const auto& at, const auto& strides, int64_t count) {
        if (strides == std::array<int64_t, 4>{sizeof(Out), sizeof(A), sizeof(B), sizeof(C)}) {
          auto* out = reinterpret_cast<Out*>(at[0]);
          const auto* a = reinterpret_cast<const A*>(at[1]);
          const auto* b = reinterpret_cast<const B*>(at[2]);
          const auto* c = reinterpret_cast<const C*>(at[3]);
          BACKPLANE_KIT_INDEPENDENT
          for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i], c[i]);
        } else {
          for (int64_t i = 0; i < count; ++i) {
            *reinterpret_cast<Out*>(at[0] + i * strides[0]) = f(*reinterpret_cast<const A*>(at[1] + i * strides[1]),
                                                                *reinterpret_cast<const B*>(at[2] + i * strides[2]),
                                                                *reinterpret_cast<const C*>(at[3] + i * strides[3]));
          }
        }
      });
}

// Returns `view` with extent 1 along `axis`. A lane is the elements whose indices differ only along
// `axis`. Each element of the result is the first element of a lane.
inline View lanes(const View& view, uint32_t axis) {
  View out = view;
  out.shape[axis] = 1;
  return out;
}
// Returns `view` with the extents of `shape` and stride 0 along `axis`. The caller adds the offset
// that an index selects along `axis`.
inline View pinned(const View& view, uint32_t axis, const View& shape) {
  View out = view;
  std::copy_n(shape.shape, shape.rank, out.shape);
  out.strides[axis] = 0;
  if (view.elements() == 0) std::fill_n(out.strides, out.rank, 0);
  return out;
}
inline int64_t byte_stride(const View& view, uint32_t axis) {
  return view.strides[axis] * static_cast<int64_t>(dtype_bytes(view.dtype));
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

}  // namespace backplane::kit
