// SPDX-License-Identifier: Apache-2.0
// Test cases for the plugin's effects on the process: exit, fork, signal handlers, file
// descriptors, and several hosts.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/op_desc.hpp"
#include "harness/probe.hpp"
#include "harness/probes.hpp"

namespace backplane::conformance {

namespace {

void exits(Context& context, const char* probe) {
  const ProbeEnd end = run_probe(probe, context.path(), context.device_index());
  context.require(end.ok, "the process of the probe {} ended with {}", probe, end.how);
}

// Forks while the stream may be busy. The child process only exits, and the work of the parent
// process must continue.
void forks(Context& context, bool busy) {
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  Buffer from(device, 4096), to(device, 4096);
  for (int round = 0; round < 4; ++round) {
    const Bytes data = noise(context, 4096);
    upload(from, data);
    if (busy) delay.enqueue(stream, 3000);
    stream.copy(to.get(), 0, from.get(), 0, 4096);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    context.require(child > 0, "the process cannot fork");
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    context.require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child that did nothing ended with {} {}",
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    stream.wait();
    require_same(context, download<unsigned char>(to, 4096), data, "work that was pending over a fork");
  }
  require_healthy(context);
}

// Creates an instance, uses it, and shuts it down.
void workout(Context& context) {
  Plugin plugin(context.path());
  Device device(plugin, context.device_index());
  Stream stream(device);
  Event event(device);
  Buffer from(device, 4096), to(device, 4096);
  stream.copy(to.get(), 0, from.get(), 0, 4096);
  stream.record(event.get());
  event.wait();
  require_healthy(context);
}

// The harness checks the signal handlers before and after each case. So this case only has to use
// an instance.
void signal_handlers_stay(Context& context) { workout(context); }

// Sends signals to the thread that waits for the device. The waits must still succeed.
void takes_signals(Context& context) {
  static volatile std::sig_atomic_t caught = 0;
  caught = 0;
  struct sigaction mine = {}, before = {};
  mine.sa_handler = [](int) { caught = caught + 1; };
  sigaction(SIGUSR2, &mine, &before);
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  Event event(device);
  const pthread_t self = pthread_self();
  std::exception_ptr failure;
  {
    std::jthread sender([self](const std::stop_token& stop) {
      for (int i = 0; i < 200 && !stop.stop_requested(); ++i) {
        pthread_kill(self, SIGUSR2);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    try {
      for (int round = 0; round < 4; ++round) {
        delay.enqueue(stream, 3000);
        stream.record(event.get());
        event.wait();
        stream.wait();
      }
    } catch (...) {
      failure = std::current_exception();
    }
  }
  sigaction(SIGUSR2, &before, nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
  require_healthy(context);
}

// Checks that the host's file descriptors keep their numbers, files and positions.
void descriptors_stay(Context& context) {
  std::array<int, 8> own{};
  for (int& fd : own) fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  std::array<struct stat, 8> before{};
  for (size_t i = 0; i < own.size(); ++i) {
    fstat(own[i], &before[i]);
    lseek(own[i], static_cast<off_t>(i), SEEK_SET);
  }
  std::string change;
  try {
    workout(context);
  } catch (const CaseEnd& end) {
    change = end.message;
  }
  for (size_t i = 0; i < own.size(); ++i) {
    struct stat after = {};
    if (fstat(own[i], &after) != 0 || after.st_ino != before[i].st_ino ||
        lseek(own[i], 0, SEEK_CUR) != static_cast<off_t>(i))
      change = fmt::format("descriptor {} of the host is not what it was", own[i]);
    close(own[i]);
  }
  context.require(change.empty(), "{}", change);
}

void environment_stays(Context& context) {
  const auto read_environment = [] {
    std::vector<std::string> all;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) all.emplace_back(*at);
    return all;
  };
  const mode_t mask = umask(022);
  umask(mask);
  const std::vector<std::string> before = read_environment();
  workout(context);
  const mode_t after = umask(mask);
  context.require(after == mask, "the file mode mask was {:o} and is {:o}", mask, after);
  context.require(read_environment() == before, "the environment was changed");
}

// Checks that each instance logs to its own host, and never to the host of an instance that was
// shut down.
void logs_to_its_own_host(Context& context) {
  LogHost& of_the_worker = context.plugin().host();
  const uint64_t before = of_the_worker.count();
  const Library library(context.path());
  LogHost first, second;
  ErrorRecord error;
  const bp_plugin* one = nullptr;
  const bp_plugin* other = nullptr;
  const auto work = [&](const bp_plugin* instance) {
    bp_device* device = nullptr;
    ErrorRecord failure;
    expect_status(instance->device_open(instance, context.device_index(), nullptr, &device, &failure), failure,
                  "device_open", {BP_OK});
    OpDesc unknown(BP_OP_LIMIT - 1);
    bp_plan_info info = {};
    info.struct_size = sizeof(info);
    instance->device_api->plan_create(device, &unknown.get(), nullptr, &info, &failure);
    instance->device_api->close(device);
  };
  expect_status(library.query(&first.table, &one, &error), error, BP_PLUGIN_QUERY_SYMBOL, {BP_OK});
  work(one);
  expect_status(library.query(&second.table, &other, &error), error, BP_PLUGIN_QUERY_SYMBOL, {BP_OK});
  const uint64_t of_first = first.count();
  work(other);
  context.require(first.count() == of_first, "the second instance logged to the first one's host: {}",
                  first.lines().empty() ? "" : first.lines().back());
  one->shutdown(one);
  const uint64_t at_the_end = first.count();
  work(other);
  other->shutdown(other);
  context.require(first.count() == at_the_end, "a line was logged to a host whose instance had ended: {}",
                  first.lines().empty() ? "" : first.lines().back());
  context.require(of_the_worker.count() == before, "an instance logged to a host that is not its own: {}",
                  of_the_worker.lines().empty() ? "" : of_the_worker.lines().back());
  for (LogHost* host : {&first, &second})
    for (const std::string& line : host->lines()) context.require(is_text(line), "a log line is not UTF-8 text");
}

// Uses two hosts with one device each. The copies of both hosts are pending at once.
void two_hosts(Context& context) {
  Plugin first(context.path()), second(context.path());
  Device one(first, context.device_index()), other(second, context.device_index());
  Stream of_one(one), of_other(other);
  constexpr uint64_t bytes = 1u << 16;
  Buffer a(one, bytes), b(one, bytes), c(other, bytes), d(other, bytes);
  for (int round = 0; round < 16; ++round) {
    const Bytes left = noise(context, bytes), right = noise(context, bytes);
    upload(a, left);
    upload(c, right);
    of_one.copy(b.get(), 0, a.get(), 0, bytes);
    of_other.copy(d.get(), 0, c.get(), 0, bytes);
    of_other.wait();
    of_one.wait();
    require_same(context, download<unsigned char>(b, bytes), left, "the first host's work during the second's");
    require_same(context, download<unsigned char>(d, bytes), right, "the second host's work during the first's");
  }
}

}  // namespace

void add_process_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.process." + std::move(what), std::move(requirements), std::move(run));
  };
  for (const ProbeRow& row : probe_rows())
    if (!row.by_host)
      add(fmt::format("exits.{}", row.name), {"BP-THR-006"},
          [name = row.name](Context& context) { exits(context, name); });
  add("forks.idle", {"BP-THR-005"}, [](Context& context) { forks(context, false); });
  add("forks.busy", {"BP-THR-005"}, [](Context& context) { forks(context, true); });
  add("signal_handlers_stay", {"BP-THR-008"}, signal_handlers_stay);
  add("takes_signals", {"BP-THR-008"}, takes_signals);
  add("descriptors_stay", {"BP-THR-009"}, descriptors_stay);
  add("environment_stays", {"BP-THR-009"}, environment_stays);
  add("logs_to_its_own_host", {"BP-THR-004", "BP-THR-007"}, logs_to_its_own_host);
  add("two_hosts", {"BP-THR-007"}, two_hosts);
}

}  // namespace backplane::conformance
