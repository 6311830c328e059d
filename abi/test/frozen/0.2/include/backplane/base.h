/* SPDX-License-Identifier: Apache-2.0 */
/* What every other header of the ABI stands on: the export macro, status codes, the error record.
 *
 * Structs come in three roles, and each extensible one begins with `uint32_t struct_size`:
 *   input   the callee reads what both know and rejects non-zero bytes beyond that (UNSUPPORTED);
 *   output  the callee reads struct_size only, writes the part that it knows and zeroes the rest;
 *   table   the reader ignores the tail that it does not know, and treats a missing slot as null.
 * A struct grows at its tail only. Its minimum size (BP_*_MIN_SIZE) is frozen when the struct is introduced.
 *
 * From 0.2 on a minor only appends. The rules of growth, with examples in docs/spec/growth.md:
 *   neutral     a later field, attribute, scalar, operand or flag means the earlier behaviour where it is zero or absent;
 *               in an output zero means "not said".
 *   canonical   absent operands at the end, zero scalars behind the least count and zero attributes do not count: both
 *               sides drop them before they check a count.
 *   gate        core asks a plugin only for what the tables of the plugin's own abi_version allowed. The rest is
 *               answered as if the plugin had said UNSUPPORTED. Hints and permissions pass: unknown ones are ignored.
 *   refusal     INVALID_ARGUMENT is for a closed list of defects (growth.md); everything else that is not taken is
 *               UNSUPPORTED.
 *   primitive   one gains an attribute, an operand or a dtype only together with a decomposition into its earlier form.
 *   consent     bp_execution gets a later field only where a flag of the plan's descriptor asked for it.
 *   ignorable   input is `hints`, the hint bits of a view and the permissions of `precision`, and nothing else. */
#ifndef BACKPLANE_BASE_H
#define BACKPLANE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define BP_EXTERN_C extern "C"
#define BP_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define BP_EXTERN_C
#define BP_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif

/* Marks the one symbol that a plugin exports, whatever its default visibility is. */
#if defined(_WIN32)
#define BP_EXPORT BP_EXTERN_C __declspec(dllexport)
#else
#define BP_EXPORT BP_EXTERN_C __attribute__((visibility("default")))
#endif

/* The size of a struct at its introduction, in bytes. Frozen: later growth never changes it. */
#define BP_FROZEN_MIN(type, bytes) BP_STATIC_ASSERT(sizeof(type) >= (bytes), #type " shrank")

/* True if a struct of `size` bytes holds `member` whole: the guard before reading a field that came after the minimum. */
#define BP_HAS_FIELD(size, type, member) ((size) >= offsetof(type, member) + sizeof(((const type*)0)->member))
/* True if a table holds the slot: by its version, which no private field behind a table can counterfeit, and whole. The version
 * is bp_host.abi_version for bp_host, and bp_plugin.abi_version for every table of a plugin; `since` is the slot's own. */
#define BP_HAS_SLOT(version, size, type, member, since) ((version) >= (since) && BP_HAS_FIELD(size, type, member))

BP_STATIC_ASSERT(sizeof(void*) == 8, "the ABI is of 64-bit, little-endian processes");
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the ABI is of 64-bit, little-endian processes"
#endif

/* ABI version of these headers, major << 16 | minor. Not the package version. */
#define BP_ABI_VERSION_MAJOR 0u
#define BP_ABI_VERSION_MINOR 2u
#define BP_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define BP_ABI_VERSION BP_VERSION(BP_ABI_VERSION_MAJOR, BP_ABI_VERSION_MINOR)
/* The version of the last break. A host loads plugins of its major that were built for this version or a later one; a plugin
 * states it as abi_version_min unless it says otherwise. A later break before 1.0 raises it; from 1.0 on it is major << 16. */
#define BP_ABI_VERSION_OLDEST BP_VERSION(0, 2)

/* No input struct is longer: a greater struct_size is INVALID_ARGUMENT, and no byte behind it is read. */
#define BP_STRUCT_LIMIT 4096u

typedef int32_t bp_status; /* frozen numbers; a reader treats a number that it does not know as BP_INTERNAL */

#define BP_OK 0
#define BP_INVALID_ARGUMENT 1  /* the caller broke a stated rule; nothing was changed */
#define BP_UNSUPPORTED 2       /* a truthful "no", given before execution only */
#define BP_OUT_OF_MEMORY 3     /* device or host memory; nothing was changed or enqueued, and a retry is legal */
#define BP_NOT_READY 4         /* event_elapsed before both events have passed */
#define BP_TIMEOUT 5           /* a wait ran out; the work goes on. With timeout 0 it means "not yet" */
#define BP_DEVICE_LOST 6       /* sticky on the device */
#define BP_UNAVAILABLE 7       /* a driver, library or device is missing or busy; the message says which */
#define BP_ABI_MISMATCH 8      /* host and plugin have no common version; the message says which side must change */
#define BP_INTERNAL 9          /* a defect of the callee */
#define BP_EXECUTION_FAILED 10 /* sticky on the stream: work that was accepted failed, the device lives */

/* The error record. Role: owned by the caller, which sets struct_size and nothing else; may be null. The callee fills it
 * on failure and leaves it alone on OK, NOT_READY and TIMEOUT. A struct_size below BP_ERROR_MIN_SIZE counts as null.
 * Its layout is the same in every major version. */
typedef struct bp_error {
  uint32_t struct_size;
  bp_status status;
  int64_t vendor_code;     /* the vendor library's own number, 0 if none */
  uint32_t op;             /* operator id, 0 if none */
  uint32_t message_length; /* bytes before the NUL */
  char message[488];       /* UTF-8, NUL-terminated, truncated on a character: who, what, why, what to do */
} bp_error;
#define BP_ERROR_MIN_SIZE 512u
BP_FROZEN_MIN(bp_error, BP_ERROR_MIN_SIZE);

/* Severity of a log line. */
#define BP_LOG_ERROR 1
#define BP_LOG_WARNING 2
#define BP_LOG_INFO 3
#define BP_LOG_DEBUG 4

#endif
