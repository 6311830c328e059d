// SPDX-License-Identifier: Apache-2.0
// The worker process runs cases one after another, and reports the start and end of each case.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "channel.hpp"
#include "run_case.hpp"
#include "slot_watch.hpp"

// Reports leaks on standard error. The symbol is null unless the program is built with a leak
// sanitizer.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" int __lsan_do_recoverable_leak_check() __attribute__((weak));

namespace backplane::conformance {

namespace {

constexpr int kExitLeaked = 23;  // exit status after leaks, as in the leak sanitizer

bool receive(int fd, Work& work) {
  for (;;) {
    const ssize_t count = read(fd, &work, sizeof(work));
    if (count < 0 && errno == EINTR) continue;
    return count == sizeof(work);  // the socket keeps the boundaries of messages, so no read is partial
  }
}

// Returns whether the plugin left a child process running, or did not reap an exited child. Such a
// process would disturb a host that waits for its own children. If a forked child returned from the
// case's function, the child reports that and exits. This function therefore waits up to 200 ms for
// a child to exit.
bool left_a_child() {
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
  for (int round = 0; round < 200 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0; ++round)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return true;
}

}  // namespace

void work(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options,
          WorkerEnds ends) {
  keep_pages_untouched();
  const pid_t self = getpid();
  report_slots_to(ends.page);
  Session session{options.target.path, options.target.device_index, options.seed, nullptr, nullptr};
  const auto notify = [&](const Message& message) {
    if (!send(ends.report, message)) _exit(3);
  };
  Work part;
  while (receive(ends.work, part)) {
    for (uint32_t index = part.first; index < part.last; ++index) {
      if (file_bytes(ends.output) != 0 && ftruncate(ends.output, 0) != 0) _exit(3);
      notify({Message::Kind::started, index});
      Result result = run_case(session, catalogue[selection[index]]);
      if (getpid() != self) {
        notify({Message::Kind::foreign, index});
        _exit(0);
      }
      const uint64_t printed = file_bytes(ends.output);
      if (!is_failure(result.outcome) && left_a_child()) {
        result = {Outcome::fail, "a child process remains, which a host that waits for its own children would find"};
      } else if (!is_failure(result.outcome) && printed > options.limits.output_bytes) {
        result = {Outcome::fail, fmt::format("the plugin wrote {} bytes to standard output or error; the limit is {} "
                                             "per case. Use the host's log slot",
                                             printed, options.limits.output_bytes)};
      }
      notify({Message::Kind::finished, index, result});
      // The supervisor starts a new process for the remaining cases.
      if (is_failure(result.outcome)) _exit(0);
    }
  }
  notify({Message::Kind::closing, 0});
  session.close();
  // The leak sanitizer checks for leaks at a normal exit, but a worker ends with _exit.
  if (__lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0) _exit(kExitLeaked);
  _exit(0);
}

}  // namespace backplane::conformance
