// SPDX-License-Identifier: Apache-2.0
// Calls each slot while the calling thread has an unusual but legal state. The slot must not change
// this state, and the results must not depend on it.
#include <pthread.h>
#include <unistd.h>

#include <bit>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstring>
#include <limits>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"
#include "harness/thread_state.hpp"

namespace backplane::conformance {

namespace {

// Sets an unusual thread state in the constructor, and restores the previous state in the
// destructor.
class OddState {
 public:
  OddState(int rounding, bool flush, bool block_signals, bool other_directory) : before_(ThreadState::now()) {
    std::fesetround(rounding);
#if defined(__SSE__)
    if (flush) _mm_setcsr(_mm_getcsr() | 0x8040u);  // flush-to-zero and denormals-are-zero
#else
    static_cast<void>(flush);
#endif
    if (block_signals) {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGUSR1);
      sigaddset(&set, SIGALRM);
      sigaddset(&set, SIGCHLD);
      pthread_sigmask(SIG_BLOCK, &set, nullptr);
    }
    if (other_directory) {
      if (setlocale(LC_ALL, "C.UTF-8") == nullptr) setlocale(LC_ALL, "POSIX");
      if (chdir("/") != 0) throw CaseEnd{Outcome::suspect, "the root directory cannot be entered"};
    }
  }
  OddState(const OddState&) = delete;
  OddState& operator=(const OddState&) = delete;
  ~OddState() { before_.restore(); }

 private:
  ThreadState before_;
};

struct State {
  const char* name;
  int rounding;
  bool flush, block_signals, other_directory;
};
constexpr State kStates[] = {
    {"plain", FE_TONEAREST, false, false, false},       {"rounding_up", FE_UPWARD, false, false, false},
    {"rounding_down", FE_DOWNWARD, true, false, false}, {"rounding_to_zero", FE_TOWARDZERO, true, true, false},
    {"elsewhere", FE_TONEAREST, true, true, true},
};

// Objects that the slot calls use.
struct Scene {
  explicit Scene(Context& given)
      : context(given),
        plugin(given.plugin()),
        device(given.device()),
        stream(device),
        event(device),
        from(device, 4096),
        to(device, 4096),
        neg(device, elementwise(BP_OP_NEG, BP_F32, 1024)) {}
  Context& context;
  Plugin& plugin;
  Device& device;
  Stream stream;
  Event event;
  Buffer from, to;
  Runner neg;
  unsigned char host[64] = {};
};

struct Step {
  const char* slot;
  void (*call)(Scene&);
};
const Step kSteps[] = {
    {"query_and_shutdown", [](Scene& s) { const Plugin other(s.context.path()); }},
    {"device_count", [](Scene& s) { s.plugin.device_count(); }},
    {"device_info", [](Scene& s) { s.plugin.device_info(s.context.device_index()); }},
    {"device_open_and_close", [](Scene& s) { const Device other(s.plugin, s.context.device_index()); }},
    {"get_interface",
     [](Scene& s) {
       if (s.plugin->get_interface != nullptr) s.plugin->get_interface(s.plugin.get(), s.device.get(), "bp.none", 1);
     }},
    {"memory_info",
     [](Scene& s) {
       bp_memory_info info = {};
       info.struct_size = sizeof(info);
       s.device->memory_info(s.device.get(), BP_MEMORY_DEVICE, &info, nullptr);
     }},
    {"buffer_create_and_destroy", [](Scene& s) { const Buffer made(s.device, 1u << 20); }},
    {"buffer_map",
     [](Scene& s) {
       for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED})
         if (s.device.offers(kind)) Buffer(s.device, 64, kind).map();
     }},
    {"stream_create_and_destroy", [](Scene& s) { const Stream made(s.device); }},
    {"stream_wait", [](Scene& s) { s.stream.wait(); }},
    {"event_create_and_destroy", [](Scene& s) { const Event made(s.device); }},
    {"event_record", [](Scene& s) { s.stream.record(s.event.get()); }},
    {"stream_wait_event", [](Scene& s) { s.stream.wait_event(s.event.get()); }},
    {"event_wait", [](Scene& s) { s.event.wait(); }},
    {"copy", [](Scene& s) { s.stream.copy(s.to.get(), 0, s.from.get(), 0, 4096); }},
    {"transfers",
     [](Scene& s) {
       s.device.write(s.from.get(), 0, s.host, sizeof(s.host));
       s.device.read(s.from.get(), 0, s.host, sizeof(s.host));
     }},
    {"plan_create_and_destroy",
     [](Scene& s) {
       for (const bph_op_info& op : primitives()) {
         OpDesc desc = sample(op, usual_dtype(op));
         bp_plan_info info = {};
         info.struct_size = sizeof(info);
         bp_plan* plan = nullptr;
         if (s.device->plan_create(s.device.get(), &desc.get(), &plan, &info, nullptr) == BP_OK)
           s.device->plan_destroy(s.device.get(), plan);
       }
     }},
    {"plan_execute", [](Scene& s) { s.neg.enqueue(s.stream.get(), {{s.from.get()}}, {{s.to.get()}}); }},
    {"refusals",
     [](Scene& s) {
       bp_buffer_desc desc = {};
       desc.struct_size = sizeof(desc);
       bp_buffer* none = nullptr;
       ErrorRecord error;
       s.device->buffer_create(s.device.get(), &desc, &none, &error);
       bp_event* event = nullptr;
       s.device->event_create(s.device.get(), 0x80, &event, &error);
     }},
};

void left_as_found(Context& context, const Step& step, const State& state) {
  Scene scene(context);
  std::string change;
  {
    const OddState odd(state.rounding, state.flush, state.block_signals, state.other_directory);
    const ThreadState before = ThreadState::now();
    for (int i = 0; i < 3 && change.empty(); ++i) {
      step.call(scene);
      change = before.changed_since();
    }
  }
  scene.stream.wait();
  context.require(change.empty(), "{}: {}", step.slot, change);
}

// Checks that the calling thread's floating-point modes do not affect results. Another
// rounding mode would change some of the tested sums. The other sums are subnormal and would become
// 0 in a mode that flushes subnormals.
void results_do_not_depend(Context& context, const State& state) {
  Device& device = context.device();
  const std::vector<float> a = {1.0F, -1.0F, 1.0F, 0x1p-149F, 0x1.fffffep0F, -0x1p-149F, 3.0F, 1e30F};
  const std::vector<float> b = {0x1p-24F, -0x1p-24F, 0x1.8p-24F, 0x1p-149F, 0x1p-24F, -0x1p-148F, 0x1p-23F, 1e22F};
  std::vector<float> expected(8);
  for (size_t i = 0; i < 8; ++i)
    expected[i] = static_cast<float>(static_cast<double>(a[i]) + static_cast<double>(b[i]));
  Buffer left(device, 32), right(device, 32), out(device, 32);
  upload(left, a);
  upload(right, b);
  std::vector<float> got(8);
  {
    const OddState odd(state.rounding, state.flush, state.block_signals, state.other_directory);
    Stream stream(device);
    Runner add(device, elementwise(BP_OP_ADD, BP_F32, 8));
    add.enqueue(stream.get(), {{left.get()}, {right.get()}}, {{out.get()}});
    device.read(out.get(), 0, got.data(), 32, stream.get());
  }
  for (size_t i = 0; i < 8; ++i) {
    if (device.has(BP_CAP_FTZ_F32) && std::abs(expected[i]) < std::numeric_limits<float>::min()) continue;
    context.require(
        std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(expected[i]),
        "{:a} + {:a} gave {:a}, expected {:a}: the result depends on the calling thread's floating-point control", a[i],
        b[i], got[i], expected[i]);
  }
}

}  // namespace

void add_thread_state_cases(Catalogue& catalogue) {
  for (const State& state : kStates) {
    for (const Step& step : kSteps)
      add_case(catalogue, fmt::format("runtime.thread_state.{}.{}", step.slot, state.name), {"BP-THR-001"},
               [&step, &state](Context& context) { left_as_found(context, step, state); });
    add_case(catalogue, fmt::format("runtime.thread_state.results.{}", state.name), {"BP-THR-003"},
             [&state](Context& context) { results_do_not_depend(context, state); });
  }
}

}  // namespace backplane::conformance
