// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "channel.hpp"

namespace backplane::conformance {

int new_output() {
  const int output = memfd_create("output", MFD_CLOEXEC);
  fcntl(output, F_SETFL, O_APPEND);
  return output;
}

void redirect_to(int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

std::string last_output(int output) {
  const uint64_t bytes = file_bytes(output);
  std::string tail(std::min<uint64_t>(bytes, 1024), ' ');
  const ssize_t count = pread(output, tail.data(), tail.size(), static_cast<off_t>(bytes - tail.size()));
  tail.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return tail;
}

}  // namespace backplane::conformance
