// SPDX-License-Identifier: Apache-2.0
#include "leak.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

namespace backplane::conformance {

namespace {

// Number of samples per round. The floor of a figure is the minimum of its samples, which excludes
// temporary allocations.
constexpr size_t kSamples = 4;
// The cycle does not leak if no floor rises in this number of cycles. These cycles form at least
// two and at most four rounds.
constexpr size_t kQuietCycles = 256;
// Maximum number of cycles, unless 64 rounds have more cycles. After so many cycles, a pool has
// stopped growing or grows more slowly.
constexpr size_t kMostCycles = 32768;
constexpr size_t kMostRounds = 64;
constexpr auto kPatience = std::chrono::seconds(8);  // later rounds start within this time after the first round
// Minimum number of rounds after the first round. leak_of() needs four rounds, and judges eight rounds better.
constexpr size_t kLeastRounds = 4;
constexpr size_t kGoodRounds = 8;  // if fewer rounds fit into kPatience, later rounds have fewer cycles
constexpr auto kCheap = std::chrono::milliseconds(1);  // if a round takes less time, later rounds have more cycles
constexpr unsigned kMostTimes = 16;                    // maximum factor by which the number of cycles grows

// A resource that the process uses, and the thresholds for its growth.
struct Figure {
  const char* unit;
  uint64_t (*of)(const Footprint& print);
  uint64_t quiet;  // growth per round that is ignored, because arenas and stacks cause it
  uint64_t least;  // minimum growth of a leak in the last quarter of the rounds
  uint64_t most;   // total growth at which no more rounds are needed
};
constexpr Figure kFigures[] = {
    {"file descriptors", [](const Footprint& print) { return uint64_t{print.descriptors}; }, 0, 1, 256},
    {"threads", [](const Footprint& print) { return uint64_t{print.threads}; }, 0, 1, 256},
    {"bytes of heap", [](const Footprint& print) { return print.heap_bytes; }, 0, 256, 256u << 20},
    {"bytes of memory", [](const Footprint& print) { return print.resident_bytes; }, 32u << 10, 512u << 10, 256u << 20},
};
constexpr size_t kCounted = 2;  // number of figures that sanitizers do not affect

uint32_t entries_of(const char* directory) {
  uint32_t count = 0;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(directory, error); at != std::filesystem::directory_iterator();
       at.increment(error))
    ++count;
  return error ? UINT32_MAX : count;  // an error means that the process has no descriptor left
}

uint64_t resident() {
  unsigned long long total = 0, pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%llu %llu", &total, &pages);
  std::fclose(file);
  return read == 2 ? pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

// Whether a sanitizer delays the release of memory, which makes the memory figures meaningless.
constexpr bool kQuarantined =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

}  // namespace

Footprint Footprint::now() {
  Footprint print = {};
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 heap = mallinfo2();
  print.heap_bytes = heap.uordblks + heap.hblkhd;
#endif
  print.resident_bytes = resident();
  print.descriptors = entries_of("/proc/self/fd");
  print.threads = entries_of("/proc/self/task");
  return print;
}

namespace {

// Waits up to 50 ms until the process has at most `threads` threads, and returns its footprint. A
// thread disappears from /proc a moment after it is joined.
Footprint settled(uint32_t threads) {
  Footprint print = Footprint::now();
  for (int i = 0; i < 50 && print.threads > threads; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    print = Footprint::now();
  }
  return print;
}

// Runs rounds of cycles and records how much each round raised the floor of each figure.
class Rounds {
 public:
  Rounds(unsigned count, const std::function<void()>& cycle, size_t distinct)
      : count_(count), distinct_(distinct), cycle_(cycle) {}

  // Runs rounds until no figure grows, or until a limit is reached. Returns a description of the
  // leak, or "" if there is none.
  std::string leak() {
    const auto start = std::chrono::steady_clock::now();
    const Floors begin = floors_of(Footprint::now());
    // The vector reserves its memory first, so that its own growth is not measured.
    growths_.reserve(std::max(kMostRounds, kMostCycles / count_));
    Floors marks = round();
    const auto warm = std::chrono::steady_clock::now();
    for (unsigned times = kMostTimes; times > 1; --times)
      if ((warm - start) * times <= kCheap) {
        count_ *= times;
        break;
      }
    const size_t rounds = std::max(kMostRounds, kMostCycles / count_);
    size_t quiet_rounds = std::clamp<size_t>(kQuietCycles / count_, 2, 4);
    if (const std::chrono::duration<double> most = kPatience / kGoodRounds; warm - start > most) {
      const size_t quiet_cycles = quiet_rounds * count_;
      count_ = std::max(1u, static_cast<unsigned>(count_ * (most / (warm - start))));
      quiet_rounds = quiet_cycles / count_;
    }
    size_t quiet = 0;
    while (growths_.size() < rounds && !enough_ &&
           (growths_.size() < kLeastRounds || std::chrono::steady_clock::now() - warm < kPatience)) {
      const Floors floors = round();
      Floors growth = {};
      bool grew = false;
      for (size_t i = 0; i < kFigureCount; ++i) {
        growth[i] = floors[i] > marks[i] ? floors[i] - marks[i] : 0;
        marks[i] = std::max(marks[i], floors[i]);
        grew = grew || growth[i] > kFigures[i].quiet;
        enough_ = enough_ || (growths_.size() >= 4 && marks[i] > begin[i] + kFigures[i].most);
      }
      growths_.push_back(growth);
      quiet = grew ? 0 : quiet + 1;
      if (quiet == quiet_rounds) return {};
    }
    for (size_t i = 0; i < kFigureCount; ++i)
      if (std::string text = leak_of(i); !text.empty()) return text;
    return {};
  }

 private:
  static constexpr size_t kFigureCount = kQuarantined ? kCounted : std::size(kFigures);
  using Floors = std::array<uint64_t, kFigureCount>;

  static Floors floors_of(const Footprint& print) {
    Floors floors;
    for (size_t i = 0; i < kFigureCount; ++i) floors[i] = kFigures[i].of(print);
    return floors;
  }

  Floors round() {
    Floors floors;
    floors.fill(UINT64_MAX);
    const uint32_t threads = Footprint::now().threads;
    for (size_t sample = 0; sample < kSamples; ++sample) {
      for (size_t at = count_ * sample / kSamples; at < count_ * (sample + 1) / kSamples; ++at) cycle_();
      const Floors current = floors_of(settled(threads));
      for (size_t i = 0; i < kFigureCount; ++i) floors[i] = std::min(floors[i], current[i]);
    }
    return floors;
  }

  // Compares the growth in the last quarter of the rounds with the growth in the second and the third
  // quarter. A pool grows more slowly with time, but a leak does not.
  std::string leak_of(size_t figure) const {
    const size_t rounds = growths_.size(), quarter = rounds / 4;
    // A cache may still grow if some cycles have not yet run for the first time before the last quarter.
    if (figure >= kCounted && !enough_ && (rounds - quarter) * count_ < distinct_) return {};
    // Number of rounds in the last quarter in which the figure grew. Rare growth is not a leak,
    // because it comes from the C library or is random.
    size_t growing = 0;
    for (size_t i = rounds - quarter; i < rounds; ++i) growing += growths_[i][figure] > kFigures[figure].quiet ? 1 : 0;
    const auto sum = [&](size_t number) {
      uint64_t all = 0;
      for (size_t i = 0; i < quarter; ++i) all += growths_[rounds - (4 - number) * quarter + i][figure];
      return all;
    };
    // In few rounds, one allocation of a library may be most of the growth, so memory must have grown in each quarter.
    if (figure >= kCounted && quarter < 4 && (sum(1) == 0 || sum(2) == 0)) return {};
    const uint64_t last = sum(3), earlier = std::max(sum(1), sum(2));
    if (last < kFigures[figure].least || last < earlier / 4 * 3 || growing < (quarter + 1) / 2) return {};
    return fmt::format(
        "{} {} remain after the last {} of {} cycles, and the growth has not slowed: a pool stops growing, but a leak "
        "does not",
        last, kFigures[figure].unit, quarter * count_, rounds * count_);
  }

  unsigned count_;  // number of cycles per round
  const size_t distinct_;
  bool enough_ = false;  // a figure has grown so much that more rounds are not needed
  const std::function<void()>& cycle_;
  std::vector<Floors> growths_{};
};

}  // namespace

void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle,
                    size_t distinct) {
  if (const std::string leak = Rounds(count, cycle, distinct).leak(); !leak.empty())
    context.leaked("{}: {}", what, leak);
}

}  // namespace backplane::conformance
