// SPDX-License-Identifier: Apache-2.0
// The thread's floating-point control register: rounding, traps and flush to zero. A library that
// was built with unsafe floating-point options, such as -ffast-math, may change the register when it
// is loaded. Such a change would alter the host's results.
#pragma once

#include <cstdint>

namespace backplane::core {

#if defined(__x86_64__) || defined(__SSE__)
// The register MXCSR of x86 without its sticky exception flags.
inline uint64_t float_control() noexcept { return __builtin_ia32_stmxcsr() & ~0x3Fu; }
inline void set_float_control(uint64_t control) noexcept { __builtin_ia32_ldmxcsr(static_cast<uint32_t>(control)); }
#elif defined(__aarch64__)
inline uint64_t float_control() noexcept {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline void set_float_control(uint64_t control) noexcept { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
inline uint64_t float_control() noexcept { return 0; }
inline void set_float_control(uint64_t) noexcept {}
#endif

}  // namespace backplane::core
