// SPDX-License-Identifier: Apache-2.0
#include "runtime/api.hpp"

#include <dlfcn.h>

namespace backplane::level_zero {

namespace {

constexpr const char* kLoader = "libze_loader.so.1";

struct Meaning {
  ze_result_t code;
  const char* name;
  bp_status status;
  const char* remedy;
};

constexpr Meaning kMeanings[] = {
#define BP_ZE_RESULT(name, status, remedy) {ZE_RESULT_##name, "ZE_RESULT_" #name, status, remedy},
#include "runtime/results.def"
#undef BP_ZE_RESULT
};

std::string hexadecimal(uint32_t number) {
  char text[11];
  std::snprintf(text, sizeof(text), "0x%08x", number);
  return text;
}

kit::Result<const Api*> load_once() {
  void* library = ::dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return kit::Status{BP_UNAVAILABLE, kit::text("level_zero: ", kLoader,
                                                 " cannot be opened; install a Level Zero loader such as libze1 "
                                                 "and the driver of the device (",
                                                 ::dlerror(), ")")};
  }
  static Api api;
#define BP_ZE(name)                                                                                           \
  api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, #name));                                   \
  if (api.name == nullptr) {                                                                                  \
    return kit::Status{BP_UNAVAILABLE,                                                                        \
                       kit::text("level_zero: ", kLoader,                                                     \
                                 " has no " #name ", which Level Zero 1.0 demands; install a newer loader")}; \
  }
#define BP_ZES(name) api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, #name));
#include "runtime/functions.def"
#undef BP_ZE
#undef BP_ZES
  return &api;
}

}  // namespace

kit::Result<const Api*> Api::load() {
  // The result is never destroyed, because no destructor may run at exit.
  static auto* const loaded = new kit::Result<const Api*>(load_once());
  return *loaded;
}

kit::Status status_of(ze_result_t code, const char* call) {
  if (code == ZE_RESULT_SUCCESS) return {};
  Meaning meaning{code, "a code that ze_api.h explains", BP_INTERNAL, "report this to the vendor of the driver"};
  for (const Meaning& known : kMeanings) {
    if (known.code == code) meaning = known;
  }
  return {meaning.status,
          kit::text("level_zero: ", call, " returned ", hexadecimal(static_cast<uint32_t>(code)), ", ", meaning.name,
                    "; ", meaning.remedy),
          static_cast<int64_t>(code)};
}

}  // namespace backplane::level_zero
