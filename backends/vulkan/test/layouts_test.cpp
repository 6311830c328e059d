// SPDX-License-Identifier: Apache-2.0
// Tests that elementwise operators process every element in every layout. The layout and the
// alignment select the kernel.
#include <cstring>

#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

constexpr int64_t kRoom = 4096;  // number of elements per buffer
constexpr float kUntouched = -1;

// Strides of an operand, in elements. The row stride is columns * row_by_column + row_more, and the column stride is
// `column`. An immediate has no strides.
struct Layout {
  const char* name;
  int64_t row_by_column, row_more, column;
  bool immediate = false;
};
constexpr Layout kLayouts[] = {{"packed", 1, 0, 1},       {"rows apart", 1, 4, 1},     {"rows oddly apart", 1, 3, 1},
                               {"every second", 2, 0, 2}, {"a column", 0, 1, 0},       {"a row", 0, 0, 1},
                               {"one", 0, 0, 0},          {"immediate", 0, 0, 0, true}};

class Layouts : public OnDevice {
 protected:
  // Adds operands `a` and `b` with shape [rows, columns] and the given layouts, and checks the
  // result. Each operand begins `offset` elements after the start of its buffer.
  void add(const Layout (&layouts)[3], int64_t rows, int64_t columns, uint64_t offset) {
    bp_operand operands[3] = {};
    bp_tensor_desc views[3] = {};
    for (int i = 0; i < 3; ++i) {
      const Layout& layout = layouts[i];
      bp_tensor_desc& view = views[i];
      view.dtype = BP_F32;
      view.rank = 2;
      view.shape[0] = rows;
      view.shape[1] = columns;
      view.strides[0] = columns * layout.row_by_column + layout.row_more;
      view.strides[1] = layout.column;
      for (int64_t k = 0; k < kRoom; ++k) data(i)[k] = i == 2 ? kUntouched : static_cast<float>(k % 251 + 1000 * i);
      if (layout.immediate) {
        view.flags = BP_DESC_IMMEDIATE;
        const float value = 7.0f;
        std::memcpy(&operands[i].immediate, &value, sizeof(value));
      } else {
        operands[i] = whole(buffers_[i]);
        operands[i].offset = offset * sizeof(float);
      }
    }
    std::vector<float> expected(kRoom, kUntouched);
    const auto position = [&](int i, int64_t row, int64_t column) {
      return static_cast<std::size_t>(row * views[i].strides[0] + column * views[i].strides[1]) + offset;
    };
    const auto value = [&](int i, int64_t row, int64_t column) {
      return layouts[i].immediate ? 7.0f : data(i)[position(i, row, column)];
    };
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        expected[position(2, row, column)] = value(0, row, column) + value(1, row, column);
    }
    bp_op_desc desc = rig_.desc;
    desc.inputs = views;
    desc.outputs = views + 2;
    const auto status = execute_once(*rig_.device, *rig_.stream, desc, operands);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::vector<float>(data(2), data(2) + kRoom), expected)
        << layouts[0].name << " + " << layouts[1].name << " to " << layouts[2].name << ", " << rows << " x " << columns
        << " from element " << offset;
  }

  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(rig_.open(instance).ok());
    for (Device::Buffer*& buffer : buffers_)
      buffer = need(rig_.device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kRoom * sizeof(float), 0}));
  }
  void TearDown() override {
    for (Device::Buffer* buffer : buffers_) {
      if (buffer != nullptr) rig_.device->destroy(buffer);
    }
  }

 private:
  float* data(int i) const { return reinterpret_cast<float*>(buffers_[i]->memory->mapped); }
  Rig rig_;
  Device::Buffer* buffers_[3] = {};
};

TEST_F(Layouts, AllFindTheirElements) {
  for (const Layout& a : kLayouts) {
    for (const Layout& b : kLayouts) {
      for (const int64_t columns : {1, 4, 6, 28, 36, 260}) {
        add({a, b, kLayouts[0]}, 5, columns, 0);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(Layouts, OutputsLieApart) {
  for (std::size_t out = 1; out < 4; ++out) {
    for (const int64_t columns : {3, 32, 64, 268}) add({kLayouts[0], kLayouts[4], kLayouts[out]}, 7, columns, 0);
  }
}

TEST_F(Layouts, AddressesNeedNotBeAligned) {
  for (const Layout& b : kLayouts) {
    for (const uint64_t offset : {1, 2, 3, 4}) add({kLayouts[0], b, kLayouts[0]}, 3, 64, offset);
  }
}

TEST_F(Layouts, DenseOperandsOfAnyLength) {
  for (int64_t count = 1; count <= 70; ++count) add({kLayouts[0], kLayouts[0], kLayouts[0]}, 1, count, 0);
  for (const int64_t count : {511, 513, 2047, 2050, 4093}) {
    add({kLayouts[0], kLayouts[7], kLayouts[0]}, 1, count, 0);
    add({kLayouts[7], kLayouts[0], kLayouts[0]}, 1, count, 0);
  }
}

}  // namespace

}  // namespace backplane::vulkan::test
