// SPDX-License-Identifier: Apache-2.0
// Implements `backplane verify CERTIFICATE PLUGIN`, which checks whether the plugin reproduces a
// certificate.
#include "verify.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "certify_progress.hpp"
#include "plugin_library.hpp"
#include "subcommands.hpp"

namespace tool {
namespace {

namespace suite = backplane::conformance;
using Document = nlohmann::json;

constexpr size_t kMostDifferences = 20;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // peek() detects a folder, which can be opened but not read.
  if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(text << file.rdbuf())) || file.bad())
    fail_usage("verify: {} cannot be read: {}; name the JSON file of a certificate", path, std::strerror(errno));
  return text.str();
}

std::string refused_parts(const suite::Verification& verification) {
  std::string names;
  for (const suite::Part& part : verification.parts) {
    if (part.state == suite::Part::State::refused) names += fmt::format("{}{}", names.empty() ? "" : ", ", part.name);
  }
  return names;
}

void print_document(Session& session, const VerifyOptions& options, const suite::VerifyOptions& run,
                    const suite::Verification& verification) {
  Document parts = Document::array(), differences = Document::array();
  for (const suite::Part& part : verification.parts)
    parts.push_back({{"name", part.name}, {"state", name_of(part.state)}, {"message", part.message}});
  for (const suite::Difference& each : verification.differences)
    differences.push_back({{"id", each.id},
                           {"listed", each.listed},
                           {"outcome", suite::name_of(each.now.outcome)},
                           {"reason", each.now.message},
                           {"repro", each.repro}});
  const Document document = {
      {"schema", "backplane.verify"},
      {"version", 1},
      {"certificate", options.certificate},
      {"plugin", run.library},
      {"verdict", verification.verified() ? "verified" : "refused"},
      {"statement", verification.statement},
      {"parts", parts},
      {"sample",
       {{"asked", run.sample}, {"compared", verification.compared}, {"seed", run.seed}, {"differences", differences}}}};
  session.print("{}\n", document.dump(1, ' ', false, Document::error_handler_t::replace));
}

void print_text(Session& session, const suite::Verification& verification) {
  constexpr const char* symbols[] = {"✓", "!", "✗", "-"};  // indexed by Part::State
  constexpr int colours[] = {32, 33, 31, 90};
  for (const suite::Part& part : verification.parts) {
    const auto state = static_cast<size_t>(part.state);
    const std::string symbol =
        session.colour ? fmt::format("\x1b[{}m{}\x1b[0m", colours[state], symbols[state]) : symbols[state];
    session.print("{} {:<8} {}\n", symbol, part.name,
                  part.state == suite::Part::State::unchecked ? "not checked" : part.message);
  }
  size_t shown = 0;
  for (const suite::Difference& each : verification.differences) {
    if (++shown > kMostDifferences) break;
    session.print("\n{}: was {}, is {}\n  {}\n  {}\n", each.id, each.listed, suite::name_of(each.now.outcome),
                  each.now.message, each.repro);
  }
  if (verification.verified()) {
    session.print("\nverified: {}\n", verification.statement);
  } else {
    session.print("\nrefused: {}\n", refused_parts(verification));
  }
}

}  // namespace

int verify(Session& session, const VerifyOptions& options) {
  suite::VerifyOptions run;
  run.certificate = read_file(options.certificate);
  run.library = library_of(session, "verify", options.plugin);
  run.device = options.device;
  run.sample = options.sample;
  run.seed = options.seed ? *options.seed : std::random_device()();
  run.jobs = options.jobs != 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  run.case_seconds = options.timeout_s;
  run.resident_mib = options.memory_mib;
  CertifyProgress progress(options.quiet);
  run.progress = [&](const suite::Progress& now) { progress.show(now); };
  const suite::Verification verification = suite::verify(run);
  progress.end();
  if (session.json) {
    print_document(session, options, run, verification);
  } else {
    print_text(session, verification);
  }
  return verification.verified() ? kExitOk : kExitFinding;
}

}  // namespace tool
