/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that all other headers of the ABI use: the export macro, status codes and the error
 * record.
 *
 * Each extensible struct begins with `uint32_t struct_size` and has one of three roles:
 *   input   the callee reads the part that both sides know, and returns UNSUPPORTED if any byte
 *           beyond that part is not zero;
 *   output  the callee reads struct_size only, writes the part that it knows and zeroes the other
 *           bytes;
 *   table   the reader ignores the tail that it does not know, and treats a missing slot as null.
 * A struct grows only at its tail. Its minimum size (BP_*_MIN_SIZE) is frozen when it is
 * introduced.
 *
 * From 0.2 on a minor version only adds to the ABI. docs/spec/growth.md explains these rules of
 * growth:
 *   neutral     a field, attribute, scalar, operand or flag that a later version added keeps the
 *               earlier behaviour if it is zero or absent. Zero in an output means "not stated".
 *   canonical   before they check a count, the host and the plugin drop trailing absent operands,
 *               trailing zero scalars beyond the minimum count, and trailing zero attributes.
 *   gate        core sends a plugin only input that exists in the ABI version of the plugin
 *               (bp_plugin.abi_version). For all other input core acts as if the plugin had
 *               returned UNSUPPORTED. Hints and precision-relaxation flags pass the gate, because a
 *               plugin ignores unknown bits of both.
 *   refusal     growth.md has the complete list of defects for which the status is
 *               INVALID_ARGUMENT. All other input that is not accepted is UNSUPPORTED.
 *   primitive   a primitive gains an attribute, an operand or a dtype only together with a
 *               decomposition that uses the primitive's earlier form.
 *   consent     bp_execution contains a field of a later version only if a flag of the plan's
 *               descriptor requested that field.
 *   ignorable   a callee may ignore unknown bits only in `hints`, in the hint bits of a view and in
 *               the flags of `precision`. */
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

/* Exports the only symbol of a plugin, regardless of the compiler's default visibility. */
#if defined(_WIN32)
#define BP_EXPORT BP_EXTERN_C __declspec(dllexport)
#else
#define BP_EXPORT BP_EXTERN_C __attribute__((visibility("default")))
#endif

/* Asserts that a struct has at least `bytes` bytes, the frozen size of its first version. */
#define BP_FROZEN_MIN(type, bytes) BP_STATIC_ASSERT(sizeof(type) >= (bytes), #type " shrank")

/* True if a struct of `size` bytes contains `member` completely. Use this macro before you read a
 * field beyond the struct's minimum size. */
#define BP_HAS_FIELD(size, type, member) ((size) >= offsetof(type, member) + sizeof(((const type*)0)->member))
/* True if a table has the slot `member`: the table's version is at least `since`, and the table
 * contains the slot completely. The version is bp_host.abi_version for bp_host, and
 * bp_plugin.abi_version for every table of a plugin. A test of the size alone would mistake a
 * private field after a table for a slot. */
#define BP_HAS_SLOT(version, size, type, member, since) ((version) >= (since) && BP_HAS_FIELD(size, type, member))

BP_STATIC_ASSERT(sizeof(void*) == 8, "the ABI is of 64-bit, little-endian processes");
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the ABI is of 64-bit, little-endian processes"
#endif

/* ABI version of these headers, major << 16 | minor. The package has a separate version. */
#define BP_ABI_VERSION_MAJOR 0u
#define BP_ABI_VERSION_MINOR 3u
#define BP_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define BP_ABI_VERSION BP_VERSION(BP_ABI_VERSION_MAJOR, BP_ABI_VERSION_MINOR)
/* The last version that broke compatibility. A host loads plugins of its major version that were
 * built for this version or a later version. A plugin states this version as abi_version_min unless
 * the plugin needs a later version. A further break before 1.0 raises this version; from 1.0 on the
 * value is major << 16. */
#define BP_ABI_VERSION_OLDEST BP_VERSION(0, 2)

/* The maximum size of an input struct in bytes. A larger struct_size is INVALID_ARGUMENT, and the
 * callee reads no byte beyond the limit. */
#define BP_STRUCT_LIMIT 4096u

/* A status code. The numbers are frozen. A reader treats an unknown number as BP_INTERNAL. */
typedef int32_t bp_status;

#define BP_OK 0
#define BP_INVALID_ARGUMENT 1  /* the caller violated a rule of the ABI; the call changed nothing */
#define BP_UNSUPPORTED 2       /* the request is not supported; no execution returns this status */
#define BP_OUT_OF_MEMORY 3     /* the call changed and enqueued nothing; the caller may retry */
#define BP_NOT_READY 4         /* event_elapsed was called before both events had completed */
#define BP_TIMEOUT 5           /* the work did not complete within the timeout, and continues */
#define BP_DEVICE_LOST 6       /* the device is permanently unusable */
#define BP_UNAVAILABLE 7       /* a driver, library or device is missing or busy; see the message */
#define BP_ABI_MISMATCH 8      /* no common ABI version; the message names the side to update */
#define BP_INTERNAL 9          /* the callee has a defect */
#define BP_EXECUTION_FAILED 10 /* accepted work failed; the stream stays failed */

/* The error record. Its message states the call, the cause and the remedy.
 * The caller owns the record, sets only struct_size, and may pass null instead. The callee fills
 * the record on failure, and does not write it on OK, NOT_READY and TIMEOUT. A record with a
 * struct_size below BP_ERROR_MIN_SIZE is treated as null. The layout of the record is the same in
 * every major version. */
typedef struct bp_error {
  uint32_t struct_size;
  bp_status status;
  int64_t vendor_code;     /* error number of the vendor's library, or 0 */
  uint32_t op;             /* id of the operator, or 0 */
  uint32_t message_length; /* bytes of `message` before the NUL */
  char message[488];       /* NUL-terminated UTF-8, truncated at a character boundary */
} bp_error;
#define BP_ERROR_MIN_SIZE 512u
BP_FROZEN_MIN(bp_error, BP_ERROR_MIN_SIZE);

/* Severity of a log line. */
#define BP_LOG_ERROR 1
#define BP_LOG_WARNING 2
#define BP_LOG_INFO 3
#define BP_LOG_DEBUG 4

#endif
