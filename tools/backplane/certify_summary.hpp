// SPDX-License-Identifier: Apache-2.0
// Prints the summary of a run on standard output: the causes of failures, then the verdict.
#pragma once

#include <nlohmann/json.hpp>

#include "session.hpp"

namespace tool {

void print_summary(Session& session, const nlohmann::json& certificate);
// Prints the causes of the failures so far, and the options that continue the interrupted run.
void print_interrupted(Session& session, const nlohmann::json& certificate);

}  // namespace tool
