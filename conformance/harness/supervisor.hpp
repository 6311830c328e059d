// SPDX-License-Identifier: Apache-2.0
// Supervises the worker processes of one run.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "channel.hpp"
#include "run_case.hpp"

namespace backplane::conformance {

std::string group_of(std::string_view id);  // returns the first two words of `id`

class Supervisor {
 public:
  Supervisor(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  std::vector<Result> run();

 private:
  struct Worker {
    pid_t pid = 0;  // 0 after the worker has ended
    int work = -1, report = -1;
    int output = -1;  // in-memory file with the output of the running case
    MessageReader reader{};
    Work remaining{};  // unfinished part of the assigned range
    bool has_remaining = false;
    bool running = false;  // case `index` is running
    bool any_finished = false;
    bool closing = false;
    bool foreign = false;  // the plugin forked, and the child process has returned from the case's function
    bool reaped = false;   // waitpid has returned `status`
    int status = 0;
    uint32_t index = 0, last_index = 0;
    uint64_t since = 0;        // time of the worker's start or latest progress
    uint64_t measured = 0;     // time of the latest measurement of the worker's memory
    uint64_t closed = 0;       // time at which the report channel closed
    SlotPage* page = nullptr;  // shared with the worker; may be null
    // Latest value of page->call(), and the time at which the value was first read.
    uint64_t call = 0, call_since = 0;
    // Time at which the page was last read, and the total time that the current case has spent in
    // plan_create.
    uint64_t looked = 0, compiling = 0;
    std::string tail{};
  };

  bool finished() const;
  bool is_fresh(uint32_t index) const;
  bool is_large(uint32_t index) const;
  bool is_alone(uint32_t index) const;
  std::deque<Work>& queue_of(uint32_t index);
  std::deque<Work>* next_queue();
  void start();
  void give_work(Worker& worker);
  void wait_for_news();
  void listen(Worker& worker);
  void take(Worker& worker, Message& message);
  void finish(Worker& worker, Message& message);
  void settle(uint32_t index, Result result);
  void count_failure(uint32_t index);
  std::deque<Work> without_given_up(const std::deque<Work>& parts);
  void watch_slot(Worker& worker);
  void report_slow_case() const;
  void check_limits(Worker& worker);
  void channel_closed(Worker& worker);
  void look_for_end(Worker& worker);
  void ended(Worker& worker, int status);
  void conclude(Worker& worker, Outcome outcome, std::string message);
  void end(Worker& worker);
  void end_strays();

  const Catalogue& catalogue_;
  const std::vector<size_t>& selection_;
  const RunOptions& options_;
  std::vector<Result> results_;
  std::deque<Work> queue_;  // ranges of cases that a worker may run after other cases
  std::deque<Work> fresh_;  // cases that need a new worker, one per range
  std::deque<Work> large_;  // ranges of cases that need much of the device's memory
  std::deque<Work> alone_;  // ranges of cases that run while no other case runs
  std::deque<Worker> workers_;
  // Number of failures per group and message. Hangs are counted per group only.
  std::map<std::pair<std::string, std::string>, int> failures_;
  // Groups whose remaining cases are not run. The value is the message for these cases.
  std::map<std::string, std::string> given_up_;
  std::set<pid_t> others_;  // child processes that existed before the run
  int was_reaper_ = 0;
  bool stopping_ = false;
};

}  // namespace backplane::conformance
