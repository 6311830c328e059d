// SPDX-License-Identifier: Apache-2.0
// Tests map_row() with packs, a loop over a row that otherwise only GPUs execute. The threads of a group run one after
// the other.
#define SIMT_HOST 1
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/nest.h"

namespace {

// Elements with guard values around them. The first element is `first` elements after a multiple of 16 bytes.
template <class T>
class Elements {
 public:
  Elements(uint32_t first, uint32_t count) : first_(first), memory_(kGuard + first + count + kGuard) {
    std::memset(memory_.data(), 0x5A, memory_.size() * sizeof(T));
    before_ = memory_;
  }
  T* data() { return memory_.data() + kGuard + first_; }
  T& operator[](uint32_t i) { return data()[i]; }
  // Returns whether the memory outside the first `count` elements is unchanged.
  bool is_intact(uint32_t count) const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= kGuard + first_ && i < kGuard + first_ + count;
      if (!inside && memory_[i] != before_[i]) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kGuard = 16;
  uint32_t first_;
  std::vector<T> memory_;
  std::vector<T> before_;
};

template <class Body>
void run_group(uint32_t group_size, const Body& body) {
  for (uint32_t i = 0; i < group_size; ++i) {
    host_thread = {0, 1, group_size, i};
    body();
  }
}

// The team that consists of all threads of a group.
Team own_team() { return {local_id(), group_size()}; }

constexpr uint32_t kCounts[] = {1, 7, 8, 15, 16, 17, 64, 130, 517};

template <class Out, class In>
void expect_conversion() {
  for (const uint32_t count : kCounts) {
    for (uint32_t out_first = 0; out_first < 3; ++out_first) {
      for (uint32_t in_first = 0; in_first < 17; ++in_first) {
        Elements<Out> out(out_first, count);
        Elements<In> in(in_first, count);
        for (uint32_t i = 0; i < count; ++i) in[i] = static_cast<In>(3 * i + 1);
        run_group(64, [&] {
          map_row(
              own_team(), count, out.data(), [](In x) { return static_cast<Out>(x + 1); },
              static_cast<const In*>(in.data()));
        });
        for (uint32_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], static_cast<Out>(static_cast<In>(3 * i + 1) + 1))
              << count << " " << out_first << " " << in_first;
        }
        ASSERT_TRUE(out.is_intact(count));
      }
    }
  }
}

TEST(MapRow, EachAlignmentAndSizeGivesTheSameElements) {
  expect_conversion<u8, u8>();
  expect_conversion<u16, u16>();
  expect_conversion<u32, u32>();
  expect_conversion<u64, u64>();
  expect_conversion<u8, u32>();
  expect_conversion<u64, u8>();
  expect_conversion<u32, u16>();
  expect_conversion<u16, u64>();
}

TEST(MapRow, ThreeOperandsOfTwoSizesMayHaveDifferentAlignments) {
  for (const uint32_t count : kCounts) {
    for (uint32_t first = 0; first < 64; ++first) {
      Elements<u32> out(first & 3, count), a(first >> 2 & 3, count), b(first >> 4 & 3, count);
      Elements<u8> which(first & 3, count);
      for (uint32_t i = 0; i < count; ++i) a[i] = i, b[i] = 1000 + i, which[i] = i % 3 == 0;
      run_group(32, [&] {
        map_row(
            own_team(), count, out.data(), [](u8 is_first, u32 x, u32 y) { return is_first != 0 ? x : y; },
            static_cast<const u8*>(which.data()), static_cast<const u32*>(a.data()), static_cast<const u32*>(b.data()));
      });
      for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(out[i], i % 3 == 0 ? i : 1000 + i) << count << " " << first;
      ASSERT_TRUE(out.is_intact(count));
    }
  }
}

TEST(MapRow, ARowMayBeFilledAndChangedInPlace) {
  for (uint32_t first = 0; first < 9; ++first) {
    Elements<u16> row(first, 100);
    run_group(32, [&] { map_row(own_team(), 100, row.data(), [] { return static_cast<u16>(7); }); });
    run_group(32, [&] {
      map_row(
          own_team(), 100, row.data(), [](u16 x) { return static_cast<u16>(x + 1); },
          static_cast<const u16*>(row.data()));
    });
    for (uint32_t i = 0; i < 100; ++i) ASSERT_EQ(row[i], 8);
    ASSERT_TRUE(row.is_intact(100));
  }
}

TEST(MapRow, AThreadProcessesAPackOfAlignedOperands) {
  Elements<u16> row(0, 512), shifted(1, 512);
  const auto first_thread = [](Elements<u16>& to, Elements<u16>& from) {
    for (uint32_t i = 0; i < 512; ++i) to[i] = 0, from[i] = 1;
    host_thread = {0, 1, 64, 0};
    map_row(
        own_team(), 512, to.data(), [](u16 x) { return x; }, static_cast<const u16*>(from.data()));
    std::vector<uint32_t> written;
    for (uint32_t i = 0; i < 64; ++i) {
      if (to[i] == 1) written.push_back(i);
    }
    return written;
  };
  Elements<u16> other(0, 512);
  EXPECT_EQ(first_thread(row, other), std::vector<uint32_t>({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(first_thread(shifted, other), std::vector<uint32_t>({0}));
}

struct Increment {
  typedef u16 Out;
  typedef u16 In;
  static u16 apply(u16 x, u32 by) { return static_cast<u16>(x + by); }
};

TEST(Teams, ProcessAllChunksOfShortRows) {
  // 37 rows of 40 elements, 48 elements apart. Two groups of 64 threads consist of teams of 8, 16 or 64 threads.
  constexpr uint32_t kRows = 37, kColumns = 40, kDistance = 48;
  for (const uint32_t team : {8u, 16u, 64u}) {
    for (const uint32_t chunk : {16u, 40u, 256u}) {
      Elements<u16> from(0, kRows * kDistance), to(0, kRows * kDistance);
      for (uint32_t i = 0; i < kRows * kDistance; ++i) from[i] = static_cast<u16>(i), to[i] = 0;
      RowParams p{};
      p.rank = 1;
      p.shape[0] = kRows;
      p.columns = kColumns;
      p.chunk = chunk;
      p.row_chunks = (kColumns + chunk - 1) / chunk;
      p.chunks = p.row_chunks * kRows;
      p.strides[0][0] = p.strides[1][0] = kDistance;
      p.option = 3;
      p.team = team;
      for (uint32_t group = 0; group < 2; ++group) {
        for (uint32_t i = 0; i < 64; ++i) {
          host_thread = {group, 2, 64, i};
          map1_rows<Increment>(reinterpret_cast<Pointer>(to.data()), reinterpret_cast<Pointer>(from.data()), p);
        }
      }
      for (uint32_t i = 0; i < kRows * kDistance; ++i) {
        ASSERT_EQ(to[i], i % kDistance < kColumns ? static_cast<u16>(i + 3) : 0) << team << " " << chunk << " " << i;
      }
    }
  }
}

}  // namespace
