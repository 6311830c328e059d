/* SPDX-License-Identifier: Apache-2.0 */
/* If preloaded, simulates a machine without the Vulkan loader. dlopen of the loader's name fails,
 * and all other calls of dlopen work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void* dlopen(const char* name, int flags) {
  void* (*real)(const char*, int) = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "dlopen");
  if (name != NULL && strcmp(name, "libvulkan.so.1") == 0) return real("/nowhere/libvulkan.so.1", flags);
  return real(name, flags);
}
