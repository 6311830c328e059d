// SPDX-License-Identifier: Apache-2.0
// Prints the table of mutants as JSON, for the tests that run the mutants.
#include <cstdio>

int main() {
  const char* separator = "[";
#define MUTANT(number, name, kind, filter, text)                                                                  \
  std::printf("%s\n{\"number\": %d, \"name\": \"%s\", \"kind\": \"%s\", \"filter\": \"%s\", \"defect\": \"%s\"}", \
              separator, number, #name, #kind, filter, text);                                                     \
  separator = ",";
#include "mutants.def"
#undef MUTANT
  std::puts("\n]");
  return 0;
}
