// SPDX-License-Identifier: Apache-2.0
// Expectations for calls that return a status. Each macro defines a fresh `bp_error` named `error`,
// so the argument `call` must pass `&error`.
#pragma once

#include <backplane/base.h>
#include <gtest/gtest.h>

#include <string>

namespace backplane::core::test {

struct ErrorRecord : bp_error {
  ErrorRecord() : bp_error{} { struct_size = sizeof(bp_error); }
};

// Disables -Wshadow, because a fixture may have a member `error`.
#define BACKPLANE_FRESH_ERROR                                                                   \
  _Pragma("GCC diagnostic push")                                                                \
      _Pragma("GCC diagnostic ignored \"-Wshadow\"")::backplane::core::test::ErrorRecord error; \
  _Pragma("GCC diagnostic pop")

#define EXPECT_OK(call)                                         \
  do {                                                          \
    BACKPLANE_FRESH_ERROR                                       \
    EXPECT_EQ((call), BP_OK) << #call << ": " << error.message; \
  } while (false)

#define ASSERT_OK(call)                                         \
  do {                                                          \
    BACKPLANE_FRESH_ERROR                                       \
    ASSERT_EQ((call), BP_OK) << #call << ": " << error.message; \
  } while (false)

// Expects that the call returns `expected` and that its message contains `text`.
#define EXPECT_FAILS(call, expected, text)                                                                 \
  do {                                                                                                     \
    BACKPLANE_FRESH_ERROR                                                                                  \
    EXPECT_EQ((call), expected) << #call << ": " << error.message;                                         \
    EXPECT_NE(std::string(error.message).find(text), std::string::npos) << #call << ": " << error.message; \
  } while (false)

}  // namespace backplane::core::test
