// SPDX-License-Identifier: Apache-2.0
#include "work_order.hpp"

namespace backplane::conformance {

size_t next_range(const std::deque<Work>& queue, uint32_t end, const std::set<uint32_t>& busy_ends) {
  size_t longest = 0, longest_count = 0;
  for (size_t begin = 0, next = 1; begin < queue.size(); begin = next++) {
    if (queue[begin].first == end) return begin;
    while (next < queue.size() && queue[next].first == queue[next - 1].last) ++next;
    if (next - begin > longest_count) longest = begin, longest_count = next - begin;
  }
  if (busy_ends.empty()) return 0;
  return busy_ends.contains(queue[longest].first) ? longest + longest_count / 2 : longest;
}

}  // namespace backplane::conformance
