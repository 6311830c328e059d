// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/device.hpp"

namespace backplane::gpu_host {

kit::Status NativeDevice::poll(const Mark& mark) const {
  const Scope scope(context());
  if (!scope) return context().check(scope.status());
  if (mark == nullptr) return simt::exiting(context().stack().plugin());
  return context().check(context().stack().query(mark->event));
}

kit::Result<int64_t> NativeDevice::elapsed(const Mark& begin, const Mark& end) const {
  const Scope scope(context());
  if (!scope) return context().check(scope.status());
  if (begin == nullptr || end == nullptr) return simt::exiting(context().stack().plugin());
  auto out = context().stack().elapsed(begin->event, end->event);
  return out.ok() ? out : context().check(out.status());
}

}  // namespace backplane::gpu_host
