// SPDX-License-Identifier: Apache-2.0
// Implements the plugin table of the layer `validation`, and opens and closes devices.
#include "layers/validation/validation.hpp"

#include "layers/validation/external.hpp"
#include "layers/validation/graph.hpp"
#include "layers/validation/memory.hpp"
#include "layers/validation/native.hpp"
#include "layers/validation/pack.hpp"
#include "layers/validation/peer.hpp"
#include "layers/validation/plans.hpp"
#include "layers/validation/streams.hpp"

namespace backplane::core::layers {

namespace {

CheckedPlugin& of(const bp_plugin* plugin) { return static_cast<CheckedPlugin&>(wrapped(plugin)); }

template <class... Args>
[[noreturn]] void refuse(const CheckedPlugin& plugin, Slot slot, const Rule& rule, fmt::format_string<Args...> format,
                         Args&&... args) {
  throw rule_error(BP_INVALID_ARGUMENT, rule, plugin.name, slot_name(slot), format, std::forward<Args>(args)...);
}

// Implements a slot of the plugin's table. `body(plugin)` returns the status, or throws to refuse
// the call.
template <class Body>
bp_status plugin_slot(const bp_plugin* plugin, Slot slot, bp_error* error, Body&& body) noexcept {
  bp_status status = BP_OK;
  const bp_status refused = guard(error, [&] {
    if (plugin == nullptr) {
      throw rule_error(BP_INVALID_ARGUMENT, rule::kNullPointer, "?", slot_name(slot), "the plugin is null; pass one");
    }
    CheckedPlugin& checked = of(plugin);
    if (checked.process != getpid()) {
      refuse(checked, slot, rule::kForkedChild, "the plugin was loaded before fork(); a child loads its own");
    }
    status = body(checked);
  });
  return refused != BP_OK ? refused : status;
}

bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  return plugin_slot(plugin, Slot::device_count, error, [&](CheckedPlugin& own) {
    if (out == nullptr) refuse(own, Slot::device_count, rule::kNullPointer, "out is null; pass one");
    return invoke(own.name, Slot::device_count,
                  [&](bp_error* record) { return own.inner->device_count(own.inner, out, record); })
        .write(error);
  });
}

bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  return plugin_slot(plugin, Slot::device_info, error, [&](CheckedPlugin& own) {
    if (out == nullptr) refuse(own, Slot::device_info, rule::kNullPointer, "out is null; pass one");
    if (out->struct_size < BP_DEVICE_INFO_MIN_SIZE) {
      refuse(own, Slot::device_info, rule::kOutputStruct,
             "bp_device_info.struct_size is {}, less than its minimum of {}; set it to sizeof(bp_device_info)",
             out->struct_size, BP_DEVICE_INFO_MIN_SIZE);
    }
    return invoke(own.name, Slot::device_info,
                  [&](bp_error* record) { return own.inner->device_info(own.inner, index, out, record); })
        .write(error);
  });
}

void check_device_desc(const CheckedPlugin& own, const bp_device_desc* desc) {
  if (desc == nullptr) return;
  bp_device_desc copy = {};
  try {
    copy = read_input(desc, BP_DEVICE_DESC_MIN_SIZE, "input", "bp_device_desc");
  } catch (const Error& error) {
    refuse(own, Slot::device_open, rule::kInputStruct, "{}", error.what());
  }
  if (copy.flags != 0) {
    refuse(own, Slot::device_open, rule::kUnknownValue, "bp_device_desc.flags is {:#x}; no bit is known: set it to 0",
           copy.flags);
  }
}

bp_status device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                      bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return plugin_slot(plugin, Slot::device_open, error, [&](CheckedPlugin& own) {
    if (out == nullptr) refuse(own, Slot::device_open, rule::kNullPointer, "out is null; pass one");
    check_device_desc(own, desc);
    bp_device* const untouched = reinterpret_cast<bp_device*>(out);
    bp_device* made = untouched;
    Outcome outcome = invoke(own.name, Slot::device_open, [&](bp_error* record) {
      return own.inner->device_open(own.inner, index, desc, &made, record);
    });
    const auto blame = [&](const Rule& rule, const char* what) {
      if (!outcome.defect) {
        outcome.defect =
            rule_error(BP_INTERNAL, rule, own.name, "device_open", "{}; report it to the plugin's author", what);
      }
    };
    if (!outcome.ok()) {
      if (made != nullptr) blame(rule::kFailureNull, "failed and left a device that is not null");
      return outcome.write(error);
    }
    if (made == nullptr || made == untouched) {
      blame(rule::kSuccessNull, "returned OK without a device");
      return outcome.write(error);
    }
    bp_device_info info = {};
    info.struct_size = sizeof(info);
    const Outcome queried = invoke(own.name, Slot::device_info, [&](bp_error* record) {
      return own.inner->device_info(own.inner, index, &info, record);
    });
    if (outcome.defect || queried.defect || !queried.ok()) {
      own.next.close(made);
      return outcome.defect ? outcome.write(error) : queried.write(error);
    }
    std::shared_ptr<CheckedDevice> device;
    try {
      device = std::make_shared<CheckedDevice>(own, made, index, info);
      LiveDevices::instance().add(device);
    } catch (...) {
      own.next.close(made);
      throw;
    }
    own.devices.fetch_add(1, std::memory_order_relaxed);
    *out = handle_of(*device);
    return BP_OK;
  });
}

void close(bp_device* handle) {
  checked_void(handle, "close", [&](Call& call) {
    CheckedDevice& device = call.device();
    if (const uint32_t calls = device.calls.load(std::memory_order_relaxed); calls > 1) {
      call.refuse(rule::kCallRunning, "{} other calls on the device run; wait for them, then close", calls - 1);
    }
    {
      const std::lock_guard lock(device.mutex);
      if (device.buffers.size() + device.streams.size() + device.events.size() + device.plans.size() +
              device.graphs.size() + device.packs.size() + device.semaphores.size() !=
          0) {
        call.refuse(rule::kCloseLast,
                    "{} buffers, {} streams, {} events, {} plans, {} graphs, {} packs and {} semaphores are alive; "
                    "destroy them, then close",
                    device.buffers.size(), device.streams.size(), device.events.size(), device.plans.size(),
                    device.graphs.size(), device.packs.size(), device.semaphores.size());
      }
    }
    LiveDevices::instance().remove(handle);
    device.owner.devices.fetch_sub(1, std::memory_order_relaxed);
    call.next().close(call.inner());
  });
}

const void* get_interface(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  CheckedPlugin& own = of(plugin);
  bp_device* inner = nullptr;
  if (device != nullptr) {
    const std::shared_ptr<CheckedDevice> found = LiveDevices::instance().find(device);
    if (found == nullptr || found->process != getpid()) {
      own.log(rule_error(BP_INVALID_ARGUMENT, rule::kDeviceHandle, own.name, "get_interface",
                         "{} is not an open device: it was closed, or device_open did not return it", fmt::ptr(device))
                  .what());
      return nullptr;
    }
    inner = found->inner;
  }
  if (name == nullptr) {
    own.log(rule_error(BP_INVALID_ARGUMENT, rule::kNullPointer, own.name, "get_interface", "the name is null; pass one")
                .what());
    return nullptr;
  }
  return own.interface_of(inner, name, version);
}

void shutdown(const bp_plugin* plugin) {
  CheckedPlugin& own = of(plugin);
  if (own.process != getpid() || own.devices.load(std::memory_order_relaxed) != 0) {
    const bool forked = own.process != getpid();
    own.log(rule_error(BP_INVALID_ARGUMENT, forked ? rule::kForkedChild : rule::kShutdownLast, own.name, "shutdown",
                       "{}",
                       forked ? "the plugin was loaded before fork(); the child leaves it alone"
                              : "devices are open; close them, then shut down")
                .what());
    return;
  }
  LiveDevices::instance().remove(&own);
  own.inner->shutdown(own.inner);
  delete &own;
}

}  // namespace

const bp_plugin* validation(const bp_plugin* inner, const bp_host* host, Object* keeper) {
  auto made = std::make_unique<CheckedPlugin>(inner, host, keeper);
  bp_plugin& table = made->table;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_open = device_open;
  if (table.get_interface != nullptr) table.get_interface = get_interface;
  table.shutdown = shutdown;
  made->api.close = close;
  splice_memory(*made);
  splice_streams(*made);
  splice_plans(*made);
  splice_native(*made);
  splice_graph(*made);
  splice_peer(*made);
  splice_external(*made);
  splice_pack(*made);
  LiveDevices::instance().add(made.get());
  return &made.release()->table;
}

}  // namespace backplane::core::layers
