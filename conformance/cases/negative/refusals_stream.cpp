// SPDX-License-Identifier: Apache-2.0
// Illegal calls to the stream and event slots.
#include "cases/negative/refusals.hpp"
#include "cases/support/guarded.hpp"

namespace backplane::conformance {

namespace {

bp_status create_event(Context& context, uint32_t flags, bp_error* error) {
  Device& device = context.device();
  auto* event = poisoned<bp_event>();
  const bp_status status = device->event_create(device.get(), flags, &event, error);
  if (status == BP_OK && event != nullptr) device->event_destroy(device.get(), event);
  return require_null(context, status, event, "event_create");
}

bp_status elapsed(Context& context, const Event& begin, const Event& end, bp_error* error) {
  Device& device = context.device();
  int64_t ns = 0;
  return device->event_elapsed(device.get(), begin.get(), end.get(), &ns, error);
}

void need_timing(Context& context) {
  Device& device = context.device();
  if (device.has(BP_CAP_TIMING)) {
    context.require(device->event_elapsed != nullptr, "the device has BP_CAP_TIMING and no event_elapsed");
    return;
  }
  ErrorRecord error;
  const bp_status status = create_event(context, BP_EVENT_TIMING, &error);
  expect_status(status, error, "event_create without BP_CAP_TIMING", {BP_UNSUPPORTED});
  context.not_claimed("the device has no BP_CAP_TIMING; event_create refuses BP_EVENT_TIMING");
}

}  // namespace

std::vector<Refusal> stream_refusals() {
  std::vector<Refusal> all;
  all.push_back(
      {"stream_create", "unknown_tail", {BP_UNSUPPORTED}, "BP-SIZE-002", [](Context& context, bp_error* error) {
         Device& device = context.device();
         const bp_stream_desc known = {sizeof(bp_stream_desc), 0};
         const GuardedStruct<bp_stream_desc> desc(sizeof(known) + 64, known);
         desc.bytes()[sizeof(known) + 17] = 0x80;
         auto* stream = poisoned<bp_stream>();
         const bp_status status = device->stream_create(device.get(), desc.get(), &stream, error);
         if (status == BP_OK && stream != nullptr) device->stream_destroy(device.get(), stream);
         return require_null(context, status, stream, "stream_create");
       }});
  for (uint32_t bit = 1; bit < 32; bit += 5) {
    all.push_back({"event_create",
                   fmt::format("unknown_flag_{}", bit),
                   {BP_UNSUPPORTED},
                   "BP-EVT-009",
                   [bit](Context& context, bp_error* error) { return create_event(context, 1u << bit, error); }});
  }
  all.push_back({"event_create", "all_flags", {BP_UNSUPPORTED}, "BP-EVT-009", [](Context& context, bp_error* error) {
                   return create_event(context, UINT32_MAX, error);
                 }});
  const auto add_elapsed = [&](const char* what, auto refused) {
    all.push_back({.slot = "event_elapsed",
                   .what = what,
                   .expected = {BP_INVALID_ARGUMENT},
                   .requirement = "BP-EVT-012",
                   .call = std::move(refused),
                   .extension = "TIMING"});
  };
  add_elapsed("never_recorded", [](Context& context, bp_error* error) {
    need_timing(context);
    const Event begin(context.device(), BP_EVENT_TIMING), end(context.device(), BP_EVENT_TIMING);
    return elapsed(context, begin, end, error);
  });
  add_elapsed("end_never_recorded", [](Context& context, bp_error* error) {
    need_timing(context);
    const Event begin(context.device(), BP_EVENT_TIMING), end(context.device(), BP_EVENT_TIMING);
    Stream stream(context.device());
    stream.record(begin.get());
    stream.wait();
    return elapsed(context, begin, end, error);
  });
  for (const bool first : {true, false}) {
    add_elapsed(first ? "begin_without_timing" : "end_without_timing", [first](Context& context, bp_error* error) {
      need_timing(context);
      const Event begin(context.device(), first ? 0 : BP_EVENT_TIMING);
      const Event end(context.device(), first ? BP_EVENT_TIMING : 0);
      Stream stream(context.device());
      stream.record(begin.get());
      stream.record(end.get());
      stream.wait();
      return elapsed(context, begin, end, error);
    });
  }
  return all;
}

}  // namespace backplane::conformance
