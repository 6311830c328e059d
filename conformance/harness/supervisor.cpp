// SPDX-License-Identifier: Apache-2.0
// Implements the supervisor, which is the parent of the workers. The supervisor distributes cases,
// limits their time, memory and output, and converts every exit or crash of a worker to a result.
#include "supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <system_error>

#include "clock.hpp"
#include "output.hpp"
#include "plan_support.hpp"
#include "reason.hpp"
#include "work_order.hpp"

namespace backplane::conformance {

namespace {

// Maximum size of a worker's output file. Workers check each case against the smaller limit
// Limits::output_bytes.
constexpr uint64_t kMostOutput = 64u << 20;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kSlowNs = 3 * kSecondNs;  // a case that takes longer is reported as slow
// Maximum time from the close of a worker's report channel to the exit of the worker. Exits are slow if many
// workers free a device's memory at once. The shorter limit applies while a case runs, because the worker then has
// no reason to exit.
constexpr uint64_t kMostExitNs = 20 * kSecondNs;
constexpr uint64_t kMostExitInCaseNs = 5 * kSecondNs;
// Maximum number of cases per range. Small ranges let the workers finish at about the same time.
constexpr uint32_t kMostWork = 32;
// Large cases run on at most jobs / kWorkersPerLarge workers at once, or on one worker if the quotient is 0.
constexpr unsigned kWorkersPerLarge = 4;

// Moves a descriptor to a high number. A plugin that closes descriptors in ascending order reaches such a descriptor
// last.
int high(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 200);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

struct Ends {
  int read;
  int write;
};

Ends make_report() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return {high(ends[0]), high(ends[1])};
}

// Returns sockets, because a write to a pipe raises SIGPIPE in the supervisor if the worker has died.
Ends make_work() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return {high(ends[0]), high(ends[1])};
}

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

uint64_t resident_bytes(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("the process exited with status {}", WEXITSTATUS(status));
}

// Returns null if the system has no memory for the page. The run then continues without the page.
SlotPage* new_page() {
  void* const memory = mmap(nullptr, sizeof(SlotPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) SlotPage();
}

}  // namespace

Supervisor::Supervisor(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options)
    : catalogue_(catalogue), selection_(selection), options_(options), results_(selection.size()) {
  for (uint32_t index = 0; index < selection.size(); ++index) {
    std::deque<Work>& queue = queue_of(index);
    if (!is_fresh(index) && !queue.empty() && queue.back().last == index && index - queue.back().first < kMostWork) {
      ++queue.back().last;
    } else {
      queue.push_back({index, index + 1});
    }
  }
  // Orphaned processes of a plugin become children of this process, so that end_strays() can kill
  // them.
  prctl(PR_GET_CHILD_SUBREAPER, &was_reaper_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::ifstream file(fmt::format("/proc/self/task/{}/children", gettid()));
  for (pid_t pid; file >> pid;) others_.insert(pid);
}

Supervisor::~Supervisor() {
  for (Worker& worker : workers_) end(worker);
  end_strays();
  prctl(PR_SET_CHILD_SUBREAPER, was_reaper_);
}

// Kills processes that left the process group of their worker.
void Supervisor::end_strays() {
  for (int round = 0; round < 100; ++round) {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", gettid()));
    std::set<pid_t> strays;
    for (pid_t pid; file >> pid;) {
      if (!others_.contains(pid)) strays.insert(pid);
    }
    if (strays.empty()) return;
    for (const pid_t pid : strays) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
}

std::vector<Result> Supervisor::run() {
  const size_t most = std::max(1u, options_.jobs);
  while (!finished()) {
    if (stopping_ || (options_.stop != nullptr && *options_.stop)) {
      for (Worker& worker : workers_) end(worker);
      break;
    }
    while (workers_.size() < most && next_queue() != nullptr) start();
    wait_for_news();
    for (Worker& worker : workers_) {
      look_for_end(worker);
      watch_slot(worker);
      check_limits(worker);
    }
    std::erase_if(workers_, [](const Worker& worker) { return worker.pid == 0; });
    report_slow_case();
    if (options_.progress) options_.progress(SIZE_MAX, {});
  }
  for (Result& result : results_) {
    if (result.outcome == Outcome::not_run && result.message.empty()) result.message = "the run stopped before it";
  }
  return std::move(results_);
}

bool Supervisor::is_fresh(uint32_t index) const { return catalogue_[selection_[index]].fresh; }

bool Supervisor::is_large(uint32_t index) const { return catalogue_[selection_[index]].large; }

std::deque<Work>& Supervisor::queue_of(uint32_t index) {
  return is_fresh(index) ? fresh_ : is_alone(index) ? alone_ : is_large(index) ? large_ : queue_;
}

bool Supervisor::is_alone(uint32_t index) const { return catalogue_[selection_[index]].alone; }

// Returns the queue from which an idle worker takes its next range, or null. Large cases come first, as long as few
// workers run large cases. Fresh cases run after the usual cases, and cases that need all memory run last.
std::deque<Work>* Supervisor::next_queue() {
  const auto runs_large = [&](const Worker& worker) {
    return worker.pid != 0 && worker.has_remaining && worker.remaining.first < worker.remaining.last &&
           is_large(worker.remaining.first);
  };
  const auto busy = static_cast<unsigned>(std::ranges::count_if(workers_, runs_large));
  if (!large_.empty() && busy < std::max(1u, options_.jobs / kWorkersPerLarge)) return &large_;
  if (!queue_.empty()) return &queue_;
  if (!fresh_.empty()) return &fresh_;
  const auto has_work = [](const Worker& worker) { return worker.pid != 0 && worker.has_remaining; };
  return alone_.empty() || std::ranges::any_of(workers_, has_work) ? nullptr : &alone_;
}

bool Supervisor::finished() const {
  return workers_.empty() && queue_.empty() && fresh_.empty() && large_.empty() && alone_.empty();
}

void Supervisor::start() {
  const Ends work_ends = make_work(), report_ends = make_report();
  const int output = high(new_output());
  SlotPage* const page = new_page();
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(work_ends.write);
    close(report_ends.read);
    redirect_to(output);
    // An inherited descriptor would keep another worker's pipe open.
    for (const Worker& other : workers_) {
      close(other.work);
      close(other.report);
      close(other.output);
    }
    work(catalogue_, selection_, options_, {work_ends.read, report_ends.write, output, page});
  }
  setpgid(pid, pid);
  close(work_ends.read);
  close(report_ends.write);
  fcntl(report_ends.read, F_SETFL, O_NONBLOCK);
  Worker& worker = workers_.emplace_back();
  worker.pid = pid;
  worker.work = work_ends.write;
  worker.report = report_ends.read;
  worker.output = output;
  worker.page = page;
  worker.since = now_ns();
  give_work(worker);
}

// Sends the next range to the worker. If there is no range for the worker, closes the work socket instead, so that the
// worker exits. A worker that uses half of its memory limit must also exit, because a plugin may cache objects such as
// compiled kernels. A case must not fail because of the caches of earlier cases.
void Supervisor::give_work(Worker& worker) {
  const bool full = worker.any_finished && resident_bytes(worker.pid) > options_.limits.resident_bytes / 2;
  std::deque<Work>* const next = next_queue();
  if (full || next == nullptr) return close_fd(worker.work);
  std::deque<Work>& queue = *next;
  // A fresh case needs a worker of its own.
  if (worker.any_finished && (is_fresh(worker.last_index) || &queue == &fresh_)) return close_fd(worker.work);
  size_t at = 0;
  if (&queue == &queue_) {
    std::set<uint32_t> busy_ends;
    for (const Worker& other : workers_) {
      if (&other != &worker && other.remaining.last != 0) busy_ends.insert(other.remaining.last);
    }
    at = next_range(queue, worker.any_finished ? worker.remaining.last : UINT32_MAX, busy_ends);
  }
  worker.remaining = queue[at];
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
  worker.has_remaining = true;
  // send() fails if the worker has died. In this case, wait_for_news() or look_for_end() later
  // detects the end of the worker.
  if (::send(worker.work, &worker.remaining, sizeof(Work), MSG_NOSIGNAL) != sizeof(Work)) close_fd(worker.work);
}

void Supervisor::wait_for_news() {
  std::vector<pollfd> fds;
  bool exits = false;  // poll does not announce the end of a worker whose channel has closed
  for (const Worker& worker : workers_) {
    fds.push_back({worker.report, POLLIN, 0});
    exits = exits || worker.report < 0;
  }
  if (poll(fds.data(), fds.size(), exits ? 1 : 100) <= 0) return;
  for (size_t index = 0; index < workers_.size(); ++index) {
    if (fds[index].revents != 0) listen(workers_[index]);
  }
}

void Supervisor::listen(Worker& worker) {
  char bytes[1 << 14];
  for (;;) {
    const ssize_t count = read(worker.report, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return channel_closed(worker);
    worker.reader.append(bytes, static_cast<size_t>(count));
    while (std::optional<Message> message = worker.reader.next()) take(worker, *message);
    if (worker.reader.broken()) {
      conclude(worker, Outcome::crash, "the plugin wrote to a descriptor that is not its own: the report was garbled");
      return end(worker);
    }
    if (worker.pid == 0) return;
  }
}

void Supervisor::take(Worker& worker, Message& message) {
  switch (message.kind) {
    case Message::Kind::started:
      worker.running = true;
      worker.index = message.index;
      worker.since = worker.looked = worker.call_since = now_ns();
      worker.compiling = 0;
      worker.foreign = false;
      return;
    case Message::Kind::finished:
      if (worker.running && worker.index == message.index) finish(worker, message);
      return;
    case Message::Kind::foreign:
      worker.foreign = true;
      return;
    case Message::Kind::closing:
      worker.closing = true;
      worker.since = now_ns();
      worker.compiling = 0;
      return;
    case Message::Kind::facts:
      return;
  }
}

void Supervisor::finish(Worker& worker, Message& message) {
  Result& result = message.result;
  const bool leaves = is_failure(result.outcome);  // the worker exits after a failure
  if (worker.foreign) {
    result.outcome = Outcome::fail;
    result.message = "a call returned in a second process: the plugin forked";
  }
  worker.running = false;
  worker.remaining.first = worker.index + 1;
  worker.last_index = worker.index;
  worker.any_finished = true;
  worker.since = now_ns();
  worker.compiling = 0;
  const bool failed = is_failure(result.outcome);
  settle(worker.index, std::move(result));
  if (leaves) return;
  if (failed) return end(worker);
  if (worker.remaining.first < worker.remaining.last) return;
  worker.has_remaining = false;
  give_work(worker);
}

// Records a case's final result.
void Supervisor::settle(uint32_t index, Result result) {
  results_[index] = std::move(result);
  if (options_.progress) options_.progress(index, results_[index]);
  if (!is_failure(results_[index].outcome)) return;
  if (options_.fail_fast) stopping_ = true;
  count_failure(index);
}

// Counts the failure for its group. After several hangs or several equal failures, the remaining
// cases of the group are not run. Each hang costs the whole time limit, and each failure costs a
// new process.
void Supervisor::count_failure(uint32_t index) {
  const Result& result = results_[index];
  const bool hung = result.outcome == Outcome::hang;
  const int most = hung ? options_.limits.hangs_per_group : options_.limits.alike_per_group;
  const std::string group = group_of(catalogue_[selection_[index]].id);
  const int count = ++failures_[{group, hung ? std::string() : std::string(shared_part(result.message))}];
  if (most == 0 || count < most) return;
  const bool fresh = given_up_
                         .try_emplace(group, fmt::format("{} cases of {} {}{}{}", count, group,
                                                         hung ? "hung" : "failed alike", kGivenUpMark, result.message))
                         .second;
  if (fresh) {
    for (std::deque<Work>* const queue : {&queue_, &fresh_, &large_, &alone_}) *queue = without_given_up(*queue);
  }
}

// Returns `parts` without the cases of the groups in `given_up_`, and records the results of those
// cases.
std::deque<Work> Supervisor::without_given_up(const std::deque<Work>& parts) {
  std::deque<Work> kept;
  for (const Work& part : parts) {
    bool joined = false;
    for (uint32_t each = part.first; each < part.last; ++each) {
      const auto given_up = given_up_.find(group_of(catalogue_[selection_[each]].id));
      if (given_up != given_up_.end()) {
        results_[each] = {Outcome::not_run, given_up->second};
        if (options_.progress) options_.progress(each, results_[each]);
      } else if (joined && !is_fresh(each) && !is_fresh(each - 1)) {
        kept.back().last = each + 1;
      } else {
        kept.push_back({each, each + 1});
      }
      joined = given_up == given_up_.end();
    }
  }
  return kept;
}

void Supervisor::watch_slot(Worker& worker) {
  if (worker.pid == 0 || worker.page == nullptr) return;
  const uint64_t now = now_ns();
  if (const uint64_t call = worker.page->call(); call != worker.call) {
    worker.call = call;
    worker.call_since = now;
  } else if (SlotPage::slot_of(call) == Slot::plan_create) {
    worker.compiling += now - worker.looked;
  }
  worker.looked = now;
}

void Supervisor::report_slow_case() const {
  if (!options_.slow) return;
  const Worker* slowest = nullptr;
  for (const Worker& worker : workers_) {
    if (worker.running && (slowest == nullptr || worker.since < slowest->since)) slowest = &worker;
  }
  const uint64_t now = now_ns();
  if (slowest == nullptr || now - slowest->since < kSlowNs) return;
  options_.slow(
      {slowest->index, now - slowest->since, name_of(SlotPage::slot_of(slowest->call)), now - slowest->call_since});
}

void Supervisor::check_limits(Worker& worker) {
  if (worker.pid == 0) return;
  const uint64_t now = now_ns(), age = now - worker.since;
  if (age > options_.limits.case_ns + worker.compiling / 4 * 3) {
    const std::string_view slot = worker.running ? name_of(SlotPage::slot_of(worker.call)) : std::string_view();
    conclude(worker, Outcome::hang,
             fmt::format("it did not end within {} s{}", age / kSecondNs,
                         slot.empty() ? ""
                                      : fmt::format(": {} has not returned for {} s", slot,
                                                    (now - worker.call_since) / kSecondNs)));
    return end(worker);
  }
  if (worker.report < 0 && now - worker.closed > (worker.running ? kMostExitInCaseNs : kMostExitNs)) {
    conclude(worker, Outcome::crash,
             "the report channel was closed: the plugin closes descriptors that are not its own");
    return end(worker);
  }
  if (now_ns() - worker.measured < 100'000'000) return;
  worker.measured = now_ns();
  if (const uint64_t bytes = file_bytes(worker.output); bytes > kMostOutput) {
    conclude(worker, Outcome::fail, fmt::format("the plugin wrote {} MiB to standard output or error", bytes >> 20));
    return end(worker);
  }
  const uint64_t resident = resident_bytes(worker.pid);
  if (resident > options_.limits.resident_bytes) {
    conclude(worker, Outcome::leak,
             fmt::format("the process grew to {} MiB; the limit is {} MiB", resident >> 20,
                         options_.limits.resident_bytes >> 20));
    end(worker);
  }
}

// Called when the report channel has closed, usually because the worker exits. The worker may end later than its
// channel, because the kernel first frees the device's memory. look_for_end() detects the end of the worker. Until
// then, the supervisor serves the other workers.
void Supervisor::channel_closed(Worker& worker) {
  close_fd(worker.report);
  worker.closed = now_ns();
  look_for_end(worker);
}

// Calls waitpid to detect the end of a worker. The report channel is not sufficient, because a
// process that the plugin created may keep the channel open.
void Supervisor::look_for_end(Worker& worker) {
  int status = 0;
  if (worker.pid == 0 || waitpid(worker.pid, &status, WNOHANG) != worker.pid) return;
  worker.reaped = true;
  worker.status = status;
  if (worker.report >= 0) listen(worker);  // reads the worker's last messages
  if (worker.pid != 0) ended(worker, status);
}

void Supervisor::ended(Worker& worker, int status) {
  if (worker.reaped) status = worker.status;
  worker.reaped = true;
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0 && (worker.closing || !worker.running);
  if (!well) conclude(worker, Outcome::crash, describe_end(status));
  end(worker);
}

// Records `outcome` for the running case, or, if no case is running, for the last finished case. If
// the last finished case failed, or if no case has finished, the outcome is recorded for the next
// assigned case.
void Supervisor::conclude(Worker& worker, Outcome outcome, std::string message) {
  if (const std::string tail = last_output(worker.output); (worker.running || worker.closing) && !tail.empty())
    message += std::string(kOutputMark) + tail;
  if (worker.running) {
    worker.running = false;
    worker.remaining.first = worker.index + 1;
    settle(worker.index, {outcome, std::move(message), now_ns() - worker.since});
  } else if (worker.any_finished && !is_failure(results_[worker.last_index].outcome)) {
    settle(worker.last_index,
           {outcome, (worker.closing ? "while the plugin was shut down after it: " : "after it ended: ") + message,
            now_ns() - worker.since});
  } else if (worker.has_remaining && worker.remaining.first < worker.remaining.last) {
    settle(worker.remaining.first, {outcome, "before it began: " + message, now_ns() - worker.since});
    ++worker.remaining.first;
  }
}

// Kills the worker and its children. The worker's unfinished cases return to the queue, except the
// cases of groups in `given_up_`.
void Supervisor::end(Worker& worker) {
  if (worker.pid == 0) return;
  kill(-worker.pid, SIGKILL);
  kill(worker.pid, SIGKILL);
  if (!worker.reaped) waitpid(worker.pid, nullptr, 0);
  while (waitpid(-worker.pid, nullptr, WNOHANG) > 0) continue;
  close_fd(worker.work);
  close_fd(worker.report);
  close_fd(worker.output);
  if (worker.has_remaining && worker.remaining.first < worker.remaining.last) {
    const std::deque<Work> remaining = without_given_up({worker.remaining});
    std::deque<Work>& queue = queue_of(worker.remaining.first);
    queue.insert(queue.begin(), remaining.begin(), remaining.end());
  }
  if (worker.page != nullptr) munmap(worker.page, sizeof(SlotPage));
  worker.page = nullptr;
  worker.pid = 0;
}

std::string group_of(std::string_view id) {
  const size_t first = id.find('.');
  const size_t second = first == std::string_view::npos ? first : id.find('.', first + 1);
  return std::string(id.substr(0, second));
}

std::vector<Result> run(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options) {
  const PlanSupport promises(catalogue);
  if (!options.in_process) return Supervisor(catalogue, selection, options).run();
  keep_pages_untouched();
  std::vector<Result> results(selection.size());
  Session session{options.target.path, options.target.device_index, options.seed, nullptr, nullptr};
  for (size_t index = 0; index < selection.size(); ++index) {
    // A fresh case should run in a new process. In this single process, the case gets a new session
    // instead.
    if (catalogue[selection[index]].fresh) session.close();
    results[index] = run_case(session, catalogue[selection[index]]);
    if (options.progress) options.progress(index, results[index]);
    if (!is_failure(results[index].outcome)) continue;
    session.abandon();
    if (options.fail_fast) break;
  }
  begin_case();
  session.close();
  return results;
}

}  // namespace backplane::conformance
