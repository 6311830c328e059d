// SPDX-License-Identifier: Apache-2.0
// Test cases for the plugin's library file, symbols and tables. The cases need no open device.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cases/abi/cases.hpp"
#include "cases/abi/elf_symbols.hpp"
#include "cases/support/health_check.hpp"

namespace backplane::conformance {

namespace {

DynamicSymbols symbols_of(Context& context) {
  DynamicSymbols symbols = read_dynamic_symbols(context.path());
  context.require(symbols.error.empty(), "{}: {}", context.path(), symbols.error);
  return symbols;
}

// Returns whether `name` is a symbol that the toolchain or a sanitizer adds to every library.
bool of_toolchain(std::string_view name) {
  constexpr std::array<std::string_view, 5> plain = {"_init", "_fini", "_edata", "_end", "__bss_start"};
  constexpr std::array<std::string_view, 6> stems = {"__asan_", "__ubsan_",     "__tsan_",
                                                     "__lsan_", "__sanitizer_", "__odr_asan"};
  return std::find(plain.begin(), plain.end(), name) != plain.end() ||
         std::any_of(stems.begin(), stems.end(), [&](auto stem) { return name.starts_with(stem); });
}

void exports_one_symbol(Context& context) {
  bool query = false;
  for (const std::string& name : symbols_of(context).defined) {
    query = query || name == BP_PLUGIN_QUERY_SYMBOL;
    context.require(name == BP_PLUGIN_QUERY_SYMBOL || of_toolchain(name),
                    "the library exports {}; {} is the only symbol of a plugin: build with hidden visibility and a "
                    "version script",
                    name, BP_PLUGIN_QUERY_SYMBOL);
  }
  context.require(query, "the library's table of dynamic symbols has no {}", BP_PLUGIN_QUERY_SYMBOL);
}

void wants_no_symbol_of_the_sdk(Context& context) {
  for (const std::string& name : symbols_of(context).wanted)
    context.require(!name.starts_with("bp_") && !name.starts_with("bph_"),
                    "the library needs the symbol {}; a plugin must not import symbols of the host", name);
}

// Checks that the plugin links to the libraries that define its undefined symbols.
void wants_no_symbol_of_the_program(Context& context) {
  void* const library = dlopen(context.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  context.require(library != nullptr, "the library cannot be opened: {}", dlerror());
  void* const program = dlopen(nullptr, RTLD_NOW);
  Dl_info own = {};
  dladdr(reinterpret_cast<void*>(&wants_no_symbol_of_the_program), &own);
  std::string stray;
  for (const std::string& name : symbols_of(context).wanted) {
    if (of_toolchain(name) || dlsym(library, name.c_str()) != nullptr) continue;
    void* const address = dlsym(program, name.c_str());
    Dl_info where = {};
    if (address != nullptr && dladdr(address, &where) != 0 && where.dli_fbase == own.dli_fbase) stray = name;
  }
  dlclose(program);
  dlclose(library);
  context.require(stray.empty(), "the library needs the symbol {}, which only the program that loaded it defines",
                  stray);
}

void query_is_found(Context& context) {
  const Library library(context.path());
  context.require(library.query != nullptr, "no {}", BP_PLUGIN_QUERY_SYMBOL);
}

void loads_and_shuts_down(Context& context) {
  const Plugin plugin(context.path());
  context.require(plugin->name != nullptr && *plugin->name != 0, "the plugin has no name");
}

void name_is_legal(Context& context) {
  const char* const name = context.plugin()->name;
  context.require(name != nullptr, "bp_plugin.name is null");
  const size_t length = strnlen(name, 64);
  context.require(length >= 1 && length <= 63, "bp_plugin.name has {} bytes or more; 1 to 63 bytes are legal", length);
  for (size_t i = 0; i < length; ++i)
    context.require((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '_',
                    "bp_plugin.name \"{}\" contains byte {:#x}; a to z, 0 to 9 and underscore are legal", name,
                    static_cast<unsigned char>(name[i]));
}

void strings_are_static(Context& context) {
  Plugin first(context.path());
  const char* const name = first->name;
  const char* const version = first->version;
  const std::string name_text = name, version_text = version == nullptr ? "" : version;
  for (int i = 0; i < 4; ++i) {
    const Plugin other(context.path());
    context.require(first->name == name && first->version == version && name_text == name && version_text == version,
                    "name or version changed while another instance existed");
    context.require(std::strcmp(other->name, name) == 0, "two instances have different names");
  }
}

void version_is_text(Context& context) {
  const char* const version = context.plugin()->version;
  context.require(version != nullptr, "bp_plugin.version is null");
  context.require(strnlen(version, 4096) < 4096, "no NUL within 4096 bytes of bp_plugin.version");
  context.require(*version != 0 && is_text(version), "bp_plugin.version is empty or not UTF-8 text");
}

void build_flags_are_known(Context& context) {
  const uint32_t flags = context.plugin()->build_flags;
  constexpr uint32_t known = BP_BUILD_DEBUG | BP_BUILD_ASAN | BP_BUILD_TSAN | BP_BUILD_UBSAN;
  context.require((flags & ~known) == 0 || context.plugin()->abi_version > BP_ABI_VERSION,
                  "bp_plugin.build_flags {:#x} contains unknown bits", flags);
}

struct Slot {
  const char* name;
  bool (*missing)(const bp_plugin& plugin);
};
#define BP_PLUGIN_SLOT(slot)                                              \
  {                                                                       \
    #slot, [](const bp_plugin& plugin) { return plugin.slot == nullptr; } \
  }
#define BP_DEVICE_SLOT(slot)                                                          \
  {                                                                                   \
    #slot, [](const bp_plugin& plugin) { return plugin.device_api->slot == nullptr; } \
  }
constexpr Slot kRequiredSlots[] = {
    BP_PLUGIN_SLOT(device_count),   BP_PLUGIN_SLOT(device_info),    BP_PLUGIN_SLOT(device_open),
    BP_PLUGIN_SLOT(shutdown),       BP_DEVICE_SLOT(close),          BP_DEVICE_SLOT(memory_info),
    BP_DEVICE_SLOT(buffer_create),  BP_DEVICE_SLOT(buffer_destroy), BP_DEVICE_SLOT(stream_create),
    BP_DEVICE_SLOT(stream_destroy), BP_DEVICE_SLOT(stream_wait),    BP_DEVICE_SLOT(event_create),
    BP_DEVICE_SLOT(event_destroy),  BP_DEVICE_SLOT(event_record),   BP_DEVICE_SLOT(stream_wait_event),
    BP_DEVICE_SLOT(event_wait),     BP_DEVICE_SLOT(copy),           BP_DEVICE_SLOT(plan_create),
    BP_DEVICE_SLOT(plan_destroy),   BP_DEVICE_SLOT(plan_execute),
};

}  // namespace

void add_library_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, std::string_view requirement, void (*run)(Context&)) {
    catalogue.push_back({.id = fmt::format("abi.library.{}", what), .requirements = {requirement}, .run = run});
  };
  add("loads_and_shuts_down", "BP-PLUGIN-001", loads_and_shuts_down);
  add("exports_one_symbol", "BP-PLUGIN-001", exports_one_symbol);
  add("query_is_found", "BP-PLUGIN-001", query_is_found);
  add("wants_no_symbol_of_the_sdk", "BP-PLUGIN-002", wants_no_symbol_of_the_sdk);
  add("wants_no_symbol_of_the_program", "BP-PLUGIN-002", wants_no_symbol_of_the_program);
  add("name_is_legal", "BP-INST-001", name_is_legal);
  add("strings_are_static", "BP-INST-001", strings_are_static);
  add("version_is_text", "BP-INST-002", version_is_text);
  add("build_flags_are_known", "BP-INST-010", build_flags_are_known);
  for (const Slot& slot : kRequiredSlots)
    catalogue.push_back({.id = fmt::format("abi.slot.{}", slot.name),
                         .requirements = {"BP-INST-011"},
                         .run = [&slot](Context& context) {
                           context.require(!slot.missing(*context.plugin().get()), "the required slot {} is null",
                                           slot.name);
                         }});
}

}  // namespace backplane::conformance
