/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that all other headers of the ABI use: the export macro, status codes, the error
 * record.
 *
 * A struct has one of three roles. Each extensible struct begins with `uint32_t struct_size`:
 *   input   the callee reads the part that both sides know, and rejects non-zero bytes beyond it
 *           (UNSUPPORTED);
 *   output  the callee reads struct_size only, writes the part that it knows and zeroes the rest;
 *   table   the reader ignores the tail that it does not know, and treats a missing slot as null.
 * A struct grows only at its tail. Its minimum size (BP_*_MIN_SIZE) is frozen when it is
 * introduced.
 *
 * From 0.2 on a minor version only appends. docs/spec/growth.md explains these rules of growth:
 *   neutral     a later field, attribute, scalar, operand or flag that is zero or absent means the
 *               earlier behaviour; in an output zero means "not stated".
 *   canonical   absent operands at the end, zero scalars beyond the minimum count and zero
 *               attributes do not count. Both sides drop them before they check a count.
 *   gate        core sends a plugin only what the tables of the plugin's own abi_version allowed.
 *               Core treats the rest as if the plugin had returned UNSUPPORTED. Hints and
 *               permissions pass the gate, because a plugin ignores those that it does not know.
 *   refusal     INVALID_ARGUMENT is for a closed list of defects (growth.md). Everything else that
 *               is not accepted is UNSUPPORTED.
 *   primitive   a primitive gains an attribute, an operand or a dtype only together with a
 *               decomposition into its earlier form.
 *   consent     bp_execution gets a later field only if a flag of the plan's descriptor requested
 *               it.
 *   ignorable   input consists of `hints`, the hint bits of a view and the permissions of
 *               `precision`, and of nothing else. */
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

/* Marks the only symbol that a plugin exports, regardless of the default visibility. */
#if defined(_WIN32)
#define BP_EXPORT BP_EXTERN_C __declspec(dllexport)
#else
#define BP_EXPORT BP_EXTERN_C __attribute__((visibility("default")))
#endif

/* Asserts the frozen size of a struct at its introduction, in bytes. Growth never changes it. */
#define BP_FROZEN_MIN(type, bytes) BP_STATIC_ASSERT(sizeof(type) >= (bytes), #type " shrank")

/* True if a struct of `size` bytes contains `member` completely. Test this before you read a field
 * beyond the minimum size. */
#define BP_HAS_FIELD(size, type, member) ((size) >= offsetof(type, member) + sizeof(((const type*)0)->member))
/* True if a table has the slot: its version has reached the slot's `since`, and it contains the
 * slot completely. The version is bp_host.abi_version for bp_host, and bp_plugin.abi_version for
 * every table of a plugin. If only the size were tested, a private field after a table would look
 * like a slot. */
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
/* The version of the last break. A host loads plugins of its major version that were built for this
 * version or a later one. A plugin states it as abi_version_min unless it needs a later version. A
 * later break before 1.0 raises this version; from 1.0 on it is major << 16. */
#define BP_ABI_VERSION_OLDEST BP_VERSION(0, 2)

/* The maximum size of an input struct in bytes. A larger struct_size is INVALID_ARGUMENT, and the
 * callee reads no byte beyond the limit. */
#define BP_STRUCT_LIMIT 4096u

/* A status; its numbers are frozen. A reader treats an unknown number as BP_INTERNAL. */
typedef int32_t bp_status;

#define BP_OK 0
#define BP_INVALID_ARGUMENT 1  /* the caller broke a stated rule; nothing was changed */
#define BP_UNSUPPORTED 2       /* not supported; returned only before execution */
#define BP_OUT_OF_MEMORY 3     /* nothing was changed or enqueued, and a retry is legal */
#define BP_NOT_READY 4         /* event_elapsed before both events have passed */
#define BP_TIMEOUT 5           /* a wait timed out; the work continues. Timeout 0: not done yet */
#define BP_DEVICE_LOST 6       /* permanent: the device is unusable */
#define BP_UNAVAILABLE 7       /* a driver, library or device is missing or busy; see the message */
#define BP_ABI_MISMATCH 8      /* no common version; the message states the side that must change */
#define BP_INTERNAL 9          /* a defect of the callee */
#define BP_EXECUTION_FAILED 10 /* accepted work failed; permanent for the stream */

/* The error record. Its message states the call, the cause and the remedy.
 * Role: owned by the caller, which sets only struct_size; may be null. The callee fills it on
 * failure, and does not write it on OK, NOT_READY and TIMEOUT. A struct_size below
 * BP_ERROR_MIN_SIZE counts as null. Its layout is the same in every major version. */
typedef struct bp_error {
  uint32_t struct_size;
  bp_status status;
  int64_t vendor_code;     /* the error number of the vendor's library, 0 if none */
  uint32_t op;             /* operator id, 0 if none */
  uint32_t message_length; /* bytes before the NUL */
  char message[488];       /* UTF-8, NUL-terminated, cut between characters */
} bp_error;
#define BP_ERROR_MIN_SIZE 512u
BP_FROZEN_MIN(bp_error, BP_ERROR_MIN_SIZE);

/* Severity of a log line. */
#define BP_LOG_ERROR 1
#define BP_LOG_WARNING 2
#define BP_LOG_INFO 3
#define BP_LOG_DEBUG 4

#endif
