// SPDX-License-Identifier: Apache-2.0
// Standard headers that most sources include. The build precompiles them once for each large target. Each source still
// includes all headers that it uses, because builds with -Db_pch=false do not use this file.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
