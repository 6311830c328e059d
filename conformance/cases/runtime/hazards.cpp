// SPDX-License-Identifier: Apache-2.0
// Tests two commands on one buffer: write after read, read after write and write after write. The commands are on one
// stream, or on two streams that an event orders. Before the first command, the case enqueues slow work of the first
// command's kind, which delays the first command. A device that does not order the commands then runs the second
// command too early.
#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kHazardBytes = 4096;
constexpr uint64_t kSlowBytes = 2u << 20;

enum class Access { copy_in, copy_out, copy, from_host, to_host, execute, fill };
struct Command {
  Access access;
  bool writes;  // true if the command writes the shared buffer, false if it reads the buffer
  const char* name;
};
constexpr Command kCommands[] = {{Access::copy_out, false, "copy_out"},
                                 {Access::copy, false, "copy_from"},
                                 {Access::to_host, false, "copy_to_host"},
                                 {Access::execute, false, "execute_from"},
                                 {Access::copy_in, true, "copy_in"},
                                 {Access::copy, true, "copy_to"},
                                 {Access::from_host, true, "copy_of_host"},
                                 {Access::execute, true, "execute_to"},
                                 {Access::fill, true, "fill"}};

bool is_pageable(Access access) { return access == Access::copy_in || access == Access::copy_out; }
bool is_mapped(Access access) { return access == Access::from_host || access == Access::to_host; }

Bytes inverted(Bytes data) {
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(~byte);
  return data;
}

// A command, and the buffers that it uses in addition to the shared buffer.
class Side {
 public:
  Side(Context& context, const Command& command, uint64_t count)
      : context_(context),
        device_(context.device()),
        command_(command),
        other_(device_, count,
               is_mapped(command.access) && device_.offers(BP_MEMORY_HOST) ? BP_MEMORY_HOST : BP_MEMORY_DEVICE),
        host_(count),
        invert_(device_, elementwise(BP_OP_BITNOT, BP_U8, static_cast<int64_t>(count))),
        fill_(device_, elementwise(BP_OP_FILL, BP_U8, static_cast<int64_t>(count))) {}

  // Creates new data for a writer, or overwrites the target of a reader.
  void prepare() {
    host_ = noise(context_, host_.size());
    value_ = static_cast<unsigned char>(1 + context_.below(255));
    upload(other_, host_);
  }
  void enqueue(Stream& stream, Buffer& subject) {
    ErrorRecord error;
    bp_buffer* const it = subject.get();
    switch (command_.access) {
      case Access::copy_in:
        return expect_ok(device_->copy_in(device_.get(), stream.get(), it, 0, host_.data(), host_.size(), &error),
                         error, "copy_in");
      case Access::copy_out:
        return expect_ok(device_->copy_out(device_.get(), stream.get(), host_.data(), it, 0, host_.size(), &error),
                         error, "copy_out");
      case Access::execute:
        return command_.writes ? invert_.enqueue(stream.get(), {{other_.get()}}, {{it}})
                               : invert_.enqueue(stream.get(), {{it}}, {{other_.get()}});
      case Access::fill:
        return fill_.enqueue(stream.get(), {}, {{it}}, {value_});
      default:
        return command_.writes ? stream.copy(it, 0, other_.get(), 0, host_.size())
                               : stream.copy(other_.get(), 0, it, 0, host_.size());
    }
  }
  // Returns the contents of the shared buffer after this command, which must be a writer.
  Bytes written() const {
    return command_.access == Access::execute ? inverted(host_)
           : command_.access == Access::fill  ? Bytes(host_.size(), value_)
                                              : host_;
  }
  // Returns the bytes that this command read from the shared buffer. The command must be a reader.
  Bytes seen() const {
    if (command_.access == Access::copy_out) return host_;
    Bytes got = download<unsigned char>(other_, host_.size());
    return command_.access == Access::execute ? inverted(std::move(got)) : got;
  }

 private:
  Context& context_;
  Device& device_;
  Command command_;
  Buffer other_;
  Bytes host_;
  unsigned char value_ = 0;
  Runner invert_, fill_;
};

// A case can depend on one extension only. A case with pageable copies therefore uses DEVICE memory
// if the device has no HOST memory.
void need(Context& context, const Command& first, const Command& second) {
  Device& device = context.device();
  const bool pageable = is_pageable(first.access) || is_pageable(second.access);
  if (pageable && (device->copy_in == nullptr || device->copy_out == nullptr))
    context.not_claimed("the device has no copy_in and copy_out");
  if (!pageable && (is_mapped(first.access) || is_mapped(second.access))) need_kind(context, BP_MEMORY_HOST);
}

void in_order(Context& context, const Command& first, const Command& second, bool across) {
  need(context, first, second);
  Device& device = context.device();
  Stream stream(device), other(device);
  Event event(device);
  Buffer subject(device, kHazardBytes), busy(device, kSlowBytes);
  Side slow(context, first, kSlowBytes), earlier(context, first, kHazardBytes), later(context, second, kHazardBytes);
  slow.prepare();
  upload(busy, Bytes(kSlowBytes, 0x3C));
  const std::string what = fmt::format("{} and then {}{}", first.name, second.name, across ? " after an event" : "");
  for (const unsigned units : {4u, 24u}) {
    Bytes content = noise(context, kHazardBytes);
    upload(subject, content);
    earlier.prepare();
    later.prepare();
    for (unsigned i = 0; i < units; ++i) slow.enqueue(stream, busy);
    earlier.enqueue(stream, subject);
    if (across) {
      stream.record(event.get());
      other.wait_event(event.get());
    }
    later.enqueue(across ? other : stream, subject);
    if (across) other.wait();
    stream.wait();
    if (!first.writes) require_same(context, earlier.seen(), content, "what the first read: " + what);
    if (first.writes) content = earlier.written();
    if (!second.writes) require_same(context, later.seen(), content, "what the second read: " + what);
    if (second.writes) content = later.written();
    require_same(context, download<unsigned char>(subject, kHazardBytes), content, what);
  }
}

}  // namespace

void add_hazard_cases(Catalogue& catalogue) {
  for (const Command& first : kCommands)
    for (const Command& second : kCommands) {
      if (!first.writes && !second.writes) continue;
      for (const bool across : {false, true})
        add_case(
            catalogue,
            fmt::format("runtime.hazard.{}.{}_then_{}", across ? "across_an_event" : "on_one_stream", first.name,
                        second.name),
            {"BP-STR-012", across ? "BP-EVT-003" : "BP-STR-001"},
            [&first, &second, across](Context& context) { in_order(context, first, second, across); },
            is_pageable(first.access) || is_pageable(second.access) ? "PAGEABLE_COPY"
            : is_mapped(first.access) || is_mapped(second.access)   ? kind_extension(BP_MEMORY_HOST)
                                                                    : "");
    }
}

}  // namespace backplane::conformance
