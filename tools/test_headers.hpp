// SPDX-License-Identifier: Apache-2.0
// Headers that most tests include. They are precompiled for each test program with several sources.
// Each source still includes what it uses, because -Db_pch=false builds without this file.
#include "standard_headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
