// SPDX-License-Identifier: Apache-2.0
// Tests the supervisor. Each case must get its own outcome, whatever other cases do to their
// processes.
#include "harness/supervisor.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <filesystem>
#include <thread>

#include "harness/context.hpp"
#include "harness/plan_support.hpp"
#include "harness/slot_watch.hpp"

namespace backplane::conformance::test {
namespace {

using testing::HasSubstr;

void nothing(Context&) {}

Case named(std::string id, std::function<void(Context&)> body) {
  Case result;
  result.id = std::move(id);
  result.requirements = {"BP-CERT-001"};
  result.run = std::move(body);
  return result;
}

// Runs `body` between cases that must pass, and returns the result of `body`.
Result among_others(std::function<void(Context&)> body, unsigned jobs = 1, uint64_t case_ns = 30'000'000'000) {
  Catalogue catalogue;
  for (int index = 0; index < 40; ++index)
    catalogue.push_back(named("group.before.n" + std::to_string(index), nothing));
  catalogue.push_back(named("group.tried.one", std::move(body)));
  for (int index = 0; index < 40; ++index) catalogue.push_back(named("group.after.n" + std::to_string(index), nothing));
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  options.jobs = jobs;
  options.limits.case_ns = case_ns;
  options.limits.resident_bytes = uint64_t{512} << 20;
  const std::vector<Result> results = run(catalogue, selection, options);
  for (size_t index = 0; index < results.size(); ++index) {
    if (index == 40) continue;
    EXPECT_EQ(name_of(results[index].outcome), "pass") << catalogue[index].id << results[index].message;
  }
  return results[40];
}

#define EXPECT_OUTCOME(result, expected, text)                   \
  do {                                                           \
    const Result got = (result);                                 \
    EXPECT_EQ(name_of(got.outcome), name_of(Outcome::expected)); \
    EXPECT_THAT(got.message, HasSubstr(text));                   \
  } while (false)

TEST(Supervisor, ACasePassesOrStatesAReason) {
  EXPECT_OUTCOME(among_others(nothing), pass, "");
  EXPECT_OUTCOME(among_others([](Context& context) { context.fail("{} is wrong", 7); }), fail, "7 is wrong");
  EXPECT_OUTCOME(among_others([](Context& context) { context.not_claimed("no such op"); }), not_claimed, "no such op");
  EXPECT_OUTCOME(among_others([](Context& context) { context.suspect("all zero"); }, 2), suspect, "all zero");
}

TEST(Supervisor, CrashesAreNamed) {
  EXPECT_OUTCOME(among_others([](Context&) { raise(SIGSEGV); }), crash, "signal 11");
  EXPECT_OUTCOME(among_others([](Context&) { raise(SIGKILL); }, 2), crash, "signal 9");
  EXPECT_OUTCOME(among_others([](Context&) { _exit(0); }), crash, "exited with status 0");
  EXPECT_OUTCOME(among_others([](Context&) { _exit(7); }), crash, "exited with status 7");
}

// The worker dies between its last result and the next range. The supervisor then sends the range to a dead worker.
TEST(Supervisor, AWorkerThatDiesBetweenRangesDoesNotEndTheRun) {
  constexpr size_t last_of_range = 31;
  Catalogue catalogue;
  for (size_t index = 0; index < 64; ++index) {
    catalogue.push_back(named("group.ranges.n" + std::to_string(index), [index](Context&) {
      if (index != last_of_range) return;
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        raise(SIGKILL);
      }).detach();
    }));
  }
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  int reports = 0;
  options.progress = [&](size_t index, const Result&) {
    if (index == last_of_range && ++reports == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  const std::vector<Result> results = run(catalogue, selection, options);
  EXPECT_EQ(reports, 2);
  for (size_t index = 0; index < results.size(); ++index) {
    if (index == last_of_range) continue;
    EXPECT_EQ(name_of(results[index].outcome), "pass") << index << results[index].message;
  }
  EXPECT_OUTCOME(results[last_of_range], crash, "after it ended: signal 9");
}

TEST(Facts, APluginWithoutDevicesDoesNotWriteToTheHostsOutput) {
  const int output = memfd_create("output", MFD_CLOEXEC), before = dup(STDOUT_FILENO);
  fflush(stdout);
  dup2(output, STDOUT_FILENO);
  const Facts facts = query_facts({std::getenv("BACKPLANE_TEST_PRINTING"), 0});
  dup2(before, STDOUT_FILENO);
  EXPECT_EQ(lseek(output, 0, SEEK_END), 0);
  close(before);
  close(output);
  EXPECT_EQ(facts.plugin, "printing");
  EXPECT_THAT(facts.error, HasSubstr("the plugin has no device, and device 0 was requested"));
  EXPECT_THAT(facts.error, HasSubstr("; its last output: "));
  EXPECT_THAT(facts.error, HasSubstr("printing: looks for devices"));
  EXPECT_THAT(facts.error, HasSubstr("printing: the driver is missing"));
}

TEST(Supervisor, TheLastOutputIsShown) {
  EXPECT_OUTCOME(among_others([](Context&) {
                   static_cast<void>(!write(STDERR_FILENO, "driver says no\n", 15));
                   raise(SIGKILL);
                 }),
                 crash, "driver says no");
}

TEST(Supervisor, ExceptionsAreFailures) {
  EXPECT_OUTCOME(among_others([](Context&) { throw std::runtime_error("from a slot"); }), fail, "from a slot");
  EXPECT_OUTCOME(among_others([](Context&) { throw 7; }), fail, "unknown type");
}

TEST(Supervisor, AHangEnds) {
  EXPECT_OUTCOME(among_others([](Context&) { std::this_thread::sleep_for(std::chrono::hours(1)); }, 1, 1'000'000'000),
                 hang, "within 1 s");
}

TEST(Supervisor, AHangNamesTheSlotThatDoesNotReturn) {
  EXPECT_OUTCOME(among_others(
                     [](Context&) {
                       { const InSlot in(Slot::plan_create); }
                       const InSlot in(Slot::stream_wait);
                       pause();
                     },
                     1, 1'000'000'000),
                 hang, "it did not end within 1 s: stream_wait has not returned for ");
  EXPECT_OUTCOME(among_others(
                     [](Context&) {
                       { const InSlot in(Slot::stream_wait); }
                       pause();
                     },
                     1, 1'000'000'000),
                 hang, "it did not end within 1 s");
}

// Compilation may extend a case to four times its time limit, but no further.
TEST(Supervisor, ACompilerIsNoHang) {
  const auto compile = [](std::chrono::milliseconds time) {
    return [time](Context&) {
      const InSlot in(Slot::plan_create);
      std::this_thread::sleep_for(time);
    };
  };
  EXPECT_OUTCOME(among_others(compile(std::chrono::milliseconds(1500)), 1, 600'000'000), pass, "");
  EXPECT_OUTCOME(among_others(compile(std::chrono::hours(1)), 1, 700'000'000), hang,
                 "it did not end within 2 s: plan_create has not returned for ");
  EXPECT_OUTCOME(among_others(
                     [](Context&) {
                       const InSlot in(Slot::stream_wait);
                       std::this_thread::sleep_for(std::chrono::milliseconds(1500));
                     },
                     1, 600'000'000),
                 hang, "stream_wait");
}

TEST(Supervisor, ASlowCaseIsReportedWithItsSlotWhileItRuns) {
  const Catalogue catalogue = {named("a.b.quick", nothing), named("a.b.slow", [](Context&) {
                                 const InSlot in(Slot::plan_create);
                                 std::this_thread::sleep_for(std::chrono::seconds(4));
                               })};
  RunOptions options;
  std::vector<SlowCase> reports;
  options.slow = [&](const SlowCase& slow) { reports.push_back(slow); };
  const std::vector<Result> results = run(catalogue, {0, 1}, options);
  EXPECT_EQ(name_of(results[1].outcome), "pass");
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports[0].index, 1u);
  EXPECT_EQ(reports[0].slot, "plan_create");
  EXPECT_GE(reports[0].nanoseconds, 3'000'000'000u);
  EXPECT_GE(reports[0].slot_nanoseconds, 2'000'000'000u);
}

TEST(Supervisor, ARuntimeFailureNamesItsSteps) {
  const char own = 0, another = 0, other = 0, event = 0;
  const auto body = [&](Context& context) {
    count_stream(&own);
    count_stream(&another);
    count_event(&event);
    for (int round = 0; round < 3; ++round) {
      const InSlot copy(Slot::copy, &own);
      const InSlot record(Slot::event_record, &own, &event);
    }
    { const InSlot in(Slot::plan_create); }
    { const InSlot in(Slot::stream_wait, &other); }
    context.fail("no luck");
  };
  const Catalogue catalogue = {named("runtime.a.b", body), named("numeric.a.b", body),
                               named("runtime.a.thread", [&](Context& context) {
                                 const InSlot in(Slot::copy, &own);
                                 std::exception_ptr failure;
                                 std::thread([&] {
                                   try {
                                     context.fail("elsewhere");
                                   } catch (...) {
                                     failure = std::current_exception();
                                   }
                                 }).join();
                                 std::rethrow_exception(failure);
                               })};
  const std::vector<Result> results = run(catalogue, {0, 1, 2}, RunOptions());
  EXPECT_EQ(
      results[0].message,
      "no luck; step 7: event_record of event 1 on stream 1, copy on stream 1, event_record of event 1 on stream 1, "
      "copy on stream 1, event_record of event 1 on stream 1, stream_wait on a stream of the suite");
  EXPECT_EQ(results[1].message, "no luck");
  EXPECT_EQ(results[2].message, "elsewhere") << "the steps of this thread did not lead to it";
}

TEST(Supervisor, HangsOfAGroupAreBounded) {
  Catalogue catalogue;
  for (int index = 0; index < 200; ++index) {
    catalogue.push_back(named("group.hangs.n" + std::to_string(index), [](Context&) { pause(); }));
  }
  catalogue.push_back(named("other.case.one", nothing));
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  options.jobs = 2;
  options.limits.case_ns = 100'000'000;
  options.limits.hangs_per_group = 2;
  const std::vector<Result> results = run(catalogue, selection, options);
  const auto hung =
      std::count_if(results.begin(), results.end(), [](const Result& r) { return r.outcome == Outcome::hang; });
  EXPECT_LT(hung, 80) << "those that were handed out already may hang, too";
  EXPECT_EQ(results[150].outcome, Outcome::not_run);
  EXPECT_THAT(results[150].message, HasSubstr("hung before it, each with: it did not end"));
  EXPECT_EQ(results[200].outcome, Outcome::pass);
}

TEST(Supervisor, EqualFailuresOfAGroupAreBounded) {
  Catalogue catalogue;
  for (int index = 0; index < 100; ++index)
    catalogue.push_back(
        named("group.alike.n" + std::to_string(index), [](Context& context) { context.fail("no luck"); }));
  for (int index = 0; index < 40; ++index)
    catalogue.push_back(named("group.apart.n" + std::to_string(index),
                              [index](Context& context) { context.fail("no luck with {}", index); }));
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  const auto failed = [](const std::vector<Result>& results, ptrdiff_t first, ptrdiff_t last) {
    return std::count_if(results.begin() + first, results.begin() + last,
                         [](const Result& result) { return result.outcome == Outcome::fail; });
  };
  std::vector<Result> results = run(catalogue, selection, options);
  EXPECT_EQ(failed(results, 0, 100), options.limits.alike_per_group);
  EXPECT_EQ(results[99].outcome, Outcome::not_run);
  EXPECT_EQ(results[99].message, "8 cases of group.alike failed alike before it, each with: no luck");
  EXPECT_EQ(failed(results, 100, 140), 40) << "what says different things is run";
  options.limits.alike_per_group = 0;
  results = run(catalogue, selection, options);
  EXPECT_EQ(failed(results, 0, 140), 140);
}

TEST(Supervisor, DetailsOfOneCaseDoNotSeparateEqualFailures) {
  Catalogue catalogue;
  for (int index = 0; index < 40; ++index)
    catalogue.push_back(named("group.crashes.n" + std::to_string(index), [index](Context&) {
      const std::string said = "address " + std::to_string(index);
      static_cast<void>(!write(STDERR_FILENO, said.data(), said.size()));
      raise(SIGKILL);
    }));
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  const std::vector<Result> results = run(catalogue, selection, RunOptions());
  EXPECT_EQ(std::count_if(results.begin(), results.end(),
                          [](const Result& result) { return result.outcome == Outcome::crash; }),
            8);
  EXPECT_THAT(results[0].message, HasSubstr("address 0"));
}

TEST(Supervisor, AForkIsSeenAndEnds) {
  EXPECT_OUTCOME(among_others([](Context&) { static_cast<void>(!fork()); }), fail, "forked");
}

TEST(Supervisor, RemainingProcessesAreEnded) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Result result = among_others([&](Context&) {
    if (fork() == 0) {
      setsid();  // leaves the worker's process group
      static_cast<void>(!write(ends[1], "x", 1));
      pause();
      _exit(0);
    }
    char byte;
    static_cast<void>(!read(ends[0], &byte, 1));
  });
  EXPECT_THAT(result.message, HasSubstr("a child process remains"));
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "the stray process still holds the pipe";
  close(ends[0]);
}

TEST(Supervisor, ARemainingChildIsAFailure) {
  EXPECT_OUTCOME(among_others([](Context&) {
                   if (fork() == 0) execl("/bin/true", "true", nullptr);
                 }),
                 fail, "a child process remains");
}

TEST(Supervisor, ClosedDescriptorsAreACrashOfThatCase) {
  EXPECT_OUTCOME(among_others([](Context&) {
                   for (int fd = 0; fd < 1024; ++fd) close(fd);
                 }),
                 crash, "");
}

TEST(Supervisor, AFloodOfOutputIsAFailure) {
  EXPECT_OUTCOME(among_others([](Context&) {
                   const std::string line(1 << 12, 'x');
                   for (int index = 0; index < 1024; ++index)
                     static_cast<void>(!write(STDOUT_FILENO, line.data(), line.size()));
                 }),
                 fail, "bytes to standard output");
}

TEST(Supervisor, MemoryIsBounded) {
  EXPECT_OUTCOME(among_others([](Context&) {
                   for (;;) {
                     volatile char* bytes = new char[1 << 22];
                     for (int index = 0; index < 1 << 22; index += 4096) bytes[index] = 1;
                   }
                 }),
                 leak, "MiB");
}

TEST(Supervisor, RemainsOfACaseDoNotFailALaterCase) {
  Catalogue catalogue;
  constexpr size_t bytes = 4 << 20;
  for (int index = 0; index < 256; ++index)
    catalogue.push_back(named("group.keeps.n" + std::to_string(index), [](Context&) {
      volatile char* kept = new char[bytes];
      for (size_t at = 0; at < bytes; at += 4096) kept[at] = 1;
    }));
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  options.jobs = 2;
  options.limits.resident_bytes = uint64_t{512} << 20;
  for (const Result& result : run(catalogue, selection, options)) {
    ASSERT_EQ(name_of(result.outcome), "pass") << result.message;
  }
}

TEST(Supervisor, AChangedThreadStateIsAFailureAndRestored) {
  EXPECT_OUTCOME(among_others([](Context&) { std::fesetround(FE_UPWARD); }), fail, "rounding mode");
  EXPECT_OUTCOME(among_others([](Context&) {
                   sigset_t all;
                   sigfillset(&all);
                   pthread_sigmask(SIG_BLOCK, &all, nullptr);
                 }),
                 fail, "signal");
  EXPECT_OUTCOME(among_others([](Context&) { std::signal(SIGUSR1, SIG_IGN); }), fail, "handler");
  EXPECT_OUTCOME(among_others([](Context&) { setlocale(LC_ALL, "C.UTF-8"); }), fail, "locale");
  EXPECT_OUTCOME(among_others([](Context&) { static_cast<void>(!chdir("/")); }), fail, "working directory");
}

TEST(Supervisor, TheSlotThatChangesTheThreadIsNamed) {
  EXPECT_OUTCOME(among_others([](Context&) {
                   { const InSlot in(Slot::query); }
                   {
                     const InSlot in(Slot::plan_create);
                     std::signal(SIGUSR1, SIG_IGN);
                   }
                   const InSlot in(Slot::plan_execute);
                 }),
                 fail, "has another handler now; seen first after plan_create");
}

TEST(Supervisor, FailFastStops) {
  Catalogue catalogue;
  catalogue.push_back(named("a.b.fails", [](Context& context) { context.fail("no"); }));
  for (int index = 0; index < 1000; ++index) {
    catalogue.push_back(named("a.c.n" + std::to_string(index),
                              [](Context&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }));
  }
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  options.fail_fast = true;
  const std::vector<Result> results = run(catalogue, selection, options);
  EXPECT_EQ(results[0].outcome, Outcome::fail);
  EXPECT_EQ(results[1000].outcome, Outcome::not_run);
  EXPECT_THAT(results[1000].message, HasSubstr("stopped"));
}

TEST(Supervisor, NoDescriptorsAndNoChildrenStay) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  among_others([](Context&) { raise(SIGSEGV); }, 3);
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

// Number of cases that this worker process has run.
int cases_of_this_process = 0;

TEST(Supervisor, AFreshCaseHasAProcessOfItsOwn) {
  Catalogue catalogue;
  for (int index = 0; index < 120; ++index) {
    const bool fresh = index % 10 == 3 || index % 10 == 4;
    catalogue.push_back(named("group.fresh.n" + std::to_string(index), [fresh](Context& context) {
      ++cases_of_this_process;
      if (fresh) context.require(cases_of_this_process == 1, "{} cases ran here before", cases_of_this_process - 1);
    }));
    catalogue.back().fresh = fresh;
  }
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  for (const unsigned jobs : {1u, 3u}) {
    RunOptions options;
    options.jobs = jobs;
    for (const Result& result : run(catalogue, selection, options))
      EXPECT_EQ(name_of(result.outcome), "pass") << result.message;
  }
}

void expect_all_pass(const Catalogue& catalogue, unsigned jobs) {
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  RunOptions options;
  options.jobs = jobs;
  for (const Result& result : run(catalogue, selection, options))
    EXPECT_EQ(name_of(result.outcome), "pass") << result.message;
}

// The large cases count how many of them run at once, in memory that all workers share.
TEST(Supervisor, FewLargeCasesRunAtOnce) {
  struct Shared {
    std::atomic<int> now, most, others_at_the_same_time, large, others;
  };
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const auto& [jobs, expected] : {std::pair{1u, 1}, {3u, 1}, {8u, 2}}) {
    auto* const shared = new (memory) Shared();
    Catalogue catalogue;
    for (int index = 0; index < 200; ++index) {
      const bool large = index % 5 == 2;
      catalogue.push_back(named("group.large.n" + std::to_string(index), [=](Context&) {
        if (large) {
          const int now = ++shared->now;
          for (int most = shared->most; now > most && !shared->most.compare_exchange_weak(most, now);) continue;
        } else if (shared->now > 0) {
          ++shared->others_at_the_same_time;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (large) --shared->now;
        ++(large ? shared->large : shared->others);
      }));
      catalogue.back().large = large;
    }
    expect_all_pass(catalogue, jobs);
    EXPECT_EQ(shared->large, 40);
    EXPECT_EQ(shared->others, 160);
    EXPECT_LE(shared->most, expected) << jobs << " workers";
    EXPECT_EQ(shared->others_at_the_same_time > 0, jobs > 1) << "the other workers run other cases meanwhile";
  }
  munmap(memory, sizeof(Shared));
}

// The cases count how many of them run at once, in memory that all workers share.
TEST(Supervisor, ACaseThatNeedsAllMemoryRunsAlone) {
  struct Shared {
    std::atomic<int> now, alone, alone_beside_others, most;
  };
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const unsigned jobs : {1u, 2u, 8u}) {
    auto* const shared = new (memory) Shared();
    Catalogue catalogue;
    for (int index = 0; index < 120; ++index) {
      const bool alone = index % 10 == 3;
      catalogue.push_back(named("group.alone.n" + std::to_string(index), [=](Context&) {
        const int now = ++shared->now;
        for (int most = shared->most; now > most && !shared->most.compare_exchange_weak(most, now);) continue;
        for (int tenth = 0; tenth < 10; ++tenth) {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          if (alone && shared->now != 1) ++shared->alone_beside_others;
        }
        if (alone) ++shared->alone;
        --shared->now;
      }));
      catalogue.back().alone = alone;
      catalogue.back().fresh = index % 10 == 5;
      catalogue.back().large = index % 10 == 7;
    }
    expect_all_pass(catalogue, jobs);
    EXPECT_EQ(shared->alone, 12);
    EXPECT_EQ(shared->alone_beside_others, 0) << jobs << " workers";
    EXPECT_EQ(shared->most > 1, jobs > 1) << "the other cases run at once";
  }
  munmap(memory, sizeof(Shared));
}

bp_status plan_create_status = BP_OK;
bp_status plan_create(bp_device*, const bp_op_desc*, bp_plan**, bp_plan_info*, bp_error*) { return plan_create_status; }

// Returns a case that requests a plan for the operator neg on `count` elements, with a bp_plan_info of `struct_size`
// bytes. The test's own plan_create returns `status`.
Case plan_case(std::string id, int64_t count, bp_status status, bool fresh,
               uint32_t struct_size = sizeof(bp_plan_info)) {
  Case made = named(std::move(id), [=](Context&) {
    bp_tensor_desc view = {};
    view.dtype = BP_F32;
    view.rank = 1;
    view.shape[0] = count;
    view.strides[0] = 1;
    bp_op_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.op = BP_OP_NEG;
    desc.inputs = desc.outputs = &view;
    desc.input_count = desc.output_count = 1;
    plan_create_status = status;
    bp_plan_info info = {};
    info.struct_size = struct_size;
    EXPECT_EQ(PlanSupport::watch(plan_create)(nullptr, &desc, nullptr, &info, nullptr), status);
    PlanSupport::unwatch(plan_create);
  });
  made.fresh = fresh;
  return made;
}

TEST(Supervisor, AResultOfPlanCreateStaysForAllProcesses) {
  Catalogue catalogue;
  for (const bool fresh : {false, true}) {
    const std::string where = fresh ? "group.fresh." : "group.plain.";
    const int64_t first = fresh ? 100 : 1;
    catalogue.push_back(plan_case(where + "takes_one", first, BP_OK, fresh));
    catalogue.push_back(plan_case(where + "takes_it_again", first, BP_OK, fresh));
    catalogue.push_back(plan_case(where + "declines_two", first + 1, BP_UNSUPPORTED, fresh));
    catalogue.push_back(plan_case(where + "declines_one", first, BP_UNSUPPORTED, fresh));
    catalogue.push_back(plan_case(where + "lacks_memory_for_one", first, BP_OUT_OF_MEMORY, fresh));
    catalogue.push_back(plan_case(where + "takes_two", first + 1, BP_OK, fresh));
    catalogue.push_back(plan_case(where + "fails_for_one", first, BP_INTERNAL, fresh));
    catalogue.push_back(plan_case(where + "refuses_one", first, BP_INVALID_ARGUMENT, fresh));
    catalogue.push_back(plan_case(where + "refuses_a_small_struct", first, BP_INVALID_ARGUMENT, fresh, 4));
    catalogue.push_back(plan_case(where + "refuses_three", first + 2, BP_INVALID_ARGUMENT, fresh));
    catalogue.push_back(plan_case(where + "takes_three", first + 2, BP_OK, fresh));
    catalogue.push_back(plan_case(where + "fails_for_two", first + 1, BP_INTERNAL, fresh));
  }
  std::vector<size_t> selection(catalogue.size());
  for (size_t index = 0; index < selection.size(); ++index) selection[index] = index;
  const std::vector<Result> results = run(catalogue, selection, RunOptions{});
  for (const size_t first : {0, 12}) {
    const std::string group = first == 0 ? "group.plain." : "group.fresh.";
    for (const size_t passes : {0, 1, 2, 4, 8, 9, 10, 11})
      EXPECT_EQ(results[first + passes].outcome, Outcome::pass) << catalogue[first + passes].id;
    EXPECT_EQ(results[first + 3].outcome, Outcome::fail);
    EXPECT_THAT(results[first + 3].message, HasSubstr("which it accepted in case " + group + "takes_one"));
    EXPECT_EQ(results[first + 5].outcome, Outcome::fail);
    EXPECT_THAT(results[first + 5].message, HasSubstr("which it declined in case " + group + "declines_two"));
    for (const auto& [index, status] : {std::pair{6, "INTERNAL"}, std::pair{7, "INVALID_ARGUMENT"}}) {
      const Result& broken = results[first + static_cast<size_t>(index)];
      EXPECT_EQ(broken.outcome, Outcome::fail);
      EXPECT_THAT(broken.message, HasSubstr("plan_create returned " + std::string(status) + " for neg"));
      EXPECT_THAT(broken.message, HasSubstr("which it accepted in case " + group + "takes_one"));
    }
  }
}

TEST(Context, DataDependOnSeedAndIdAlone) {
  const Case one = named("a.b.one", nothing), two = named("a.b.two", nothing);
  Session session{"", 0, 7, nullptr, nullptr}, other{"", 0, 8, nullptr, nullptr};
  const uint64_t first = Context(session, one).random()();
  EXPECT_EQ(Context(session, one).random()(), first);
  EXPECT_NE(Context(session, two).random()(), first);
  EXPECT_NE(Context(other, one).random()(), first);
}

}  // namespace
}  // namespace backplane::conformance::test
