// SPDX-License-Identifier: Apache-2.0
// A framework of 0.2: framework PLUGIN. Prints what came of each of its calls, a line each.
#include "framework.hpp"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  framework::Session session(arguments[1]);
  framework::report_old_calls(session);
  return 0;
}
