// SPDX-License-Identifier: Apache-2.0
// Test cases for shared objects: streams that threads share, HOST buffers of another open device,
// copies across streams, imported memory and buffer addresses.
#include <algorithm>
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

backplane::Buffer make(const backplane::Device& device, const backplane::Stream* stream, uint64_t bytes,
                       uint32_t kind = BP_MEMORY_DEVICE) {
  auto desc = backplane::detail::sized<bph_buffer_desc>();
  desc.kind = kind;
  desc.bytes = bytes;
  desc.stream = stream == nullptr ? nullptr : stream->get();
  return backplane::Buffer(device.get(), desc);
}
void put(const backplane::Stream& stream, const backplane::Buffer& buffer, const Bytes& bytes, uint32_t flags) {
  backplane::detail::call(bph_copy_in, stream.get(), buffer.get(), uint64_t{0}, static_cast<const void*>(bytes.data()),
                          uint64_t{bytes.size()}, flags);
}
Bytes get(const backplane::Stream& stream, const backplane::Buffer& buffer, uint64_t bytes) {
  Bytes got(bytes);
  backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0}, bytes,
                          uint32_t{0});
  return got;
}

void threads_share_a_stream(Context& context) {
  HostSide side(context);
  const backplane::Stream shared(side.device, 0, BPH_STREAM_SHARED);
  in_threads(context, 4, [&](unsigned index) {
    const backplane::Buffer own = make(side.device, &shared, 4096);
    const backplane::Buffer copy = make(side.device, &shared, 4096);
    for (unsigned round = 0; round < 40; ++round) {
      const Bytes data(4096, static_cast<unsigned char>(index * 40 + round));
      put(shared, own, data, BPH_COPY_SOURCE_FREE);
      backplane::detail::call(bph_copy, shared.get(), copy.get(), uint64_t{0}, own.get(), uint64_t{0}, uint64_t{4096},
                              uint32_t{0});
      if (round % 4 == 0) shared.wait();
      require_same(context, get(shared, copy, 4096), data, "what a thread copied on a stream that others use too");
    }
  });
}

void source_is_free(Context& context, uint64_t bytes) {
  HostSide side(context);
  const backplane::Buffer buffer = make(side.device, &side.stream, bytes);
  const backplane::Buffer copy = make(side.device, &side.stream, bytes);
  for (unsigned round = 0; round < 16; ++round) {
    const Bytes data = noise(context, bytes);
    Bytes source = data;
    for (int i = 0; i < 4; ++i)  // keeps the stream busy while the next copy is enqueued
      backplane::detail::call(bph_copy, side.stream.get(), copy.get(), uint64_t{0}, buffer.get(), uint64_t{0}, bytes,
                              uint32_t{0});
    put(side.stream, buffer, source, BPH_COPY_SOURCE_FREE);
    std::fill(source.begin(), source.end(), static_cast<unsigned char>(0xEE));
    require_same(context, get(side.stream, buffer, bytes), data, "a copy whose source changed after the call");
  }
}

// Opens the plugin's device twice. The second device owns a HOST buffer, and a stream of the first
// device copies from and to this buffer.
void host_buffer_of_another_open(Context& context) {
  need_kind(context, BP_MEMORY_HOST);
  HostSide side(context);
  const backplane::Device other = side.plugin.open(context.device_index());
  const backplane::Stream other_stream(other);
  constexpr uint64_t bytes = 70000;
  const backplane::Buffer host = make(other, nullptr, bytes, BP_MEMORY_HOST);
  const backplane::Buffer own = make(side.device, &side.stream, bytes);
  const Bytes data = noise(context, bytes);
  std::memcpy(host.map(), data.data(), bytes);
  backplane::detail::call(bph_copy, side.stream.get(), own.get(), uint64_t{0}, host.get(), uint64_t{0}, bytes,
                          uint32_t{0});
  require_same(context, get(side.stream, own, bytes), data, "a HOST buffer of another open device, read");
  const Bytes back = noise(context, bytes);
  put(side.stream, own, back, BPH_COPY_SOURCE_FREE);
  backplane::detail::call(bph_copy, side.stream.get(), host.get(), uint64_t{0}, own.get(), uint64_t{0}, bytes,
                          uint32_t{0});
  side.stream.wait();
  const auto* const written = static_cast<const unsigned char*>(host.map());
  require_same(context, Bytes(written, written + bytes), back, "a HOST buffer of another open device, written");
}

void across(Context& context, uint64_t bytes, bool one_device) {
  HostSide side(context);
  const backplane::Device other = one_device ? backplane::Device() : side.plugin.open(context.device_index());
  const backplane::Device& other_stream = one_device ? side.device : other;
  const backplane::Stream stream(other_stream);
  const backplane::Buffer source = make(other_stream, &stream, bytes), target = make(side.device, &side.stream, bytes);
  for (int round = 0; round < 4; ++round) {
    const Bytes data = noise(context, bytes);
    put(stream, source, data, BPH_COPY_SOURCE_FREE);
    backplane::detail::call(bph_copy_across, side.stream.get(), target.get(), uint64_t{0}, stream.get(), source.get(),
                            uint64_t{0}, bytes, uint32_t{0});
    // This overwrite of the source must not affect the enqueued copy.
    put(stream, source, Bytes(bytes, 0xEE), BPH_COPY_SOURCE_FREE);
    require_same(context, get(side.stream, target, bytes), data, "a copy across streams");
  }
}

void imports_one_memory(Context& context) {
  HostSide side(context);
  std::vector<unsigned char> memory(3 * 65536);
  void* begin = memory.data();
  size_t room = memory.size();
  auto* const page = static_cast<unsigned char*>(std::align(4096, 65536, begin, room));
  int released = 0;
  try {
    const backplane::Buffer imported = backplane::Buffer::import_host(
        side.device.get(), page, 65536, [](void* count) { ++*static_cast<int*>(count); }, &released);
    context.require(imported.map() == page, "imported memory is mapped elsewhere");
    context.require(imported.info().address == reinterpret_cast<uint64_t>(page), "imported memory has another address");
    const backplane::Buffer own = make(side.device, &side.stream, 65536);
    const Bytes data = noise(context, 65536), back = noise(context, 65536);
    std::memcpy(page, data.data(), 65536);
    backplane::detail::call(bph_copy, side.stream.get(), own.get(), uint64_t{0}, imported.get(), uint64_t{0},
                            uint64_t{65536}, uint32_t{0});
    require_same(context, get(side.stream, own, 65536), data, "imported memory, read by the device");
    put(side.stream, own, back, 0);
    backplane::detail::call(bph_copy, side.stream.get(), imported.get(), uint64_t{0}, own.get(), uint64_t{0},
                            uint64_t{65536}, uint32_t{0});
    side.stream.wait();
    require_same(context, Bytes(page, page + 65536), back, "imported memory, written by the device");
  } catch (const backplane::Error& error) {
    if (error.status() != BP_UNSUPPORTED) throw;
    context.require(released == 0, "a refused import called the owner back");
    context.not_claimed("the plugin does not import this memory");
  }
  side.stream.wait();
  side.device.trim();
  context.require(released == 1, "the owner of imported memory was called back {} times", released);
}

void addresses_lead_back(Context& context, uint32_t kind) {
  need_kind(context, kind);
  HostSide side(context);
  std::vector<backplane::Buffer> all;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (unsigned i = 0; i < 40; ++i) {
    all.push_back(make(side.device, &side.stream, 1 + context.below(i % 10 == 0 ? 3000000 : 5000), kind));
    const bph_buffer_info info = all.back().info();
    context.require(info.address != 0, "a buffer of {} bytes has no address", info.bytes);
    ranges.emplace_back(info.address, info.address + info.bytes);
    bph_device* device = nullptr;
    bph_buffer* buffer = nullptr;
    uint64_t offset = 0;
    const uint64_t within = context.below(info.bytes);
    backplane::detail::call(bph_buffer_from_address, info.address + within, &device, &buffer, &offset);
    context.require(device == side.device.get() && buffer == all.back().get() && offset == within,
                    "the address {:#x} of a buffer at {:#x} leads elsewhere", info.address + within, info.address);
    if (kind != BP_MEMORY_DEVICE)
      context.require(info.address == reinterpret_cast<uint64_t>(all.back().map()),
                      "a mapped buffer is at another address");
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    context.require(ranges[i - 1].second <= ranges[i].first, "two buffers share the address {:#x}", ranges[i].first);
}

}  // namespace

void add_host_sharing_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run,
                       std::string_view extension = "") {
    add_case(catalogue, "host.sharing." + std::move(what), {requirement}, std::move(run), extension);
  };
  add("threads_share_a_stream", "BP-USE-020", threads_share_a_stream);
  for (const uint64_t bytes : {64u, 65537u, 5242881u})
    add(fmt::format("source_of_{}_bytes_is_free", bytes), "BP-USE-021",
        [bytes](Context& context) { source_is_free(context, bytes); });
  add("host_buffer_of_another_open", "BP-USE-022", host_buffer_of_another_open, kind_extension(BP_MEMORY_HOST));
  for (const uint64_t bytes : {1u, 65537u, 9437185u}) {
    add(fmt::format("across_streams_of_{}_bytes", bytes), "BP-USE-023",
        [bytes](Context& context) { across(context, bytes, true); });
    add(fmt::format("across_opens_of_{}_bytes", bytes), "BP-USE-023",
        [bytes](Context& context) { across(context, bytes, false); });
  }
  add("imports_one_memory", "BP-USE-024", imports_one_memory, "IMPORT");
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind)
    add(
        fmt::format("{}_addresses_lead_back", kind_name(kind)), "BP-USE-025",
        [kind](Context& context) { addresses_lead_back(context, kind); }, kind_extension(kind));
}

}  // namespace backplane::conformance
