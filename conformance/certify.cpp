// SPDX-License-Identifier: Apache-2.0
#include "certify.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <stdexcept>

#include "cases/catalogue.hpp"
#include "harness/journal.hpp"
#include "report/certificate.hpp"
#include "report/digest.hpp"
#include "report/names.hpp"
#include "report/verdict.hpp"

namespace backplane::conformance {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string key_of(const CertifyOptions& options) {
  return fmt::format("plugin {:.16}, device {}, suite {:.16}, seed {}, limits {} ns and {} bytes",
                     sha256_of_file(options.target.path), options.target.device_index, suite_digest(), options.seed,
                     options.limits.case_ns, options.limits.resident_bytes);
}

// Returns the results that the journal of an earlier run contains. For each case without a result,
// appends its position in `selection` to `open`.
std::vector<Result> take_kept(const Journal* journal, const Catalogue& catalogue, const std::vector<size_t>& selection,
                              std::vector<size_t>& open) {
  std::vector<Result> results(selection.size());
  for (size_t index = 0; index < selection.size(); ++index) {
    if (journal != nullptr) {
      const auto kept = journal->kept().find(catalogue[selection[index]].id);
      if (kept != journal->kept().end()) {
        results[index] = kept->second;
        continue;
      }
    }
    open.push_back(index);
  }
  return results;
}

// Removes the cases that did not run because an earlier case failed. Returns the number of removed
// cases.
size_t leave_out_not_reached(std::vector<size_t>& selection, std::vector<Result>& results) {
  size_t kept = 0;
  for (size_t index = 0; index < results.size(); ++index) {
    if (results[index].outcome == Outcome::not_run) continue;
    selection[kept] = selection[index];
    results[kept++] = std::move(results[index]);
  }
  const size_t left_out = results.size() - kept;
  selection.resize(kept);
  results.resize(kept);
  return left_out;
}

}  // namespace

std::string no_match_text(const std::vector<std::string>& filters, uint32_t profile) {
  return fmt::format(
      "no case of {} matches {}'{}'; `backplane certify --list` shows all of them", profile_name(profile),
      filters.size() == 1 ? "" : fmt::format("{} of the filters, first ", filters.size()), filters.front());
}

nlohmann::json certify(const CertifyOptions& options) {
  const Catalogue catalogue = enumerate();
  if (const std::vector<std::string> filters = without_match(catalogue, options.selection); !filters.empty())
    throw std::runtime_error(no_match_text(filters, options.selection.profile));
  const std::string started = utc_now();
  const Clock::time_point start = Clock::now();
  const Facts facts = query_facts(options.target);
  Selection requested = options.selection;
  requested.abi_version = measured_version(facts.abi_version);
  requested.in_process = options.in_process;
  std::vector<size_t> selection = select(catalogue, requested);
  if (selection.empty())
    throw std::runtime_error(
        fmt::format("the plugin was built for ABI {}, and every case that matches the filters is of a later version",
                    version_text(facts.abi_version)));
  RunFacts run_facts{options.target, requested, options.seed, options.jobs, started};
  run_facts.limits = options.limits;

  std::unique_ptr<Journal> journal;
  if (!options.journal.empty()) journal = std::make_unique<Journal>(options.journal, key_of(options), options.resume);
  std::vector<size_t> open;
  std::vector<Result> results = take_kept(journal.get(), catalogue, selection, open);
  run_facts.resumed = open.size() != selection.size();

  Progress progress;
  progress.total = selection.size();
  progress.done = selection.size() - open.size();
  const size_t begun_with = progress.done;
  for (const Result& result : results) {
    progress.failures += result.outcome != Outcome::not_run && is_failure(result.outcome) ? 1 : 0;
    progress.absent += result.outcome == Outcome::not_claimed ? 1 : 0;
  }
  std::vector<size_t> cases;
  for (const size_t index : open) cases.push_back(selection[index]);
  RunOptions run_options{options.target, options.seed,      options.jobs,
                         options.limits, options.fail_fast, options.in_process};
  run_options.stop = options.stop;
  run_options.slow = [&](const SlowCase& slow) {
    progress.slow = &catalogue[cases[slow.index]];
    progress.slow_seconds = static_cast<double>(slow.nanoseconds) * 1e-9;
    progress.slot = slow.slot;
    progress.slot_seconds = static_cast<double>(slow.slot_nanoseconds) * 1e-9;
  };
  run_options.progress = [&](size_t index, const Result& result) {
    progress.seconds = seconds_since(start);
    progress.latest = nullptr;
    progress.result = nullptr;
    if (index != SIZE_MAX) {
      if (journal != nullptr) journal->add(catalogue[cases[index]].id, result);
      ++progress.done;
      progress.failures += is_failure(result.outcome) ? 1 : 0;
      progress.absent += result.outcome == Outcome::not_claimed ? 1 : 0;
      progress.latest = &catalogue[cases[index]];
      progress.result = &result;
    }
    const size_t newly_done = progress.done - begun_with;
    if (newly_done > 16)
      progress.seconds_left =
          progress.seconds * static_cast<double>(progress.total - progress.done) / static_cast<double>(newly_done);
    if (options.progress) options.progress(progress);
    if (index == SIZE_MAX) progress.slow = nullptr;  // run_options.slow sets progress.slow again if a case is slow
  };
  if (!facts.error.empty()) {
    for (const size_t index : open) results[index] = {Outcome::not_run, facts.error};
  } else {
    std::vector<Result> fresh = run(catalogue, cases, run_options);
    for (size_t index = 0; index < open.size(); ++index) results[open[index]] = std::move(fresh[index]);
  }
  const bool is_interrupted = options.stop != nullptr && *options.stop;
  if ((options.fail_fast || is_interrupted) && facts.error.empty()) {
    run_facts.not_reached = leave_out_not_reached(selection, results);
    requested.cut = run_facts.not_reached != 0;
  }
  run_facts.seconds = seconds_since(start);
  const Verdict verdict = judge(catalogue, selection, results, requested, facts);
  nlohmann::json certificate = certificate_of(catalogue, selection, results, verdict, facts, run_facts);
  if (journal != nullptr && !is_interrupted) journal->remove();
  return certificate;
}

}  // namespace backplane::conformance
