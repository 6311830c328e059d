// SPDX-License-Identifier: Apache-2.0
// Queries the properties of the plugin and the device in a child process.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "channel.hpp"
#include "context.hpp"
#include "output.hpp"
#include "reason.hpp"

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

std::string text_of(const char* text, size_t most) { return std::string(text, strnlen(text, most)); }

// Queries the plugin and the device. If a query fails, returns the properties up to this query, and the reason for the
// failure in `Facts::error`.
Facts gather(const Target& target) {
  Facts facts;
  try {
    const Plugin plugin(target.path);
    facts.plugin = plugin->name == nullptr ? "" : plugin->name;
    facts.version = plugin->version == nullptr ? "" : plugin->version;
    facts.abi_version = plugin->abi_version;
    facts.abi_version_min = plugin->abi_version_min;
    facts.build_flags = plugin->build_flags;
    facts.device_count = plugin.device_count();
    if (facts.device_count == 0) {
      facts.error = fmt::format(
          "the plugin has no device, and device {} was requested; install the device's driver, or see `backplane "
          "doctor`",
          target.device_index);
      return facts;
    }
    if (target.device_index >= facts.device_count) {
      facts.error = fmt::format("the plugin has {} devices, and device {} was requested; use --device 0..{}",
                                facts.device_count, target.device_index, facts.device_count - 1);
      return facts;
    }
    const bp_device_info info = plugin.device_info(target.device_index);
    facts.device = text_of(info.name, sizeof(info.name));
    facts.driver = text_of(info.driver, sizeof(info.driver));
    facts.device_type = info.type;
    facts.alignment = info.alignment;
    facts.max_buffer_bytes = info.max_buffer_bytes;
    facts.memory_kinds = info.memory_kinds;
    facts.capabilities = info.capabilities;
  } catch (const CaseEnd& end) {
    facts.error = end.message;
  } catch (...) {
    facts.error = "an exception came out of the plugin";
  }
  return facts;
}

std::string pack(const Facts& facts) {
  return Json{{"error", facts.error},
              {"plugin", facts.plugin},
              {"version", facts.version},
              {"device", facts.device},
              {"driver", facts.driver},
              {"abi", facts.abi_version},
              {"abi_min", facts.abi_version_min},
              {"build", facts.build_flags},
              {"count", facts.device_count},
              {"type", facts.device_type},
              {"alignment", facts.alignment},
              {"max", facts.max_buffer_bytes},
              {"kinds", facts.memory_kinds},
              {"capabilities", facts.capabilities}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Facts unpack(const std::string& text) {
  const Json json = Json::parse(text);
  Facts facts;
  facts.error = json["error"];
  facts.plugin = json["plugin"];
  facts.version = json["version"];
  facts.device = json["device"];
  facts.driver = json["driver"];
  facts.abi_version = json["abi"];
  facts.abi_version_min = json["abi_min"];
  facts.build_flags = json["build"];
  facts.device_count = json["count"];
  facts.device_type = json["type"];
  facts.alignment = json["alignment"];
  facts.max_buffer_bytes = json["max"];
  facts.memory_kinds = json["kinds"];
  facts.capabilities = json["capabilities"];
  return facts;
}

}  // namespace

Facts query_facts(const Target& target) {
  constexpr int limit_ms = 30'000;
  int ends[2];
  Facts facts;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    facts.error = fmt::format("pipe: {}", std::strerror(errno));
    return facts;
  }
  const int output = new_output();
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    close(ends[0]);
    redirect_to(output);
    Message message{Message::Kind::facts, 0, {}};
    message.result.message = pack(gather(target));
    fflush(stdout);
    send(ends[1], message);
    _exit(0);
  }
  close(ends[1]);
  MessageReader reader;
  std::optional<Message> message;
  char bytes[1 << 12];
  pollfd waiting = {ends[0], POLLIN, 0};
  while (!message && poll(&waiting, 1, limit_ms) > 0) {
    const ssize_t count = read(ends[0], bytes, sizeof(bytes));
    if (count <= 0) break;
    reader.append(bytes, static_cast<size_t>(count));
    message = reader.next();
  }
  close(ends[0]);
  if (message) {
    facts = unpack(message->result.message);
  } else {
    facts.error = "the plugin crashed or did not return within 30 s when its properties were queried";
  }
  if (pid > 0) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  if (const std::string tail = last_output(output); !facts.error.empty() && !tail.empty())
    facts.error += std::string(kOutputMark) + tail;
  close(output);
  return facts;
}

}  // namespace backplane::conformance
