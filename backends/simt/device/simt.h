// SPDX-License-Identifier: Apache-2.0
// Common names for the features in which CUDA, HIP and C++ for OpenCL differ. All other code of the kernels uses only
// the subset of C++ that these languages share.
//
// A kernel takes one Pointer per operand and one parameter struct by value. The first member of the
// struct contains the byte offset of element 0 of each operand.
#pragma once

#if defined(__OPENCL_CPP_VERSION__)
typedef char i8;
typedef uchar u8;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
#define SIMT_FN inline
// Marks a function that the compiler must inline before it vectorizes the kernel. If the function is
// not inlined, a compiler for CPUs assumes that the function's arguments differ between lanes, and
// executes the function's loops one lane at a time.
#define SIMT_INLINED __attribute__((always_inline)) inline
#define SIMT_GLOBAL global
#define SIMT_LOCAL local
#define SIMT_PRIVATE
#define SIMT_SHARED(type, name, count) local type name[count]
// The plugin replaces the literal 32 in the compiled module with the sub-group width that it chose.
#define SIMT_KERNEL(name) __attribute__((intel_reqd_sub_group_size(32))) kernel void name
// Declares a kernel whose groups have `threads` threads. In cuda, the compiler limits registers so that `groups` groups
// fit on a multiprocessor. In hip, the compiler limits registers so that 2 waves fit on an execution unit. OpenCL
// ignores both numbers.
#define SIMT_SIZED_KERNEL(name, threads, groups) SIMT_KERNEL(name)
// Four adjacent numbers, which a lane loads or stores at once.
typedef ushort4 QuadU16;
typedef uint4 QuadU32;
typedef float4 QuadFloat;
#define SIMT_UNROLL _Pragma("unroll")
// Unrolls a loop with a long body in cuda and hip. In OpenCL, the compiler decides, because OpenCL compilers for CPUs
// would need minutes for the unrolled loop.
#define SIMT_UNROLL_LONG
SIMT_FN u32 group_id() { return (u32)get_group_id(0); }
SIMT_FN u32 group_count() { return (u32)get_num_groups(0); }
SIMT_FN u32 group_size() { return (u32)get_local_size(0); }
SIMT_FN u32 local_id() { return (u32)get_local_id(0); }
SIMT_FN u32 width() { return get_sub_group_size(); }
SIMT_FN u32 lane() { return get_sub_group_local_id(); }
SIMT_FN u32 subgroup() { return get_sub_group_id(); }
// Returns subgroup() in a form that compilers for CPUs recognize as equal in all lanes.
SIMT_FN u32 uniform_subgroup() { return sub_group_broadcast(get_sub_group_id(), 0u); }
SIMT_FN u32 subgroups() { return get_num_sub_groups(); }
SIMT_FN u32 shuffle_xor(u32 x, u32 mask) { return sub_group_shuffle_xor(x, mask); }
SIMT_FN void group_barrier() { barrier(CLK_LOCAL_MEM_FENCE); }
// Adds 1 to a counter that the threads of a group share, and returns its previous value.
SIMT_FN u32 count_one(SIMT_LOCAL u32* counter) { return atomic_inc(counter); }
SIMT_FN u32 bits_of_float(float x) { return as_uint(x); }
SIMT_FN float float_of_bits(u32 x) { return as_float(x); }
SIMT_FN float root(float x) { return sqrt(x); }
SIMT_FN float multiply_add(float a, float b, float c) { return mad(a, b, c); }
SIMT_FN float round_down(float x) { return floor(x); }
SIMT_FN float round_even(float x) { return rint(x); }
SIMT_FN u32 leading_zeros(u32 x) { return clz(x); }
SIMT_FN u32 multiply_high(u32 a, u32 b) { return mul_hi(a, b); }
// `Words` contains 16 bytes, and `Quad` contains four adjacent elements. The functions that load or store a `Words` or
// a `Quad` require an address that is a multiple of its size.
struct __attribute__((aligned(16))) Words {
  u32 at[4];
};
template <class T>
struct Quad {
  T at[4];
};
SIMT_FN Words words_of(uint4 x) {
  Words out;
  out.at[0] = x.x, out.at[1] = x.y, out.at[2] = x.z, out.at[3] = x.w;
  return out;
}
SIMT_FN Words load_words(global const u8* from) { return words_of(*(global const uint4*)from); }
SIMT_FN Words load_local(local const Words* from) { return words_of(*(local const uint4*)from); }
SIMT_FN void store_local(local Words* to, Words x) { *(local uint4*)to = (uint4)(x.at[0], x.at[1], x.at[2], x.at[3]); }
template <class T>
SIMT_FN Quad<T> load_quad(global const T* from) {
  const auto x = vload4(0, from);
  Quad<T> out;
  out.at[0] = x.x, out.at[1] = x.y, out.at[2] = x.z, out.at[3] = x.w;
  return out;
}
template <class T>
SIMT_FN void store_quad(global T* to, const Quad<T>& x) {
  SIMT_UNROLL for (u32 e = 0; e < 4; ++e) to[e] = x.at[e];
}
// Returns `x`. In cuda and hip, the compiler does not know that the result equals `x`. It therefore computes again what
// depends on the result, instead of keeping the values that it derived from `x` in registers.
SIMT_FN u32 opaque(u32 x) { return x; }
#else
#include <stdint.h>
typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
#define SIMT_GLOBAL
#define SIMT_LOCAL
#ifdef SIMT_HOST
#define SIMT_UNROLL
#else
#define SIMT_UNROLL _Pragma("unroll")
#endif
#define SIMT_UNROLL_LONG SIMT_UNROLL
#if defined(SIMT_HOST)
struct alignas(16) QuadFloat {
  float x, y, z, w;
};
struct alignas(16) QuadU32 {
  u32 x, y, z, w;
};
// This branch is for tests on the host, which set `host_thread` before they call a kernel. Tests of kernels with
// barriers or shuffles also define the functions host_*. Tests run one group after the other, because local memory is
// static on the host, so all groups use the same local memory.
#define SIMT_FN inline
#define SIMT_INLINED inline
#define SIMT_SHARED(type, name, count) static type name[count]
#define SIMT_KERNEL(name) inline void name
struct HostThread {
  u32 group_id, group_count, group_size, local_id, width = 32;
};
inline HostThread host_thread;
void host_barrier();
u32 host_shuffle(u32 x, u32 lane);
u32 host_count(u32* counter);
SIMT_FN u32 group_id() { return host_thread.group_id; }
SIMT_FN u32 group_size() { return host_thread.group_size; }
SIMT_FN u32 group_count() { return host_thread.group_count; }
SIMT_FN u32 local_id() { return host_thread.local_id; }
SIMT_FN u32 width() { return host_thread.width; }
SIMT_FN u32 lane() { return local_id() % width(); }
SIMT_FN u32 subgroup() { return local_id() / width(); }
SIMT_FN u32 shuffle_xor(u32 x, u32 mask) { return host_shuffle(x, lane() ^ mask); }
SIMT_FN void group_barrier() { host_barrier(); }
SIMT_FN u32 count_one(u32* counter) { return host_count(counter); }
SIMT_FN u32 bits_of_float(float x) { return __builtin_bit_cast(u32, x); }
SIMT_FN float float_of_bits(u32 x) { return __builtin_bit_cast(float, x); }
SIMT_FN float root(float x) { return __builtin_sqrtf(x); }
SIMT_FN float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SIMT_FN float round_down(float x) { return __builtin_floorf(x); }
SIMT_FN float round_even(float x) { return __builtin_rintf(x); }
SIMT_FN u32 leading_zeros(u32 x) { return x == 0u ? 32u : (u32)__builtin_clz(x); }
SIMT_FN u32 multiply_high(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
#elif defined(__HIP__)
// The built-in functions of the compiler replace hip_runtime.h, because parsing that header takes longer
// than compiling a typical module.
#define SIMT_DEVICE __attribute__((device))
#define SIMT_FN SIMT_DEVICE inline
#define SIMT_INLINED SIMT_DEVICE __attribute__((always_inline)) inline
#define SIMT_SHARED(type, name, count) __attribute__((shared)) type name[count]
#define SIMT_KERNEL(name) extern "C" __attribute__((global)) void name
#define SIMT_SIZED_KERNEL(name, threads, groups) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads), amdgpu_waves_per_eu(2))) void name
typedef u16 QuadU16 __attribute__((ext_vector_type(4)));
typedef u32 QuadU32 __attribute__((ext_vector_type(4)));
typedef float QuadFloat __attribute__((ext_vector_type(4)));
SIMT_FN u32 group_id() { return __builtin_amdgcn_workgroup_id_x(); }
SIMT_FN u32 group_size() { return __builtin_amdgcn_workgroup_size_x(); }
SIMT_FN u32 group_count() { return __builtin_amdgcn_grid_size_x() / group_size(); }  // All groups have the same size.
SIMT_FN u32 local_id() { return __builtin_amdgcn_workitem_id_x(); }
#if __has_builtin(__builtin_amdgcn_wavefrontsize)
SIMT_FN u32 width() { return __builtin_amdgcn_wavefrontsize(); }
#else
SIMT_FN u32 width() { return __AMDGCN_WAVEFRONT_SIZE; }
#endif
SIMT_FN u32 lane() { return local_id() % width(); }
SIMT_FN u32 subgroup() { return local_id() / width(); }
SIMT_FN u32 uniform_subgroup() { return (u32)__builtin_amdgcn_readfirstlane((int)subgroup()); }
SIMT_FN u32 shuffle_xor(u32 x, u32 mask) {
  return (u32)__builtin_amdgcn_ds_bpermute((int)((lane() ^ mask) * 4), (int)x);
}
SIMT_FN void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
SIMT_FN u32 count_one(u32* counter) {
  return __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
SIMT_FN u32 bits_of_float(float x) { return __builtin_bit_cast(u32, x); }
SIMT_FN float float_of_bits(u32 x) { return __builtin_bit_cast(float, x); }
extern "C" SIMT_DEVICE float __ocml_sqrt_f32(float);  // The correctly rounded square root of the device library.
SIMT_FN float root(float x) { return __ocml_sqrt_f32(x); }
SIMT_FN float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SIMT_FN float round_down(float x) { return __builtin_floorf(x); }
SIMT_FN float round_even(float x) { return __builtin_rintf(x); }
SIMT_FN u32 leading_zeros(u32 x) { return x == 0u ? 32u : (u32)__builtin_clz(x); }
SIMT_FN u32 multiply_high(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
SIMT_FN u32 opaque(u32 x) {
  asm volatile("" : "+v"(x));
  return x;
}
#define SIMT_NATIVE_F16 1
SIMT_FN u32 f32_of_f16(u32 bits) { return bits_of_float((float)__builtin_bit_cast(_Float16, (u16)bits)); }
SIMT_FN u32 f16_of_f32(u32 bits) { return __builtin_bit_cast(u16, (_Float16)float_of_bits(bits)); }
#else
#define SIMT_FN __device__ inline
#define SIMT_INLINED __device__ __forceinline__
#define SIMT_SHARED(type, name, count) __shared__ type name[count]
#define SIMT_KERNEL(name) extern "C" __global__ void name
#define SIMT_SIZED_KERNEL(name, threads, groups) extern "C" __global__ void __launch_bounds__(threads, groups) name
typedef ushort4 QuadU16;
typedef uint4 QuadU32;
typedef float4 QuadFloat;
SIMT_FN u32 group_id() { return blockIdx.x; }
SIMT_FN u32 group_size() { return blockDim.x; }
SIMT_FN u32 group_count() { return gridDim.x; }
SIMT_FN u32 local_id() { return threadIdx.x; }
// The number of lanes of a warp. For the compiler, `warpSize` is not a constant, so it would generate divisions.
SIMT_FN u32 width() { return 32u; }
SIMT_FN u32 lane() { return threadIdx.x % width(); }
SIMT_FN u32 subgroup() { return threadIdx.x / width(); }
SIMT_FN u32 uniform_subgroup() { return subgroup(); }
SIMT_FN u32 shuffle_xor(u32 x, u32 mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
SIMT_FN void group_barrier() { __syncthreads(); }
SIMT_FN u32 count_one(u32* counter) { return atomicAdd(counter, 1u); }
SIMT_FN u32 bits_of_float(float x) { return __float_as_uint(x); }
SIMT_FN float float_of_bits(u32 x) { return __uint_as_float(x); }
SIMT_FN float root(float x) { return sqrtf(x); }
SIMT_FN float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
SIMT_FN float round_down(float x) { return floorf(x); }
SIMT_FN float round_even(float x) { return rintf(x); }
SIMT_FN u32 leading_zeros(u32 x) { return __clz((int)x); }
SIMT_FN u32 multiply_high(u32 a, u32 b) { return __umulhi(a, b); }
// The functions of the CUDA toolkit replace those of math.h. Square roots and quotients are correctly rounded, e^x is
// within 1 ulp, and tanh and erf are within 2 ulp.
#define SIMT_NATIVE_MATH 1
SIMT_FN float native_exp(float x) { return expf(x); }
SIMT_FN float native_tanh(float x) { return tanhf(x); }
SIMT_FN float native_erf(float x) { return erff(x); }
// Returns 2^x within 2 ulp, if the result is normal.
SIMT_FN float native_exp2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
// Returns 1 / x within 1 ulp, if x and the result are normal. Otherwise the result may be 0.
SIMT_FN float native_inverse(float x) {
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
SIMT_FN u32 opaque(u32 x) {
  asm volatile("" : "+r"(x));
  return x;
}
#define SIMT_NATIVE_F16 1
SIMT_FN u32 f32_of_f16(u32 bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"((u16)bits));
  return bits_of_float(out);
}
SIMT_FN u32 f16_of_f32(u32 bits) {
  u16 out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(float_of_bits(bits)));
  return out;
}
#if __CUDA_ARCH__ >= 800
#define SIMT_NATIVE_BF16 1
SIMT_FN u32 bf16_of_f32(u32 bits) {
  u16 out;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(float_of_bits(bits)));
  return out;
}
#endif
#endif
// Defined if a lane loads or stores 16 bytes at once in loops over rows.
#define SIMT_PACKS_ROWS 1
#define SIMT_PRIVATE
SIMT_FN u32 subgroups() { return group_size() / width(); }
struct alignas(16) Words {
  u32 at[4];
};
template <class T>
struct alignas(4 * sizeof(T)) Quad {
  T at[4];
};
SIMT_FN Words load_words(const u8* from) { return *(const Words*)from; }
SIMT_FN Words load_local(const Words* from) { return *from; }
SIMT_FN void store_local(Words* to, const Words& x) { *to = x; }
template <class T>
SIMT_FN Quad<T> load_quad(const T* from) {
  return *(const Quad<T>*)from;
}
template <class T>
SIMT_FN void store_quad(T* to, const Quad<T>& x) {
  *(Quad<T>*)to = x;
}
#endif

typedef SIMT_GLOBAL u8* Pointer;

SIMT_FN u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
SIMT_FN i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
SIMT_FN u32 global_id() { return group_id() * group_size() + local_id(); }
SIMT_FN u32 global_size() { return group_count() * group_size(); }
