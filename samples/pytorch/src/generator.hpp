// SPDX-License-Identifier: Apache-2.0
// Random numbers. The state of a generator consists of a seed, which is the key of Philox, and a counter.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

namespace backplane_torch {

class GeneratorState final : public c10::GeneratorImpl {
 public:
  explicit GeneratorState(c10::DeviceIndex index);

  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }
  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_offset(uint64_t offset) override { counter_ = offset; }
  uint64_t get_offset() const override { return counter_; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // Returns the current counter, and advances it by `blocks`. Thus the caller may use `blocks` counters.
  uint64_t take(uint64_t blocks);

 private:
  GeneratorState* clone_impl() const override;

  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t counter_ = 0;
};

// Returns the default generator of the device. The index -1 means the current device.
const at::Generator& default_generator(c10::DeviceIndex index);

// The key and the first counter for a call of an operator that uses Philox.
struct PhiloxRange {
  uint64_t key = 0, counter = 0;
};
// Reserves the counters for `words` words of 32 bits, and returns the first one. Uses the device's default
// generator if `generator` is empty.
PhiloxRange take_philox(const std::optional<at::Generator>& generator, c10::DeviceIndex index, int64_t words);

}  // namespace backplane_torch
