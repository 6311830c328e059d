// SPDX-License-Identifier: Apache-2.0
#include "generator.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <deque>

#include "devices.hpp"

namespace backplane_torch {

GeneratorState::GeneratorState(c10::DeviceIndex index)
    : GeneratorImpl(c10::Device(device_type(), index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void GeneratorState::set_current_seed(uint64_t seed) {
  seed_ = seed;
  counter_ = 0;
}

uint64_t GeneratorState::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void GeneratorState::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(state.numel() == sizeof(seed_) + sizeof(counter_), message_prefix(), "the state of a generator has ",
              sizeof(seed_) + sizeof(counter_), " bytes, not ", state.numel(), "; use a state of get_rng_state()");
  const auto* bytes = static_cast<const char*>(state.data());
  std::memcpy(&seed_, bytes, sizeof(seed_));
  std::memcpy(&counter_, bytes + sizeof(seed_), sizeof(counter_));
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorState::get_state() const {
  const at::Tensor state = at::empty({sizeof(seed_) + sizeof(counter_)}, at::kByte);
  auto* bytes = static_cast<char*>(state.mutable_data_ptr());
  std::memcpy(bytes, &seed_, sizeof(seed_));
  std::memcpy(bytes + sizeof(seed_), &counter_, sizeof(counter_));
  return state.getIntrusivePtr();
}

uint64_t GeneratorState::take(uint64_t blocks) {
  const uint64_t first = counter_;
  counter_ += blocks;
  return first;
}

GeneratorState* GeneratorState::clone_impl() const {
  auto* copy = new GeneratorState(device().index());
  copy->seed_ = seed_;
  copy->counter_ = counter_;
  return copy;
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* const all = [] {
    auto* generators = new std::deque<at::Generator>;
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) generators->push_back(at::make_generator<GeneratorState>(i));
    return generators;
  }();
  if (index < 0) index = current_device();
  device_handle(index);  // raises an error if the index does not exist
  return (*all)[static_cast<size_t>(index)];
}

PhiloxRange take_philox(const std::optional<at::Generator>& generator, c10::DeviceIndex index, int64_t words) {
  auto* state = at::get_generator_or_default<GeneratorState>(generator, default_generator(index));
  const std::lock_guard lock(state->mutex_);
  return {state->current_seed(), state->take((static_cast<uint64_t>(words) + 3) / 4)};
}

}  // namespace backplane_torch
