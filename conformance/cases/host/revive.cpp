// SPDX-License-Identifier: Apache-2.0
// Test cases for streams that the host library revives after a failure.
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kChecked = 16384;
constexpr uint64_t kPending = 8u << 20;  // enough that copies are pending when the stream fails

backplane::Buffer buffer_of(HostSide& side, uint64_t bytes) {
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = bytes;
  desc.stream = side.stream.get();
  return backplane::Buffer(side.device.get(), desc);
}

bp_status copy_bytes(const backplane::Stream& stream, const backplane::Buffer& to, const backplane::Buffer& from,
                     uint64_t count = kChecked) {
  return bph_copy(stream.get(), to.get(), 0, from.get(), 0, count, 0, nullptr);
}

void fail(const backplane::Stream& stream) {
  try {
    stream.enqueue([](bp_device*, bp_stream*) { throw backplane::Error(BP_EXECUTION_FAILED, "the case's failure"); });
  } catch (const backplane::Error& error) {
    if (error.status() != BP_EXECUTION_FAILED) throw;
  }
}

// Fails a stream while its copies are pending. The revived stream then copies through the same
// buffers. The second stream and an untouched buffer continue to work.
void work_continues(Context& context, const char* layers) {
  HostSide side(context, layers);
  const backplane::Stream other(side.device);
  const backplane::Buffer source = buffer_of(side, kPending), middle = buffer_of(side, kPending),
                          target = buffer_of(side, kChecked), kept = buffer_of(side, kChecked);
  const auto put = [&](const backplane::Buffer& to, const Bytes& data) {
    backplane::detail::call(bph_copy_in, side.stream.get(), to.get(), uint64_t{0},
                            static_cast<const void*>(data.data()), kChecked, uint32_t{0});
    side.stream.wait();
  };
  const auto get = [&](const backplane::Stream& stream, const backplane::Buffer& from) {
    Bytes got(kChecked);
    backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), from.get(), uint64_t{0},
                            kChecked, uint32_t{0});
    return got;
  };
  const Bytes untouched = noise(context, kChecked);
  put(kept, untouched);
  for (uint64_t round = 1; round <= 3; ++round) {
    for (int i = 0; i < 4; ++i) expect_ok(copy_bytes(side.stream, middle, source, kPending), {}, "bph_copy");
    fail(side.stream);
    context.require(copy_bytes(side.stream, target, middle) == BP_EXECUTION_FAILED, "a failed stream accepts a copy");
    side.stream.revive();
    const Bytes data = noise(context, kChecked);
    put(source, data);
    expect_ok(copy_bytes(side.stream, middle, source, kPending), {}, "bph_copy on the revived stream");
    expect_ok(copy_bytes(side.stream, target, middle), {}, "bph_copy on the revived stream");
    require_same(context, get(side.stream, target), data, "copies on the revived stream");
    require_same(context, get(other, kept), untouched, "a buffer that the failed stream did not use");
    const uint64_t revived = side.device.stats().streams_revived;
    context.require(revived == round, "the statistics count {} revived streams after {}", revived, round);
  }
  for (const std::string& line : side.log.lines())
    context.require(line.find("BP-VAL-") == std::string::npos, "the validation layer reports a violation: {}", line);
}

// A revival of a stream that has not failed only waits for the stream's work. The statistics must not count such a
// revival.
void healthy(Context& context) {
  HostSide side(context);
  const backplane::Buffer source = buffer_of(side, kPending), target = buffer_of(side, kPending);
  expect_ok(copy_bytes(side.stream, target, source, kPending), {}, "bph_copy");
  side.stream.revive();
  context.require(side.stream.wait(0), "bph_stream_revive returned before the stream's work ended");
  context.require(side.device.stats().streams_revived == 0, "the statistics count a stream that did not fail");
}

}  // namespace

void add_host_revive_cases(Catalogue& catalogue) {
  for (const char* layers : {"", "validation"}) {
    add_case(catalogue, fmt::format("host.revive.work_continues.{}", *layers == 0 ? "plain" : "layered"),
             {"BP-USE-055"}, [layers](Context& context) { work_continues(context, layers); });
  }
  add_case(catalogue, "host.revive.healthy", {"BP-USE-055"}, healthy);
}

}  // namespace backplane::conformance
