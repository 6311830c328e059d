// SPDX-License-Identifier: Apache-2.0
// A framework that calls the new bph_ function without asking whether it is there: with an older library it does not start.
#include <backplane/backplane.h>

#include <cstdio>

int main() {
  uint64_t number = 0;
  std::printf("bph_ function, not looked up\t%s\n", bph_status_name(bph_device_later(nullptr, &number, nullptr)));
  return 0;
}
