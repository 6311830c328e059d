// SPDX-License-Identifier: Apache-2.0
#include "runtime/api.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace backplane::hip {

namespace {

// A driver runs kernels that were compiled by a hipcc of the same or an earlier major version.
constexpr int kNeededVersion = HIP_VERSION / 10000000 * 10000000;

struct Meaning {
  hipError_t code;
  bp_status status;
  const char* remedy;
};

constexpr Meaning kMeanings[] = {
#define BP_HIP_RESULT(name, status, remedy) {hipError##name, status, remedy},
#include "runtime/results.def"
#undef BP_HIP_RESULT
};

kit::Status unavailable(std::string message) { return {BP_UNAVAILABLE, std::move(message)}; }

struct Library {
  std::string name;
  void* handle = nullptr;
};

// Opens the library that kDriverSetting names. If it names none, tries the usual names of the driver's library, newest
// version first, and returns the first library that opens.
kit::Result<Library> open_library() {
  const char* setting = std::getenv(kDriverSetting);
  std::vector<std::string> names{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
  if (setting != nullptr && *setting != '\0') names = {setting};
  std::string reasons;
  for (const std::string& name : names) {
    if (void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library{name, handle};
    }
    reasons += (reasons.empty() ? "" : "; ") + std::string(::dlerror());
  }
  return unavailable(
      kit::text("hip: ", names.front(), " cannot be opened; install the HIP runtime of ROCm (", reasons, ")"));
}

kit::Status check_version(const Api& api, const std::string& library) {
  int version = 0;
  const hipError_t code = api.hipDriverGetVersion(&version);
  if (code != hipSuccess) return unavailable(api.status_of(code, "hipDriverGetVersion").message());
  if (version >= kNeededVersion) return {};
  return unavailable(kit::text("hip: the driver ", library, " supports HIP ", version_text(version),
                               ", and the plugin's kernels need HIP ", version_text(kNeededVersion),
                               "; install a newer driver, or build the plugin with an older hipcc"));
}

template <class Function>
kit::Status look_up(const Library& library, const char* symbol, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library.handle, symbol));
  if (out != nullptr) return {};
  return unavailable(
      kit::text("hip: ", library.name, " has no ", symbol, ", which the plugin needs; install HIP 5.2 or newer"));
}

kit::Result<const Api*> load_once() {
  auto library = open_library();
  if (!library.ok()) return library.status();
  static Api api;
  kit::Status status;
#define BP_HIP(name, ...) \
  if (status.ok()) status = look_up(library.value(), #name, api.name);
#include "runtime/functions.def"
#undef BP_HIP
  if (status.ok()) status = look_up(library.value(), "hipGetErrorName", api.error_name);
  if (status.ok() && !look_up(library.value(), "hipGetDevicePropertiesR0000", api.get_properties).ok()) {
    status = look_up(library.value(), "hipGetDeviceProperties", api.get_properties);  // HIP 5 has only this name
  }
  if (status.ok()) status = check_version(api, library.value().name);
  if (!status.ok()) return status;
  (void)look_up(library.value(), "hipStreamIsCapturing", api.stream_is_capturing);
  (void)look_up(library.value(), "hipStreamGetDevice", api.stream_device);
  api.has_graphs = true;
#define BP_HIP(name, ...) api.has_graphs = look_up(library.value(), #name, api.name).ok() && api.has_graphs;
#include "runtime/graph_functions.def"
#undef BP_HIP
  return &api;
}

}  // namespace

std::string version_text(int version) { return kit::text(version / 10000000, ".", version / 100000 % 100); }

kit::Result<const Api*> Api::load() {
  // Never destroyed, because no destructor may run at exit.
  static auto* const loaded = new kit::Result<const Api*>(load_once());
  return *loaded;
}

bool Api::succeeded(hipError_t code) const {
  if (code != hipSuccess) (void)hipGetLastError();
  return code == hipSuccess;
}

kit::Status Api::status_of(hipError_t code, const char* call) const {
  if (succeeded(code)) return {};
  const char* name = error_name(code);
  if (name == nullptr) name = "a code that hip_runtime_api.h explains";
  Meaning meaning{code, BP_INTERNAL, "report this to the vendor of the plugin"};
  for (const Meaning& known : kMeanings) {
    if (known.code == code) meaning = known;
  }
  return {meaning.status,
          kit::text("hip: ", call, " returned ", static_cast<int>(code), ", ", name, "; ", meaning.remedy),
          static_cast<int64_t>(code)};
}

}  // namespace backplane::hip
