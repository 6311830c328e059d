// SPDX-License-Identifier: Apache-2.0
// The driver's kernel objects of a queue, for stacks in which such an object contains the arguments.
#pragma once

#include "launcher.hpp"

namespace backplane::simt {

template <class Handle>
struct KernelObject {
  // The value of an argument: a buffer and, if the buffer has an address, an offset.
  struct Argument {
    uint64_t id = UINT64_MAX;  // 0 for an operand without memory, UINT64_MAX if unknown
    uint64_t offset = 0;
    bool operator==(const Argument&) const = default;
  };
  Handle handle{};
  uint32_t group_size = 0;  // the group size of the previous launch
  std::array<Argument, kMaxPlaces> arguments{};
};

template <class Handle>
class KernelObjects {
 public:
  using Object = KernelObject<Handle>;

  bool has(uint32_t number) const { return number < objects_.size() && objects_[number].handle != Handle{}; }
  // Returns the object of a kernel. The first call creates it with `create(number)`.
  template <class Create>
  kit::Result<Object*> get(uint32_t number, const Create& create) {
    if (number >= objects_.size()) objects_.resize(number + 1);
    Object& out = objects_[number];
    if (out.handle == Handle{}) {
      auto made = create(number);
      if (!made.ok()) return made.status();
      out.handle = made.value();
    }
    return &out;
  }
  // Calls `destroy(handle)` for each object.
  template <class Destroy>
  void clear(const Destroy& destroy) {
    for (const Object& object : objects_) {
      if (object.handle != Handle{}) destroy(object.handle);
    }
    objects_.clear();
  }

  // Sets the arguments of a launch. Calls `set(index, buffer, pointer)` for each argument that differs
  // from the previous launch. `buffer` and `pointer` may be null.
  template <class Set>
  static kit::Status set_arguments(Object& object, const Launch& launch, const Set& set) {
    auto* const offsets = static_cast<uint64_t*>(launch.params);
    for (uint32_t i = 0; i < launch.places.size(); ++i) {
      const Place& place = launch.places[i];
      const Buffer* const buffer = place.memory;
      std::byte* const pointer =
          buffer == nullptr || buffer->address == nullptr ? nullptr : buffer->address + place.offset;
      offsets[i] = pointer == nullptr ? place.offset + (buffer == nullptr ? 0 : buffer->offset) : 0;
      const typename Object::Argument given{buffer == nullptr ? 0 : buffer->id, pointer == nullptr ? 0 : place.offset};
      if (object.arguments[i] == given) continue;
      object.arguments[i] = {};
      if (kit::Status status = set(i, buffer, pointer); !status.ok()) return status;
      object.arguments[i] = given;
    }
    return {};
  }

 private:
  std::vector<Object> objects_;  // the index is the kernel's number
};

}  // namespace backplane::simt
