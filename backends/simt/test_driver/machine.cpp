// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include "driver_call.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace backplane::simt::test_driver {

namespace {

// Maximum number of allocations that free() keeps for reuse, and the maximum bytes of each.
constexpr std::size_t kMaxReused = 256;
constexpr uint64_t kMaxReusedBytes = uint64_t{1} << 20;

struct Failure {
  std::string function;
  uint32_t first = 0;
  bool all_later = false;
  uint32_t code = 0;
  uint32_t calls = 0;
};

std::vector<Failure> parse_failures(const std::string& text) {
  std::vector<Failure> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string entry = text.substr(at, end - at);
    at = end + 1;
    const std::size_t first = entry.find(':'), second = entry.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) violation("TEST_DRIVER_FAIL has no entry " + entry);
    Failure each;
    each.function = entry.substr(0, first);
    const std::string call = entry.substr(first + 1, second - first - 1);
    each.first = static_cast<uint32_t>(std::strtoul(call.c_str(), nullptr, 10));
    each.all_later = call.ends_with('+');
    each.code = static_cast<uint32_t>(std::strtoul(entry.c_str() + second + 1, nullptr, 16));
    out.push_back(each);
  }
  return out;
}

template <class Function>
void load(cl_platform_id platform, const char* name, Function& out) {
  out = reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform, name));
  if (out == nullptr) violation(std::string("the OpenCL runtime has no ") + name);
}

}  // namespace

void violation(const std::string& rule) {
  std::fprintf(stderr, "test driver: %s\n", rule.c_str());
  std::fflush(stderr);
  std::abort();
}

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

uint32_t requested_failure(const char* function) {
  static auto* const mutex = new std::mutex;
  static auto* const failures = new std::vector<Failure>(parse_failures(setting("TEST_DRIVER_FAIL")));
  if (failures->empty()) return 0;
  std::lock_guard lock(*mutex);
  for (Failure& each : *failures) {
    if (each.function != function) continue;
    ++each.calls;
    if (each.calls == each.first || (each.all_later && each.calls > each.first)) return each.code;
  }
  return 0;
}

Machine* Machine::get() {
  static Machine* const one = []() -> Machine* {
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) return nullptr;
    for (cl_uint i = 0; i < std::min(count, 16u); ++i) {
      cl_device_id device = nullptr;
      std::size_t bytes = 0;
      if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) != CL_SUCCESS) continue;
      if (clGetDeviceInfo(device, CL_DEVICE_IL_VERSION, 0, nullptr, &bytes) != CL_SUCCESS || bytes < 2) continue;
      return new Machine(platforms[i], device);
    }
    return nullptr;
  }();
  return one;
}

Machine::Machine(cl_platform_id platform, cl_device_id device) : device_(device) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform),
                                              0};
  cl_int code = CL_SUCCESS;
  context_ = clCreateContext(properties, 1, &device, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) violation("clCreateContext returned " + std::to_string(code));
  DriverCall::stop_at_exit();
  Work::finish_at_exit();
  load(platform, "clDeviceMemAllocINTEL", allocate_device_);
  load(platform, "clHostMemAllocINTEL", allocate_host_);
  load(platform, "clSharedMemAllocINTEL", allocate_shared_);
  load(platform, "clMemBlockingFreeINTEL", free_);
  load(platform, "clEnqueueMemcpyINTEL", enqueue_copy);
  load(platform, "clSetKernelArgMemPointerINTEL", set_pointer);
}

std::vector<std::size_t> Machine::widths() const {
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device_, CL_DEVICE_SUB_GROUP_SIZES_INTEL, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<std::size_t> out(bytes / sizeof(std::size_t));
  if (clGetDeviceInfo(device_, CL_DEVICE_SUB_GROUP_SIZES_INTEL, bytes, out.data(), nullptr) != CL_SUCCESS) return {};
  return out;
}

void* Machine::allocate(Kind kind, uint64_t bytes, uint64_t alignment) {
  const Allocation wanted{kind, bytes, alignment};
  {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(freed_, wanted, &std::pair<void*, Allocation>::second);
    if (found != freed_.end()) {
      void* const out = found->first;
      freed_.erase(found);
      living_[reinterpret_cast<uintptr_t>(out)] = wanted;
      return out;
    }
  }
  const auto align = static_cast<cl_uint>(alignment);
  cl_int code = CL_SUCCESS;
  void* out = kind == Kind::kHost     ? allocate_host_(context_, nullptr, bytes, align, &code)
              : kind == Kind::kShared ? allocate_shared_(context_, device_, nullptr, bytes, align, &code)
                                      : allocate_device_(context_, device_, nullptr, bytes, align, &code);
  if (out == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  living_[reinterpret_cast<uintptr_t>(out)] = wanted;
  return out;
}

bool Machine::free(void* address) {
  {
    std::lock_guard lock(mutex_);
    const auto found = living_.find(reinterpret_cast<uintptr_t>(address));
    if (found == living_.end()) return false;
    const Allocation allocation = found->second;
    living_.erase(found);
    if (allocation.bytes <= kMaxReusedBytes && freed_.size() < kMaxReused) {
      freed_.emplace_back(address, allocation);
      return true;
    }
  }
  free_(context_, address);
  return true;
}

void* Machine::find(const void* address, Allocation& out) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(mutex_);
  auto found = living_.upper_bound(at);
  if (found == living_.begin()) return nullptr;
  --found;
  if (at - found->first >= found->second.bytes) return nullptr;
  out = found->second;
  return reinterpret_cast<void*>(found->first);
}

bool Machine::contains(const void* address, uint64_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(mutex_);
  auto found = living_.upper_bound(at);
  if (found == living_.begin()) return false;
  --found;
  return at - found->first <= found->second.bytes && bytes <= found->second.bytes - (at - found->first);
}

uint64_t Machine::allocated_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t out = 0;
  for (const auto& [address, allocation] : living_) out += allocation.bytes;
  return out;
}

std::shared_ptr<Module> Module::from_spirv(Machine& machine, std::span<const std::byte> code, std::string& log) {
  cl_int result = CL_SUCCESS;
  cl_program program = clCreateProgramWithIL(machine.context(), code.data(), code.size(), &result);
  if (result != CL_SUCCESS) {
    log = "the module is not SPIR-V";
    return nullptr;
  }
  cl_device_id device = machine.device();
  const bool built = clBuildProgram(program, 1, &device, "", nullptr, nullptr) == CL_SUCCESS;
  // The runtime loads its compiler at the first compilation, and the compiler registers exit
  // handlers. The handlers of the test driver are registered again after these, so that they run first.
  static const bool registered = (DriverCall::stop_at_exit(), Work::finish_at_exit(), true);
  if (built && registered) {
    return std::shared_ptr<Module>(new Module(program));
  }
  std::size_t bytes = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  log.resize(bytes);
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  clReleaseProgram(program);
  return nullptr;
}

std::shared_ptr<Module> Module::from_binary(Machine& machine, std::span<const std::byte> code) {
  cl_device_id device = machine.device();
  const std::size_t size = code.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(code.data());
  cl_int status = CL_SUCCESS, result = CL_SUCCESS;
  cl_program program = clCreateProgramWithBinary(machine.context(), 1, &device, &size, &bytes, &status, &result);
  if (program == nullptr) return nullptr;
  if (status == CL_SUCCESS && result == CL_SUCCESS &&
      clBuildProgram(program, 1, &device, "", nullptr, nullptr) == CL_SUCCESS) {
    return std::shared_ptr<Module>(new Module(program));
  }
  clReleaseProgram(program);
  return nullptr;
}

Module::~Module() { clReleaseProgram(program_); }

std::vector<std::byte> Module::binary() const {
  std::size_t size = 0;
  if (clGetProgramInfo(program_, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS) return {};
  std::vector<std::byte> out(size);
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  if (clGetProgramInfo(program_, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS) return {};
  return out;
}

std::shared_ptr<Kernel> Kernel::create(Machine&, std::shared_ptr<Module> module, const char* name) {
  cl_int code = CL_SUCCESS;
  cl_kernel handle = clCreateKernel(module->handle(), name, &code);
  if (code != CL_SUCCESS) return nullptr;
  cl_uint count = 0;
  clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr);
  return std::shared_ptr<Kernel>(new Kernel(std::move(module), handle, count));
}

uint64_t Kernel::local_bytes(const Machine& machine) const {
  cl_ulong out = 0;
  clGetKernelWorkGroupInfo(handle_, machine.device(), CL_KERNEL_LOCAL_MEM_SIZE, sizeof(out), &out, nullptr);
  return out;
}

Kernel::~Kernel() { clReleaseKernel(handle_); }

}  // namespace backplane::simt::test_driver
