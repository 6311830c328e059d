// SPDX-License-Identifier: Apache-2.0
// Implements `backplane certify PLUGIN`, which runs the conformance suite and writes a certificate.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include "cases/catalogue.hpp"
#include "certify.hpp"
#include "certify_progress.hpp"
#include "certify_summary.hpp"
#include "plugin_library.hpp"
#include "report/certificate.hpp"
#include "subcommands.hpp"
#include "verify.hpp"

namespace tool {
namespace {

namespace suite = backplane::conformance;
namespace fs = std::filesystem;
using Certificate = nlohmann::json;

uint32_t profile_named(const std::string& name) {
  const uint32_t profile = suite::profile_of(name);
  if (profile == 0) fail_usage("certify: there is no profile '{}'; use core, infer or train", name);
  return profile;
}

int list_cases(Session& session, const suite::Catalogue& catalogue, const std::vector<size_t>& chosen) {
  if (!session.json) {
    for (const size_t index : chosen) session.print("{}\n", catalogue[index].id);
    return kExitOk;
  }
  Certificate document = {{"schema", "backplane.cases"}, {"version", 1}, {"cases", Certificate::array()}};
  for (const size_t index : chosen) {
    const suite::Case& each = catalogue[index];
    document["cases"].push_back(
        {{"id", each.id},
         {"profile", each.profile == BP_PROFILE_COMPOSITE ? "composite" : suite::profile_name(each.profile)},
         {"extension", each.extension},
         {"requirements", each.requirements}});
  }
  session.print("{}\n", document.dump());
  return kExitOk;
}

void write_file(const fs::path& path, const std::string& text) {
  // Replaces the old file only when the new file is complete.
  const fs::path whole = path.string() + ".new";
  std::ofstream file(whole, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(whole, path, error);
  if (!file || error)
    throw Failure(
        kExitFinding, "UNAVAILABLE",
        fmt::format("certify: {} cannot be written: {}; choose another --output", path.string(), std::strerror(errno)));
}

// Selects the cases that failed in the certificate at `path`. The run uses the profile and seed of
// the certificate unless the options set others.
void repeat_failed(const fs::path& path, const CertifyOptions& options, suite::CertifyOptions& run) {
  std::ifstream file(path);
  Certificate certificate;
  try {
    certificate = suite::read_certificate({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  } catch (const std::runtime_error&) {  // form_fault() refuses the empty document
  }
  if (!suite::form_fault(certificate).empty())
    fail_usage(
        "certify: --only-failed repeats the failed cases of {}, which is no certificate; first run without "
        "--only-failed",
        path.string());
  if (!options.profile_given)
    run.selection.profile = suite::profile_of(certificate["run"]["profile"].get<std::string>());
  if (!options.seed) run.seed = certificate["run"]["seed"];
  run.selection.filters.clear();
  for (const Certificate& each : certificate["non_passes"]) {
    if (each["outcome"] != "not_claimed") run.selection.filters.push_back(each["id"]);
  }
  if (run.selection.filters.empty()) fail_usage("certify: nothing failed in {}", path.string());
}

// While this object exists, the first SIGINT or SIGTERM requests the end of the run. A second signal of the same kind
// ends the process.
class Interrupts {
 public:
  Interrupts() {
    requested = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { requested = true; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    for (const int signal : kSignals) sigaction(signal, &action, nullptr);
  }
  ~Interrupts() {
    for (const int signal : kSignals) ::signal(signal, SIG_DFL);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static std::atomic<bool> requested;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM};
};
std::atomic<bool> Interrupts::requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores the flag");

}  // namespace

int certify(Session& session, const CertifyOptions& options) {
  if (!options.bound.empty()) {
    return certify_bound(session, options.bound[0], options.bound.size() > 1 ? options.bound[1] : "");
  }
  suite::CertifyOptions run;
  run.selection = {profile_named(options.profile), options.filters};
  if (options.list) {
    const suite::Catalogue catalogue = suite::enumerate();
    if (options.filters.empty() && !options.profile_given) run.selection.profile = BP_PROFILE_TRAIN;
    const std::vector<std::string> unmatched = suite::without_match(catalogue, run.selection);
    if (!unmatched.empty()) fail_usage("certify: {}", suite::no_match_text(unmatched, run.selection.profile));
    return list_cases(session, catalogue, suite::select(catalogue, run.selection));
  }
  if (options.plugin.empty()) fail_usage("certify: name a plugin, or the path of its library");
  if (session.json + options.junit + options.html > 1)
    fail_usage("certify: --json, --junit and --html exclude each other");
  run.target = {library_of(session, "certify", options.plugin), options.device};
  run.seed = options.seed ? *options.seed : std::random_device()();
  run.jobs = options.jobs != 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  run.limits.case_ns = static_cast<uint64_t>(options.timeout_s * 1e9);
  run.limits.resident_bytes = options.memory_mib << 20;
  run.limits.alike_per_group = options.equal_failures;
  run.fail_fast = options.fail_fast;
  run.in_process = options.in_process;
  run.resume = options.resume;

  const fs::path directory = options.output;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    fail_usage("certify: the directory {} cannot be made: {}; choose another --output", options.output,
               error.message());
  const fs::path whole = directory / fs::path(run.target.path).stem();
  // A run with --only-failed covers only some cases, so it must not overwrite the certificate.
  const fs::path stem = whole.string() + (options.only_failed ? ".only_failed" : "");
  if (options.only_failed) repeat_failed(whole.string() + ".json", options, run);
  if (!options.in_process) run.journal = stem.string() + ".journal";
  CertifyProgress progress(options.quiet);
  run.progress = [&](const suite::Progress& now) { progress.show(now); };
  Certificate certificate;
  std::optional<Interrupts> interrupts;
  if (!options.in_process) run.stop = &interrupts.emplace().requested;
  try {
    certificate = suite::certify(run);
  } catch (const std::system_error& failure) {
    throw Failure(kExitFinding, "INTERNAL",
                  fmt::format("certify: {}; free resources of the system, and continue with --resume", failure.what()));
  } catch (const std::runtime_error& failure) {
    throw Failure(kExitUsage, "INVALID_ARGUMENT", fmt::format("certify: {}", failure.what()));
  }
  progress.end();
  if (interrupts && Interrupts::requested && certificate["run"]["not_reached"] != 0) {
    if (session.json) {
      session.print("{}\n", certificate.dump(1));
    } else {
      print_interrupted(session, certificate);
    }
    return kExitFinding;
  }
  write_file(stem.string() + ".json", certificate.dump(1) + "\n");
  write_file(stem.string() + ".xml", suite::junit_of(certificate));
  write_file(stem.string() + ".html", suite::html_of(certificate));
  if (session.json) {
    session.print("{}\n", certificate.dump(1));
  } else if (options.junit) {
    session.print("{}", suite::junit_of(certificate));
  } else if (options.html) {
    session.print("{}", suite::html_of(certificate));
  } else {
    print_summary(session, certificate);
    session.print("Certificate: {0}.json, {0}.xml (JUnit), {0}.html\n", stem.string());
  }
  const Certificate& counts = certificate["verdict"]["counts"];
  bool failed = false;
  for (const auto& [name, count] : counts.items())
    failed = failed || (count != 0 && name != "pass" && name != "not_claimed");
  // A filtered run succeeds if no case failed. A full run must also reach its profile.
  return failed || (run.selection.filters.empty() && certificate["verdict"]["level"] != options.profile) ? kExitFinding
                                                                                                         : kExitOk;
}

}  // namespace tool
