/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces system functions with versions that fail if fault_point() selects the call. This file
 * declares most of the system functions itself, because a system header may rename a function, such
 * as open to open64. */
#define _GNU_SOURCE
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/types.h>

int fault_point(unsigned kind);
void fault_block(int change);

enum { MEMORY = 1, FILES = 2, DYNAMIC_LINKER = 4, THREADS = 8 };

struct stat;
struct stat64;

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name)

#define FILE_CALL(name, result, parameters, arguments) \
  result name parameters;                              \
  result name parameters {                             \
    REAL(name);                                        \
    if (fault_point(FILES)) {                          \
      errno = EIO;                                     \
      return (result)-1;                               \
    }                                                  \
    return real arguments;                             \
  }

#define OPEN_CALL(name)                           \
  int name(const char* path, int flags, ...);     \
  int name(const char* path, int flags, ...) {    \
    va_list list;                                 \
    va_start(list, flags);                        \
    const unsigned mode = va_arg(list, unsigned); \
    va_end(list);                                 \
    REAL(name);                                   \
    if (fault_point(FILES)) {                     \
      errno = EMFILE;                             \
      return -1;                                  \
    }                                             \
    return real(path, flags, mode);               \
  }

OPEN_CALL(open)
OPEN_CALL(open64)
FILE_CALL(fstat, int, (int file, struct stat* out), (file, out))
FILE_CALL(fstat64, int, (int file, struct stat64* out), (file, out))
FILE_CALL(stat, int, (const char* path, struct stat* out), (path, out))
FILE_CALL(stat64, int, (const char* path, struct stat64* out), (path, out))
FILE_CALL(lstat, int, (const char* path, struct stat* out), (path, out))
FILE_CALL(lstat64, int, (const char* path, struct stat64* out), (path, out))
FILE_CALL(read, ssize_t, (int file, void* out, size_t bytes), (file, out, bytes))
FILE_CALL(pread, ssize_t, (int file, void* out, size_t bytes, long at), (file, out, bytes, at))
FILE_CALL(pread64, ssize_t, (int file, void* out, size_t bytes, long at), (file, out, bytes, at))
FILE_CALL(readlink, ssize_t, (const char* path, char* out, size_t bytes), (path, out, bytes))

void* opendir(const char* path);
void* opendir(const char* path) {
  REAL(opendir);
  if (fault_point(FILES)) {
    errno = EMFILE;
    return NULL;
  }
  return real(path);
}

void* dlopen(const char* path, int mode) {
  REAL(dlopen);
  return fault_point(DYNAMIC_LINKER) ? NULL : real(path, mode);
}

int pthread_create(void* out, const void* attributes, void* (*start)(void*), void* argument);
int pthread_create(void* out, const void* attributes, void* (*start)(void*), void* argument) {
  REAL(pthread_create);
  return fault_point(THREADS) ? EAGAIN : real(out, attributes, start, argument);
}

#ifndef FAULT_POINTS_OWN_NEW
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);

static void* made(void* block) {
  if (block != NULL) fault_block(1);
  return block;
}
static int fails(void) {
  if (!fault_point(MEMORY)) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes);
void* malloc(size_t bytes) { return fails() ? NULL : made(__libc_malloc(bytes)); }

void* calloc(size_t count, size_t bytes);
void* calloc(size_t count, size_t bytes) { return fails() ? NULL : made(__libc_calloc(count, bytes)); }

void* realloc(void* block, size_t bytes);
void* realloc(void* block, size_t bytes) {
  if (fails()) return NULL;
  void* grown = __libc_realloc(block, bytes);
  return block == NULL ? made(grown) : grown;
}

void* aligned_alloc(size_t alignment, size_t bytes);
void* aligned_alloc(size_t alignment, size_t bytes) { return fails() ? NULL : made(__libc_memalign(alignment, bytes)); }

int posix_memalign(void** out, size_t alignment, size_t bytes);
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *out = made(__libc_memalign(alignment, bytes));
  return *out != NULL ? 0 : ENOMEM;
}

void free(void* block);
void free(void* block) {
  if (block != NULL) fault_block(-1);
  __libc_free(block);
}
#endif
