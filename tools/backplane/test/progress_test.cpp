// SPDX-License-Identifier: Apache-2.0
// Tests the progress that a run prints while the run lasts.
#include <gmock/gmock.h>

#include <memory>

#include "certify_progress.hpp"

namespace tool {
namespace {

using testing::HasSubstr;

struct Shown {
  explicit Shown(CertifyProgress::Manner manner) : progress(file.get(), manner) {}
  // Returns the text that the progress prints at `second` of the run.
  std::string at(double second) {
    const long before = std::ftell(file.get());
    now.seconds = second;
    progress.show(now);
    std::string text(static_cast<size_t>(std::ftell(file.get()) - before), ' ');
    std::fseek(file.get(), before, SEEK_SET);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
    return text;
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), &std::fclose};
  CertifyProgress progress;
  backplane::conformance::Progress now{.done = 40, .total = 100, .failures = 3};
};

TEST(CertifyProgress, AQuietRunShowsALineAMinute) {
  Shown shown(CertifyProgress::Manner::quiet);
  EXPECT_EQ(shown.at(0), "");
  EXPECT_EQ(shown.at(59), "");
  EXPECT_THAT(shown.at(61), HasSubstr(" 40 % 40 of 100 cases, 3 failed"));
  EXPECT_EQ(shown.at(100), "");
  EXPECT_THAT(shown.at(122), HasSubstr("40 of 100"));
}

TEST(CertifyProgress, AQuietRunPrintsNoFailureInBetween) {
  Shown shown(CertifyProgress::Manner::quiet);
  backplane::conformance::Case which;
  which.id = "a.b.c";
  const backplane::conformance::Result result{backplane::conformance::Outcome::fail, "no luck"};
  shown.now.latest = &which;
  shown.now.result = &result;
  EXPECT_EQ(shown.at(1), "");
  Shown lines(CertifyProgress::Manner::lines);
  lines.now = shown.now;
  EXPECT_THAT(lines.at(1), HasSubstr("fail: a.b.c: no luck\n"));
}

TEST(CertifyProgress, ASlowCaseIsNamedWithItsSlot) {
  backplane::conformance::Case which;
  which.id = "numeric.conv2d.f32.wide";
  for (const auto manner :
       {CertifyProgress::Manner::quiet, CertifyProgress::Manner::lines, CertifyProgress::Manner::bar}) {
    Shown shown(manner);
    shown.now.slow = &which;
    shown.now.slow_seconds = 75;
    shown.now.slot = "plan_create";
    shown.now.slot_seconds = 12;
    const std::string text = shown.at(100);
    if (manner != CertifyProgress::Manner::bar) {
      EXPECT_THAT(text, HasSubstr("; numeric.conv2d.f32.wide for 1 min 15 s, in plan_create for 12 s\n"));
    } else {
      EXPECT_THAT(text, HasSubstr("; numeric"));
      EXPECT_EQ(text.find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tool
