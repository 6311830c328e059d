/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: a machine without Vulkan's loader. Its name leads to a file that is not there; all else is opened as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void* dlopen(const char* name, int flags) {
  void* (*real)(const char*, int) = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "dlopen");
  if (name != NULL && strcmp(name, "libvulkan.so.1") == 0) return real("/nowhere/libvulkan.so.1", flags);
  return real(name, flags);
}
