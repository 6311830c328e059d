// SPDX-License-Identifier: Apache-2.0
// Formats tensors as text in the style of numpy, and as JSON.
#include <algorithm>

#include "values.hpp"

namespace tool {
namespace {

constexpr size_t kLineWidth = 118;

class Printer {
 public:
  Printer(const Values& values, size_t edge) : values_(values), edge_(edge), strides_(dense_strides(values.shape)) {
    visit(0, 0, [&](size_t index) { width_ = std::max(width_, text_of(index).size()); });
  }

  std::string text() {
    if (values_.shape.empty()) return text_of(0);
    write(0, 0);
    return std::move(out_);
  }

 private:
  std::string text_of(size_t index) const { return element_text(values_.dtype, values_.bits(index)); }
  bool elided(size_t dimension) const { return edge_ > 0 && static_cast<size_t>(values_.shape[dimension]) > 2 * edge_; }
  // Calls `each(position)` for each printed position of a dimension, and `gap()` once in place of
  // the omitted positions.
  template <class Each, class Gap>
  void positions(size_t dimension, Each each, Gap gap) const {
    const size_t extent = static_cast<size_t>(values_.shape[dimension]);
    for (size_t i = 0; i < extent; ++i) {
      if (elided(dimension) && i == edge_) {
        gap();
        i = extent - edge_;
      }
      each(i);
    }
  }
  template <class Each>
  void visit(size_t dimension, size_t offset, Each each) const {
    if (dimension == values_.shape.size()) return each(offset);
    positions(
        dimension, [&](size_t i) { visit(dimension + 1, offset + i * static_cast<size_t>(strides_[dimension]), each); },
        [] {});
  }

  void write(size_t dimension, size_t offset) {
    out_ += '[';
    bool first = true;
    const bool last = dimension + 1 == values_.shape.size();
    const auto separate = [&] {
      if (!first && last) {
        const size_t start = out_.rfind('\n') + 1;  // if there is no newline, npos + 1 is 0
        if (out_.size() - start + width_ + 2 > kLineWidth) {
          out_ += '\n';
          out_.append(dimension + 1, ' ');
        } else {
          out_ += ' ';
        }
      } else if (!first) {
        out_.append(values_.shape.size() - dimension - 1, '\n');
        out_.append(dimension + 1, ' ');
      }
      first = false;
    };
    positions(
        dimension,
        [&](size_t i) {
          separate();
          const size_t at = offset + i * static_cast<size_t>(strides_[dimension]);
          if (last) {
            fmt::format_to(std::back_inserter(out_), "{:>{}}", text_of(at), width_);
          } else {
            write(dimension + 1, at);
          }
        },
        [&] {
          separate();
          out_ += "...";
        });
    out_ += ']';
  }

  const Values& values_;
  size_t edge_;
  Extents strides_;
  size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string array_text(const Values& values, size_t threshold, size_t edge) {
  if (values.count() == 0) return fmt::format("[] (shape {})", shape_text(values.shape));
  return Printer(values, values.count() > threshold ? edge : 0).text();
}

Json array_json(const Values& values, size_t limit) {
  Json json = Json::array();
  for (size_t i = 0; i < std::min(values.count(), limit); ++i)
    json.push_back(element_json(values.dtype, values.bits(i)));
  return json;
}

}  // namespace tool
