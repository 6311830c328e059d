// SPDX-License-Identifier: Apache-2.0
// Host copies (images) of the buffers of one execution. If operands share an image, guard bands of canary bytes
// surround each operand.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// The position of a view in an image. An image is the host copy of one buffer.
struct Region {
  std::string label{};  // name in messages, for example "input 0"
  uint32_t dtype = 0;
  View view{};
  size_t image = 0;
  uint64_t element_0 = 0;       // byte offset of element 0 from the start of the image
  uint64_t begin = 0, end = 0;  // range of the bytes that the view spans
  bool none = false;            // true if the operand has no memory, for example an immediate
  bool scratch = false;         // true for a workspace, whose bytes between begin and end may change
};

class Arena {
 public:
  // If `shared` is true, one image contains all operands. Otherwise each operand has its own image, of exactly the
  // operand's size. `alignment` is the alignment of a buffer's start in bytes.
  Arena(Random& random, bool shared, uint64_t alignment) : random_(random), shared_(shared), alignment_(alignment) {}

  // Reserves memory for a view and fills the memory with canaries. If the operator reads the view and `dtype` is a
  // float, all canaries are NaN. Otherwise the canaries are random bytes. Returns the index of the region.
  size_t allocate(std::string label, uint32_t dtype, const View& view, bool is_read);
  size_t allocate_bytes(std::string label, uint64_t bytes);
  // Adds a region that shares the memory of region `other`.
  size_t share(std::string label, size_t other);

  const Region& region(size_t index) const { return regions_[index]; }
  uint64_t alignment() const { return alignment_; }
  std::vector<std::vector<unsigned char>>& images() { return images_; }

  // Returns a pointer to the first byte of a region in `images`, which have the layout of this
  // arena.
  unsigned char* bytes_of(std::vector<std::vector<unsigned char>>& images, size_t region) const {
    return images[regions_[region].image].data() + regions_[region].begin;
  }

  void put(size_t region, const oracle::Tensor& dense) { put(images_, region, dense); }
  oracle::Tensor get(size_t region) const { return get(images_, region); }
  oracle::Tensor get(const std::vector<std::vector<unsigned char>>& images, size_t region) const;
  void put(std::vector<std::vector<unsigned char>>& images, size_t region, const oracle::Tensor& dense) const;
  // Describes a byte of `got` that differs from this arena's images, outside the elements of the regions in `written`
  // and outside workspaces. Returns "" if there is no such byte.
  std::string stray_write(const std::vector<std::vector<unsigned char>>& got, const std::vector<size_t>& written) const;

 private:
  std::string location_text(size_t image, uint64_t byte) const;
  uint64_t reserve(size_t& image, uint64_t bytes, bool nan, uint64_t alignment);

  Random& random_;
  bool shared_;
  uint64_t alignment_;
  std::vector<Region> regions_{};
  std::vector<std::vector<unsigned char>> images_{};
};

}  // namespace backplane::conformance::numeric
