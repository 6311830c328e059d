// SPDX-License-Identifier: Apache-2.0
#include "bench/device_contestant.hpp"

#include <algorithm>
#include <cstring>

#include "bench/target.hpp"
#include "measure.hpp"

namespace tool {
namespace {

constexpr uint64_t kSharedBytes = 1 << 20;  // smaller copies use one thread, which is then faster than several

Buffer buffer_of(const Device& device, const Stream& stream, uint64_t bytes, uint32_t kind = BP_MEMORY_DEVICE,
                 uint64_t alignment = 0) {
  bph_buffer_desc desc = sized<bph_buffer_desc>();
  desc.alignment = alignment;
  desc.kind = kind;
  desc.bytes = bytes;
  desc.stream = stream.get();
  return Buffer(device.get(), desc);
}

template <class One>
double timed(const Stream& stream, uint32_t calls, bool wait_each, One&& one) {
  return timed_ns([&] {
    for (uint32_t i = 0; i < calls; ++i) {
      one();
      if (wait_each || i + 1 == calls) call(bph_stream_wait, stream.get(), kWaitNs);
    }
  });
}

}  // namespace

OperatorContestant::OperatorContestant(const Device& device, const OpCase& op, const CaseData& data, uint64_t flags)
    : device_(device), stream_(device), views_(op) {
  views_.call.flags = flags;
  const auto upload = [&](const HostBlock& block, bph_tensor& view) {
    Buffer buffer = buffer_of(device_, stream_, block.bytes());
    if (block.bytes() != 0) {
      call(bph_copy_in, stream_.get(), buffer.get(), uint64_t{0}, static_cast<const void*>(block.data()),
           uint64_t{block.bytes()}, uint32_t{0});
    }
    view.buffer = buffer.get();
    buffers_.push_back(std::move(buffer));
  };
  for (size_t i = 0; i < data.inputs.size(); ++i) upload(data.inputs[i], views_.inputs[i]);
  for (size_t i = 0; i < data.outputs.size(); ++i) upload(data.outputs[i], views_.outputs[i]);
  call(bph_stream_wait, stream_.get(), kWaitNs);
}

void OperatorContestant::pack(uint32_t input) {
  auto info = sized<bph_pack_info>();
  call(bph_pack_query, device_.get(), &views_.call, input, &info);
  Buffer buffer = buffer_of(device_, stream_, info.bytes, BP_MEMORY_DEVICE, info.alignment);
  bph_tensor packed{};
  call(bph_pack, stream_.get(), &views_.call, input, buffer.get(), uint64_t{0}, &packed);
  call(bph_stream_wait, stream_.get(), kWaitNs);
  views_.inputs[input] = packed;
  buffers_.push_back(std::move(buffer));
}

double OperatorContestant::time(uint32_t calls, bool wait_each) {
  return timed(stream_, calls, wait_each, [&] { call(bph_execute, stream_.get(), &views_.call); });
}

void OperatorContestant::read_outputs(std::vector<HostBlock>& outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].bytes() == 0) continue;
    call(bph_copy_out, stream_.get(), static_cast<void*>(outputs[i].data()), buffers_[views_.inputs.size() + i].get(),
         uint64_t{0}, uint64_t{outputs[i].bytes()}, uint32_t{0});
  }
}

bph_support OperatorContestant::support() const {
  bph_support support = sized<bph_support>();
  call(bph_device_supports, device_.get(), &views_.call, &support);
  return support;
}

CopyContestant::CopyContestant(const Device& device, uint64_t bytes)
    : stream_(device),
      half_(std::max<uint64_t>(bytes / 2, 1)),
      from_(buffer_of(device, stream_, half_)),
      to_(buffer_of(device, stream_, half_)) {
  const HostBlock zeros(half_);
  call(bph_copy_in, stream_.get(), from_.get(), uint64_t{0}, static_cast<const void*>(zeros.data()), half_,
       uint32_t{0});
  call(bph_stream_wait, stream_.get(), kWaitNs);
}

double CopyContestant::time(uint32_t calls, bool wait_each) {
  return timed(stream_, calls, wait_each, [&] {
    call(bph_copy, stream_.get(), to_.get(), uint64_t{0}, from_.get(), uint64_t{0}, half_, uint32_t{0});
  });
}

MemcpyContestant::MemcpyContestant(uint64_t bytes, int threads)
    : from_(std::max<uint64_t>(bytes / 2, 1)),
      to_(std::max<uint64_t>(bytes / 2, 1)),
      parts_(bytes < kSharedBytes ? 1 : threads),
      begin_(parts_),
      end_(parts_) {
  try {
    for (int part = 1; part < parts_; ++part) {
      helpers_.emplace_back([this, part] {
        for (begin_.arrive_and_wait(); !ended_.load(); begin_.arrive_and_wait()) {
          copy_part(part);
          end_.arrive_and_wait();
        }
      });
    }
    // If a thread cannot start, ends the threads that have started. These threads wait at begin_ for parts_ arrivals,
    // so arrive() makes the arrivals of this thread and of the threads that did not start.
  } catch (...) {
    ended_ = true;
    (void)begin_.arrive(parts_ - static_cast<std::ptrdiff_t>(helpers_.size()));
    throw;
  }
}

MemcpyContestant::~MemcpyContestant() {
  ended_ = true;
  if (parts_ > 1) begin_.arrive_and_wait();
}

void MemcpyContestant::copy_part(int part) {
  const auto at = [&](int which) {
    return from_.bytes() * static_cast<size_t>(which) / static_cast<size_t>(parts_) / 64 * 64;
  };
  const size_t begin = at(part), end = part + 1 == parts_ ? from_.bytes() : at(part + 1);
  std::memcpy(to_.data() + begin, from_.data() + begin, end - begin);
  asm volatile("" : : "r"(to_.data()) : "memory");  // prevents the compiler from removing the copies
}

double MemcpyContestant::time(uint32_t calls, bool) {
  return timed_ns([&] {
    for (uint32_t i = 0; i < calls; ++i) {
      if (parts_ > 1) begin_.arrive_and_wait();
      copy_part(0);
      if (parts_ > 1) end_.arrive_and_wait();
    }
  });
}

}  // namespace tool
