// SPDX-License-Identifier: Apache-2.0
// Formats one event of a trace as JSON.
#include "layers/trace/event.hpp"

#include <iterator>

#include "base/op_table.hpp"
#include "base/strided_view.hpp"
#include "dispatch/validate.hpp"

namespace backplane::core::layers {

namespace {

template <class Out>
Out quoted(Out out, std::string_view text) {
  *out++ = '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *out++ = '\\';
      *out++ = c;
    } else if (byte < 0x20 || byte > 0x7e) {
      out = fmt::format_to(out, "\\u{:04x}", byte);
    } else {
      *out++ = c;
    }
  }
  *out++ = '"';
  return out;
}

uint64_t distinct_bytes(const bp_tensor_desc& view) noexcept {
  if (view.dtype == 0 || (view.flags & BP_DESC_IMMEDIATE) != 0) return 0;
  uint64_t count = 1;
  for (uint32_t d = 0; d < view.rank && d < BP_MAX_RANK; ++d) {
    if (view.shape[d] == 0) return 0;
    if (view.strides[d] != 0) count *= static_cast<uint64_t>(view.shape[d]);
  }
  return count * dtype_bytes(view.dtype);
}

}  // namespace

TraceEvent::TraceEvent(char phase, std::string_view name, Track track) {
  auto out = quoted(fmt::format_to(std::back_inserter(text_), R"({{"ph":"{}","name":)", phase), name);
  fmt::format_to(out, R"(,"pid":{},"tid":{})", track.group, track.line);
}

TraceEvent& TraceEvent::time(double begin) {
  fmt::format_to(std::back_inserter(text_), R"(,"ts":{:.3f})", begin);
  return *this;
}
TraceEvent& TraceEvent::span(double begin, double end) {
  fmt::format_to(std::back_inserter(text_), R"(,"ts":{:.3f},"dur":{:.3f})", begin, end - begin);
  return *this;
}
TraceEvent& TraceEvent::category(std::string_view category) {
  quoted(fmt::format_to(std::back_inserter(text_), R"(,"cat":)"), category);
  return *this;
}
TraceEvent& TraceEvent::flow(uint64_t id) {
  fmt::format_to(std::back_inserter(text_), R"(,"id":{})", id);
  return *this;
}

void TraceEvent::key(std::string_view name) {
  fmt::format_to(std::back_inserter(text_), R"({}"{}":)", any_arg_ ? "," : R"(,"args":{)", name);
  any_arg_ = true;
}
TraceEvent& TraceEvent::arg(std::string_view name, uint64_t value) {
  key(name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}
TraceEvent& TraceEvent::arg(std::string_view name, std::string_view value) {
  key(name);
  quoted(std::back_inserter(text_), value);
  return *this;
}
TraceEvent& TraceEvent::arg(std::string_view name, const bp_tensor_desc* views, uint32_t count) {
  key(name);
  auto out = std::back_inserter(text_);
  *out++ = '[';
  for (uint32_t i = 0; i < count; ++i) {
    const bp_tensor_desc& view = views[i];
    if (i != 0) *out++ = ',';
    if (view.dtype == 0) {
      out = fmt::format_to(out, "\"absent\"");
      continue;
    }
    const int64_t* end = view.shape + view.rank;
    const bool immediate = (view.flags & BP_DESC_IMMEDIATE) != 0;
    out = fmt::format_to(out, "\"{}[{}]{}", dtype_name(view.dtype), fmt::join(view.shape, end, ","),
                         immediate ? " immediate" : "");
    if (!immediate && !is_dense(view)) {
      out = fmt::format_to(out, " strides [{}]", fmt::join(view.strides, view.strides + view.rank, ","));
    }
    *out++ = '"';
  }
  *out++ = ']';
  return *this;
}

std::string_view TraceEvent::text() {
  text_.append(std::string_view(any_arg_ ? "}}" : "}"));
  return {text_.data(), text_.size()};
}

std::string_view op_name(uint32_t op, char (&room)[32]) {
  const OpRow* row = op_row(op);
  if (row != nullptr) return row->name;
  const auto end = fmt::format_to_n(room, sizeof(room), "operator {:#x}", op);
  return {room, end.size};
}

uint64_t bytes_moved(const bp_op_desc& desc) noexcept {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < desc.input_count; ++i) bytes += distinct_bytes(desc.inputs[i]);
  const OpRow* row = op_row(desc.op);
  const uint64_t times = row != nullptr && reads_outputs(*row) ? 2 : 1;
  for (uint32_t o = 0; o < desc.output_count; ++o) bytes += times * distinct_bytes(desc.outputs[o]);
  return bytes;
}

}  // namespace backplane::core::layers
