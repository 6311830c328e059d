// SPDX-License-Identifier: Apache-2.0
// Pages of host memory, and a buffer that imports them.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "harness/context.hpp"

namespace backplane::conformance {

// Pages that the host allocates with mmap. A plugin that passes the address of these pages to free() crashes.
class Pages {
 public:
  explicit Pages(uint64_t bytes)
      : bytes_(bytes), address_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (address_ == MAP_FAILED) throw std::bad_alloc();
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(address_, bytes_); }
  unsigned char* data() const { return static_cast<unsigned char*>(address_); }

 private:
  uint64_t bytes_;
  void* address_;
};

inline const bp_import_api& import_of(Context& context) {
  Plugin& plugin = context.plugin();
  const auto* table = plugin->get_interface == nullptr
                          ? nullptr
                          : static_cast<const bp_import_api*>(
                                plugin->get_interface(plugin.get(), context.device().get(), BP_INTERFACE_IMPORT, 1));
  if (table == nullptr) context.not_claimed("the device has no bp.import");
  context.require(table->struct_size >= BP_IMPORT_API_MIN_SIZE && table->import_memory != nullptr,
                  "the table of bp.import is incomplete");
  return *table;
}

struct Imported {
  Imported(Context& context, void* address, uint64_t bytes) : buffer(context.device(), nullptr) {
    const bp_import_desc desc = {sizeof(desc), BP_IMPORT_HOST, reinterpret_cast<uint64_t>(address), bytes};
    ErrorRecord error;
    bp_buffer* made = nullptr;
    kind = UINT32_MAX;
    const bp_status status = import_of(context).import_memory(context.device().get(), &desc, &kind, &made, &error);
    expect_status(status, error, "import_memory", {BP_OK, BP_UNSUPPORTED});
    if (status != BP_OK) refusal = error.text(status);
    context.require((status == BP_OK) == (made != nullptr), "import_memory returned {} and gave {}",
                    status_name(status), static_cast<const void*>(made));
    buffer = Owner<bp_buffer, &bp_device_api::buffer_destroy>(context.device(), made);
    if (made != nullptr)
      context.require(kind == BP_MEMORY_HOST || kind == BP_MEMORY_SHARED, "import_memory gave memory of kind {}", kind);
  }
  explicit operator bool() const { return buffer.get() != nullptr; }
  Owner<bp_buffer, &bp_device_api::buffer_destroy> buffer;
  uint32_t kind = 0;
  std::string refusal;
};

inline void need_import_of_pages(Context& context, const Imported& imported) {
  if (!imported) context.fail("import_memory refuses whole pages of ordinary memory: {}", imported.refusal);
}

}  // namespace backplane::conformance
