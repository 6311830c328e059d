// SPDX-License-Identifier: Apache-2.0
#include "runtime/api.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace backplane::cuda {

namespace {

// The minimum version of the driver, which is the first version with the major version of the toolkit.
constexpr int kNeededVersion = CUDA_VERSION / 1000 * 1000;

struct Meaning {
  CUresult code;
  bp_status status;
  const char* remedy;
};

constexpr Meaning kMeanings[] = {
#define BP_CU_RESULT(name, status, remedy) {CUDA_ERROR_##name, status, remedy},
#include "runtime/results.def"
#undef BP_CU_RESULT
};

const char* library_name() {
  const char* setting = std::getenv(kDriverSetting);
  return setting == nullptr || *setting == '\0' ? "libcuda.so.1" : setting;
}

std::string version_text(int version) { return kit::text(version / 1000, ".", version % 1000 / 10); }

kit::Status unavailable(std::string message) { return {BP_UNAVAILABLE, std::move(message)}; }

kit::Status check_version(const Api& api, const char* library) {
  int version = 0;
  const CUresult code = api.cuDriverGetVersion(&version);
  if (code != CUDA_SUCCESS) return unavailable(api.status_of(code, "cuDriverGetVersion").message());
  if (version >= kNeededVersion) return {};
  return unavailable(kit::text("cuda: the driver ", library, " supports CUDA ", version_text(version),
                               ", and the plugin's kernels need CUDA ", version_text(kNeededVersion),
                               "; install a newer driver, or build the plugin with an older CUDA toolkit"));
}

kit::Result<const Api*> load_once() {
  const char* const name = library_name();
  void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unavailable(
        kit::text("cuda: ", name, " cannot be opened; install the NVIDIA driver of the device (", ::dlerror(), ")"));
  }
  static Api api;
#define BP_CU(name_of_call, symbol)                                                           \
  api.name_of_call = reinterpret_cast<decltype(api.name_of_call)>(::dlsym(library, #symbol)); \
  if (api.name_of_call == nullptr) {                                                          \
    return unavailable(kit::text("cuda: ", name,                                              \
                                 " has no " #symbol ", which the plugin needs; "              \
                                 "install a driver for CUDA ",                                \
                                 version_text(kNeededVersion), " or newer"));                 \
  }
#include "runtime/functions.def"
#undef BP_CU
  api.has_graphs = true;
#define BP_CU(name_of_call, symbol)                                                           \
  api.name_of_call = reinterpret_cast<decltype(api.name_of_call)>(::dlsym(library, #symbol)); \
  api.has_graphs = api.has_graphs && api.name_of_call != nullptr;
#include "runtime/graph_functions.def"
#undef BP_CU
  api.has_tensor_maps = true;
#define BP_CU(name_of_call, symbol)                                                           \
  api.name_of_call = reinterpret_cast<decltype(api.name_of_call)>(::dlsym(library, #symbol)); \
  api.has_tensor_maps = api.has_tensor_maps && api.name_of_call != nullptr;
#include "runtime/tensor_functions.def"
#undef BP_CU
  api.has_external = true;
#define BP_CU(name_of_call, symbol)                                                           \
  api.name_of_call = reinterpret_cast<decltype(api.name_of_call)>(::dlsym(library, #symbol)); \
  api.has_external = api.has_external && api.name_of_call != nullptr;
#include "runtime/external_functions.def"
#undef BP_CU
  if (kit::Status status = check_version(api, name); !status.ok()) return status;
  return &api;
}

}  // namespace

kit::Result<const Api*> Api::load() {
  // Never destroyed, because no destructor may run at exit.
  static auto* const loaded = new kit::Result<const Api*>(load_once());
  return *loaded;
}

kit::Status Api::status_of(CUresult code, const char* call) const {
  if (code == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = "a code that cuda.h explains";
  Meaning meaning{code, BP_INTERNAL, "report this to the vendor of the plugin"};
  for (const Meaning& known : kMeanings) {
    if (known.code == code) meaning = known;
  }
  return {meaning.status,
          kit::text("cuda: ", call, " returned ", static_cast<int>(code), ", ", name, "; ", meaning.remedy),
          static_cast<int64_t>(code)};
}

}  // namespace backplane::cuda
