// SPDX-License-Identifier: Apache-2.0
// A framework that links bph_device_later directly, so the program does not start with an older
// library.
#include <backplane/backplane.h>

#include <cstdio>

int main() {
  uint64_t number = 0;
  std::printf("bph_ function, not looked up\t%s\n", bph_status_name(bph_device_later(nullptr, &number, nullptr)));
  return 0;
}
