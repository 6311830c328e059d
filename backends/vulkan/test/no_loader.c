/* SPDX-License-Identifier: Apache-2.0 */
/* If preloaded, simulates a machine without the Vulkan loader. dlopen fails for the loader's name
 * and works for all other names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void* dlopen(const char* name, int flags) {
  void* (*real)(const char*, int) = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "dlopen");
  if (name != NULL && strcmp(name, "libvulkan.so.1") == 0) return real("/nowhere/libvulkan.so.1", flags);
  return real(name, flags);
}
