// SPDX-License-Identifier: Apache-2.0
// The subset of C++ that CUDA, HIP and C++ for OpenCL share. Only this file contains code for one
// of these languages.
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
#define SIMT_SHARED(type, name, count) local type name[count]
// The plugin replaces the literal 32 in the compiled module with the chosen width.
#define SIMT_KERNEL(name) __attribute__((intel_reqd_sub_group_size(32))) kernel void name
#define SIMT_UNROLL _Pragma("unroll")
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
SIMT_FN u32 bits_of_float(float x) { return as_uint(x); }
SIMT_FN float float_of_bits(u32 x) { return as_float(x); }
SIMT_FN float root(float x) { return sqrt(x); }
SIMT_FN float multiply_add(float a, float b, float c) { return mad(a, b, c); }
SIMT_FN float round_down(float x) { return floor(x); }
SIMT_FN float round_even(float x) { return rint(x); }
SIMT_FN u32 leading_zeros(u32 x) { return clz(x); }
SIMT_FN u32 multiply_high(u32 a, u32 b) { return mul_hi(a, b); }
#else
#include <stdint.h>
#if defined(__HIP__)
#include <hip/hip_runtime.h>
#endif
typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
#define SIMT_FN __device__ inline
#define SIMT_INLINED __device__ __forceinline__
#define SIMT_GLOBAL
#define SIMT_LOCAL
#define SIMT_SHARED(type, name, count) __shared__ type name[count]
#define SIMT_KERNEL(name) extern "C" __global__ void name
#define SIMT_UNROLL _Pragma("unroll")
SIMT_FN u32 group_id() { return blockIdx.x; }
SIMT_FN u32 group_count() { return gridDim.x; }
SIMT_FN u32 group_size() { return blockDim.x; }
SIMT_FN u32 local_id() { return threadIdx.x; }
SIMT_FN u32 width() { return warpSize; }
SIMT_FN u32 lane() { return threadIdx.x % warpSize; }
SIMT_FN u32 subgroup() { return threadIdx.x / warpSize; }
SIMT_FN u32 subgroups() { return blockDim.x / warpSize; }
#if defined(__HIP__)
SIMT_FN u32 uniform_subgroup() { return (u32)__builtin_amdgcn_readfirstlane((int)subgroup()); }
SIMT_FN u32 shuffle_xor(u32 x, u32 mask) { return __shfl_xor(x, mask); }
#else
SIMT_FN u32 uniform_subgroup() { return subgroup(); }
SIMT_FN u32 shuffle_xor(u32 x, u32 mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
#endif
SIMT_FN void group_barrier() { __syncthreads(); }
SIMT_FN u32 bits_of_float(float x) { return __float_as_uint(x); }
SIMT_FN float float_of_bits(u32 x) { return __uint_as_float(x); }
SIMT_FN float root(float x) { return sqrtf(x); }
SIMT_FN float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
SIMT_FN float round_down(float x) { return floorf(x); }
SIMT_FN float round_even(float x) { return rintf(x); }
SIMT_FN u32 leading_zeros(u32 x) { return __clz((int)x); }
SIMT_FN u32 multiply_high(u32 a, u32 b) { return __umulhi(a, b); }
#endif

typedef SIMT_GLOBAL u8* Pointer;

SIMT_FN u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
SIMT_FN i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
SIMT_FN u32 global_id() { return group_id() * group_size() + local_id(); }
SIMT_FN u32 global_size() { return group_count() * group_size(); }
