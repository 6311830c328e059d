// SPDX-License-Identifier: Apache-2.0
// Defects that affect the host's thread or process: changed state, objects that outlive their
// owners, instances that share state.
#include <fcntl.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdlib>

#include "mutation.hpp"
#include "runtime.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace backplane::conformance::mutants {
namespace {

// A plan_create slot that also calls `kDo` on the caller's thread.
template <void (*kDo)()>
bp_status create_and(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  kDo();
  return status;
}
template <void (*kDo)()>
constexpr Mutation after_create() {
  return on_slot<&bp_device_api::plan_create, create_and<kDo>>();
}

void set_rounding() { std::fesetround(FE_UPWARD); }
void set_flushing() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040u);  // flush-to-zero and denormals-are-zero
#else
  std::fesetround(FE_TOWARDZERO);
#endif
}
void set_float_traps() { feenableexcept(FE_DIVBYZERO); }
void set_signal_mask() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}
void set_locale() { std::setlocale(LC_ALL, "C.UTF-8"); }
void set_thread_locale() {
  static const locale_t mine = newlocale(LC_ALL_MASK, "C", nullptr);
  uselocale(mine);
}
void set_directory() { (void)!chdir("/"); }
void set_handler() { std::signal(SIGUSR1, SIG_IGN); }
void leak_descriptor() { (void)!dup(STDOUT_FILENO); }
void leak_memory() { static_cast<volatile char*>(std::malloc(1 << 20))[4096] = 1; }

// Each device_open leaks a thread.
bp_status thread_leaked(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                        bp_error* error) {
  const bp_status status = honest_plugin().device_open(plugin, index, desc, out, error);
  if (status == BP_OK) std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
  return status;
}
// Opens a device as slowly as a driver that creates a context.
bp_status open_slowly_and_leak(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                               bp_error* error) {
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  leak_descriptor();
  return honest_plugin().device_open(plugin, index, desc, out, error);
}
bp_status query_starts_thread(const bp_host* host, const bp_plugin** out, bp_error* error) {
  const bp_status status = query_honest(host, out, error);
  if (status == BP_OK) std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
  return status;
}

// ---- The host's log

const bp_host* first_host = nullptr;
bp_status keeps_host(const bp_host* host, const bp_plugin** out, bp_error* error) {
  const bp_status status = query_honest(host, out, error);
  if (status == BP_OK && first_host == nullptr) first_host = host;
  return status;
}
bp_status open_and_log(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                       bp_error* error) {
  const bp_status status = honest_plugin().device_open(plugin, index, desc, out, error);
  if (status == BP_OK) first_host->log(first_host->context, BP_LOG_INFO, "mutant: a device is open");
  return status;
}
void shutdown_then_log(const bp_plugin* plugin) {
  honest_plugin().shutdown(plugin);
  first_host->log(first_host->context, BP_LOG_INFO, "mutant: is shut down");
}
bp_status keeps_last_host(const bp_host* host, const bp_plugin** out, bp_error* error) {
  const bp_status status = query_honest(host, out, error);
  if (status == BP_OK) first_host = host;
  return status;
}

// ---- Shared state of separate instances

std::mutex shared_mutex;
bp_device* shared_device = nullptr;
int shared_opens = 0;
bp_status open_shared(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                      bp_error* error) {
  const std::lock_guard lock(shared_mutex);
  if (shared_device != nullptr && out != nullptr) return *out = shared_device, ++shared_opens, BP_OK;
  const bp_status status = honest_plugin().device_open(plugin, index, desc, out, error);
  if (status == BP_OK) shared_device = *out, shared_opens = 1;
  return status;
}
void close_shared(bp_device* device) {
  const std::lock_guard lock(shared_mutex);
  if (--shared_opens > 0) return;
  shared_device = nullptr;
  kHonest.close(device);
}
bp_status open_once(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                    bp_error* error) {
  static std::atomic<int> opens{0};
  if (out == nullptr || opens.fetch_add(1) == 0) return honest_plugin().device_open(plugin, index, desc, out, error);
  *out = nullptr;
  return report(error, BP_UNAVAILABLE, "mutant: the device was open before");
}

void crash() { __builtin_trap(); }
bp_status crash_at_exit(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                        bp_error* error) {
  static const int registered = std::atexit(crash);
  (void)registered;
  return honest_plugin().device_open(plugin, index, desc, out, error);
}
void shutdown_once_crashes(const bp_plugin* plugin) {
  static std::atomic<int> ended{0};
  honest_plugin().shutdown(plugin);
  if (ended.fetch_add(1) > 0) std::abort();
}
void fork_handler() { std::abort(); }
bp_status abort_in_child(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                         bp_error* error) {
  static const int registered = pthread_atfork(nullptr, nullptr, fork_handler);
  (void)registered;
  return honest_plugin().device_open(plugin, index, desc, out, error);
}

template <auto kOpen>
constexpr Mutation on_open() {
  return {.plugin = [](bp_plugin& plugin) { plugin.device_open = kOpen; }};
}

}  // namespace

const Mutation defect::rounding_changed = after_create<set_rounding>();
const Mutation defect::flushing_changed = after_create<set_flushing>();
const Mutation defect::float_traps_enabled = after_create<set_float_traps>();
const Mutation defect::signal_mask_changed = after_create<set_signal_mask>();
const Mutation defect::locale_changed = after_create<set_locale>();
const Mutation defect::thread_locale_changed = after_create<set_thread_locale>();
const Mutation defect::directory_changed = after_create<set_directory>();
const Mutation defect::signal_handler_changed = after_create<set_handler>();
const Mutation defect::descriptor_leaked = after_create<leak_descriptor>();
const Mutation defect::memory_leaked = after_create<leak_memory>();
const Mutation defect::descriptor_leaked_slowly = on_open<open_slowly_and_leak>();
const Mutation defect::thread_leaked = on_open<mutants::thread_leaked>();
const Mutation defect::query_starts_thread{.query = mutants::query_starts_thread};
const Mutation defect::logs_to_first_host{.plugin = [](bp_plugin& plugin) { plugin.device_open = open_and_log; },
                                          .query = keeps_host};
const Mutation defect::logs_after_shutdown{.plugin = [](bp_plugin& plugin) { plugin.shutdown = shutdown_then_log; },
                                           .query = keeps_last_host};
const Mutation defect::opens_share_device{.plugin = [](bp_plugin& plugin) { plugin.device_open = open_shared; },
                                          .api = [](bp_device_api& api) { api.close = close_shared; }};
const Mutation defect::opens_once = on_open<open_once>();
const Mutation defect::crashes_at_exit = on_open<crash_at_exit>();
const Mutation defect::second_shutdown_crashes{
    .plugin = [](bp_plugin& plugin) { plugin.shutdown = shutdown_once_crashes; }};
const Mutation defect::aborts_in_forked_child = on_open<abort_in_child>();

}  // namespace backplane::conformance::mutants
