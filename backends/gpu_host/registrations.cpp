// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/registrations.hpp"

#include <unistd.h>

namespace backplane::gpu_host {

kit::Status Registrations::add(const Stack& stack, std::byte* address, uint64_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(address) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(address) + bytes + page - 1) / page * page;
  std::lock_guard lock(mutex_);
  if (const auto known = find(address); known != ranges_.end() && address + bytes <= known->second.end) {
    ++known->second.imports;
    return {};
  }
  auto* const begin = reinterpret_cast<std::byte*>(first);
  if (kit::Status status = stack.register_host(begin, end - first); !status.ok()) return status;
  ranges_[begin] = {reinterpret_cast<std::byte*>(end), 1};
  return {};
}

kit::Status Registrations::remove(const Stack& stack, std::byte* address) {
  std::lock_guard lock(mutex_);
  const auto known = find(address);
  if (known == ranges_.end() || --known->second.imports != 0) return {};
  std::byte* const begin = known->first;
  ranges_.erase(known);
  return stack.unregister_host(begin);
}

std::map<std::byte*, Registrations::Range>::iterator Registrations::find(std::byte* address) {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return ranges_.end();
  --next;
  return address < next->second.end ? next : ranges_.end();
}

}  // namespace backplane::gpu_host
