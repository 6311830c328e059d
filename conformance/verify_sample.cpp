// SPDX-License-Identifier: Apache-2.0
#include "verify_sample.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "harness/supervisor.hpp"
#include "report/certificate.hpp"

namespace backplane::conformance {

namespace {

constexpr size_t kMostFailures = 40;
constexpr size_t kMostHangs = 1;

class Again {
 public:
  Again(const Listed& listed, const Target& target, const VerifyOptions& options, size_t total)
      : listed_(listed), target_(target), options_(options) {
    progress_.total = total;
  }
  void run(const std::vector<size_t>& positions, uint64_t seed);
  std::vector<Difference> take() { return std::move(differences_); }

 private:
  void report(const Case* latest, const Result* result);

  const Listed& listed_;
  const Target& target_;
  const VerifyOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Progress progress_{};
  std::vector<Difference> differences_{};
};

void Again::report(const Case* latest, const Result* result) {
  progress_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  progress_.latest = latest;
  progress_.result = result;
  if (result != nullptr) {
    ++progress_.done;
    progress_.failures += is_failure(result->outcome) ? 1 : 0;
    progress_.absent += result->outcome == Outcome::not_claimed ? 1 : 0;
  }
  if (progress_.done > 16)
    progress_.seconds_left =
        progress_.seconds * static_cast<double>(progress_.total - progress_.done) / static_cast<double>(progress_.done);
  if (options_.progress) options_.progress(progress_);
}

void Again::run(const std::vector<size_t>& positions, uint64_t seed) {
  if (positions.empty()) return;
  std::vector<size_t> cases;
  for (const size_t position : positions) cases.push_back(listed_.selection[position]);
  RunOptions run_options{target_, seed, options_.jobs, listed_.limits};
  // Disables the limit on similar failures per group, because the sample needs a result for every case.
  run_options.limits.alike_per_group = 0;
  run_options.progress = [&](size_t index, const Result& result) {
    if (index == SIZE_MAX) return report(nullptr, nullptr);
    report(&listed_.catalogue[cases[index]], &result);
  };
  std::vector<Result> results = conformance::run(listed_.catalogue, cases, run_options);
  for (size_t index = 0; index < positions.size(); ++index) {
    const Outcome then = listed_.results[positions[index]].outcome, now = results[index].outcome;
    // Two different kinds of failure are treated as equal, because the kind may vary between runs.
    if (then == now || (is_failure(then) && is_failure(now) && now != Outcome::not_run)) continue;
    const std::string& id = listed_.catalogue[cases[index]].id;
    differences_.push_back(
        {id, std::string(name_of(then)), std::move(results[index]), repro_line(target_, seed, id, listed_.profile)});
  }
}

}  // namespace

std::vector<size_t> choose_sample(const Listed& listed, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t position = 0; position < listed.results.size(); ++position) {
    if (listed.results[position].outcome != Outcome::not_run)
      groups[group_of(listed.catalogue[listed.selection[position]].id)].push_back(position);
  }
  // The first case of each group gets a negative key, so that these cases come first in `order`.
  // The keys of the other cases of a group are evenly spaced in (0, 1).
  std::vector<std::pair<double, size_t>> order;
  for (auto& [name, positions] : groups) {
    std::shuffle(positions.begin(), positions.end(), random);
    const double offset = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto size = static_cast<double>(positions.size());
    for (size_t rank = 0; rank < positions.size(); ++rank)
      order.emplace_back(rank == 0 ? offset - 1 : (static_cast<double>(rank) - offset) / size, positions[rank]);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> chosen;
  size_t failures = 0, hangs = 0;
  for (const auto& [key, position] : order) {
    if (chosen.size() == count) break;
    const Outcome outcome = listed.results[position].outcome;
    if (is_failure(outcome) && ++failures > kMostFailures) continue;
    if (outcome == Outcome::hang && ++hangs > kMostHangs) continue;
    chosen.push_back(position);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<Difference> run_sample(const Listed& listed, const std::vector<size_t>& positions, const Target& target,
                                   const VerifyOptions& options) {
  std::vector<size_t> fresh, same;
  for (const size_t position : positions)
    (is_failure(listed.results[position].outcome) ? same : fresh).push_back(position);
  Again again(listed, target, options, positions.size());
  again.run(fresh, options.seed);
  again.run(same, listed.seed);
  return again.take();
}

}  // namespace backplane::conformance
