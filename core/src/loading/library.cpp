// SPDX-License-Identifier: Apache-2.0
// Opens libraries with dlopen, and finds the query function with dlsym.
#include "loading/library.hpp"

#include <dlfcn.h>

#include "loading/refusal.hpp"

namespace backplane::core {

bp_plugin_query_fn open_library(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* why = dlerror();
    throw Refusal(BP_UNAVAILABLE, "library.open", "system",
                  "{}: the dynamic linker refused it: {:.200}; install what is missing, or another build", shown(path),
                  why != nullptr ? why : "no reason given");
  }
  void* const symbol = dlsym(handle, BP_PLUGIN_QUERY_SYMBOL);
  if (symbol == nullptr) {
    dlclose(handle);
    throw Refusal(BP_INVALID_ARGUMENT, "query.symbol", "plugin",
                  "{}: exports no " BP_PLUGIN_QUERY_SYMBOL
                  ", so it is no plugin; name another library, or export the symbol",
                  shown(path));
  }
  return reinterpret_cast<bp_plugin_query_fn>(symbol);
}

}  // namespace backplane::core
