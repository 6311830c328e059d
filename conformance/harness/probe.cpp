// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "probes.hpp"

extern char** environ;

namespace backplane::conformance {

namespace {
constexpr const char* kMark = "--conformance-probe";
constexpr int64_t kLimitMs = 20'000;

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}
}  // namespace

ProbeEnd run_probe(const std::string& probe, const std::string& path, uint32_t device_index,
                   const std::string& argument) {
  std::string index = std::to_string(device_index), name = probe, library = path, flag = kMark, given = argument;
  char program[] = "/proc/self/exe";
  char* const arguments[] = {program, flag.data(), name.data(), library.data(), index.data(), given.data(), nullptr};
  pid_t child = 0;
  if (const int error = posix_spawn(&child, program, nullptr, nullptr, arguments, environ); error != 0)
    return {false, fmt::format("no process could be started: {}", std::strerror(error))};
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (passed > std::chrono::milliseconds(kLimitMs)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return {false, fmt::format("no end within {} seconds", kLimitMs / 1000)};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {WIFEXITED(status) && WEXITSTATUS(status) == kProbeSucceeded, end_text(status)};
}

void serve_probe(int argc, char** argv) {
  if (argc != 6 || std::string_view(argv[1]) != kMark) return;
  do_probe(argv[2], argv[3], static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10)), argv[5]);
}

}  // namespace backplane::conformance
