// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include <barrier>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace backplane::conformance {

void in_threads(Context&, unsigned count, const std::function<void(unsigned)>& body) {
  std::barrier start(static_cast<ptrdiff_t>(count));
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (unsigned index = 0; index < count; ++index)
      threads.emplace_back([&, index] {
        start.arrive_and_wait();
        try {
          body(index);
        } catch (...) {
          const std::lock_guard guard(mutex);
          if (first == nullptr) first = std::current_exception();
        }
      });
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace backplane::conformance
