// SPDX-License-Identifier: Apache-2.0
// Headers that most tests include. The build precompiles them for each test program with several sources. Each source
// still includes all headers that it uses, because builds with -Db_pch=false do not use this file.
#include "standard_headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
