// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/modules.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "spirv/compiled_kernels.hpp"

namespace backplane::gpu_host::test_driver {

namespace {

namespace fs = std::filesystem;
using Code = simt::test_driver::Module;
using simt::test_driver::Kernel;

template <cl_device_info kName>
std::string device_text() {
  char out[256] = {};
  clGetDeviceInfo(machine().device(), kName, sizeof(out) - 1, out, nullptr);
  return out;
}

// The kernels of the process. The kernels are never destroyed.
class Compiler : public simt::CompiledKernels {
 public:
  static Compiler& get() {
    static auto* const one = new Compiler;
    return *one;
  }
  // Returns null if the module has no such kernel.
  std::shared_ptr<Kernel> kernel(const simt::KernelName& name) {
    auto number = get_number(name);
    if (!number.ok()) return nullptr;
    return Kernel::create(machine(), *static_cast<std::shared_ptr<Code>*>(entry(number.value()).module),
                          name.function.c_str());
  }

 private:
  Compiler()
      : CompiledKernels({"test_driver", "TEST_DRIVER_CACHE", device_text<CL_DEVICE_NAME>(),
                         device_text<CL_DRIVER_VERSION>(), "", traits().lanes}) {}

  kit::Result<uint32_t> get_number(const simt::KernelName& name) {
    return CompiledKernels::get(name, [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  }
  std::span<const uint32_t> spirv_of(std::string_view name) const override {
    const auto own = traits().own_module == nullptr ? std::span<const uint32_t>() : traits().own_module(name);
    return own.empty() ? CompiledKernels::spirv_of(name) : own;
  }
  static Module handle_of(std::shared_ptr<Code> code) {
    return code == nullptr ? nullptr : new std::shared_ptr<Code>(std::move(code));
  }
  Module load(std::span<const std::byte> binary, const std::string&) const override {
    return handle_of(Code::from_binary(machine(), binary));
  }
  kit::Result<Module> build(const simt::KernelName&, std::span<const uint32_t> spirv) const override {
    std::string log;
    const Module out = handle_of(Code::from_spirv(machine(), std::as_bytes(spirv), log));
    if (out == nullptr) return kit::Status{BP_INTERNAL, log};
    return out;
  }
  std::vector<std::byte> binary_of(Module module) const override {
    return (*static_cast<std::shared_ptr<Code>*>(module))->binary();
  }
};

struct LoadedKernel {
  Context& context;
  std::shared_ptr<Kernel> code;
  uint64_t launch_bytes;  // maximum of the shared bytes that a launch adds
};
struct LoadedModule {
  Context& context;
  std::string name;
  std::map<std::string, std::shared_ptr<LoadedKernel>> kernels;
};

std::unordered_map<const void*, std::shared_ptr<LoadedModule>>& modules() {
  static auto* const all = new std::unordered_map<const void*, std::shared_ptr<LoadedModule>>;
  return *all;
}
std::unordered_map<const void*, std::shared_ptr<LoadedKernel>>& kernels() {
  static auto* const all = new std::unordered_map<const void*, std::shared_ptr<LoadedKernel>>;
  return *all;
}

// Returns the name of the module whose file has the same contents, or an empty string.
std::string name_of(std::span<const std::byte> image) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(setting("TEST_DRIVER_MODULES", "."), ignored)) {
    if (entry.path().extension() != traits().module_extension || entry.file_size(ignored) != image.size()) continue;
    std::vector<std::byte> contents(image.size());
    std::ifstream file(entry.path(), std::ios::binary);
    file.read(reinterpret_cast<char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
    if (file && std::memcmp(contents.data(), image.data(), image.size()) == 0) return entry.path().stem();
  }
  return {};
}

// The emulated kernel has an array of constant size in place of the shared bytes that a launch adds.
Result check_shared_bytes(const LoadedKernel& kernel, uint32_t launch_bytes) {
  const uint64_t used = kernel.code->local_bytes(machine());
  if (launch_bytes == 0 && used > traits().limits.shared_bytes) {
    return violate(Result::kInvalidValue, "a group uses too much shared memory");
  }
  if (launch_bytes > kernel.launch_bytes) {
    return violate(Result::kInvalidValue, "a launch adds more shared memory than its kernel permits");
  }
  if (launch_bytes != 0 && used > launch_bytes) {
    return violate(Result::kInvalidValue, "a launch adds less shared memory than its kernel uses");
  }
  return Result::kSuccess;
}

Result check_grid(const Grid& grid) {
  const LaunchLimits& limits = traits().limits;
  for (int i = 0; i < 3; ++i) {
    if (grid.groups[i] == 0 || grid.groups[i] > limits.groups[i]) {
      return violate(Result::kInvalidValue, "the number of groups is not within the limits");
    }
    if (grid.group_size[i] == 0 || grid.group_size[i] > limits.group_sizes[i]) {
      return violate(Result::kInvalidValue, "the size of groups is not within the limits");
    }
    if (uint64_t{grid.groups[i]} * grid.group_size[i] > limits.threads) {
      return violate(Result::kInvalidValue, "a launch has too many threads");
    }
  }
  if (uint64_t{grid.group_size[0]} * grid.group_size[1] * grid.group_size[2] > limits.group_size) {
    return violate(Result::kInvalidValue, "a group has too many threads");
  }
  return Result::kSuccess;
}

}  // namespace

bool is_faulty_launch() {
  static const auto requested = std::stoul(setting("TEST_DRIVER_FAULT", "0"));
  static unsigned long launches = 0;
  return ++launches == requested;
}

Result load_module(Context& context, const void* image, void** out) {
  if (image == nullptr || out == nullptr) return violate(Result::kInvalidValue, "a module without image or result");
  const std::span<const std::byte> bytes = traits().bytes_of(image);
  const std::string name = bytes.empty() ? std::string() : name_of(bytes);
  if (name.empty()) return Result::kInvalidImage;
  auto made = std::make_shared<LoadedModule>(LoadedModule{context, name, {}});
  *out = made.get();
  modules()[*out] = std::move(made);
  return Result::kSuccess;
}

Result find_kernel(Call& call, const void* handle, const char* name, void** out) {
  if (name == nullptr || out == nullptr) return violate(Result::kInvalidValue, "a kernel without name or result");
  const auto found = modules().find(handle);
  if (found == modules().end()) return violate(Result::kInvalidHandle, "the module was not loaded");
  const auto module = found->second;
  if (&module->context != &call.context()) return violate(Result::kInvalidContext, "the module has another context");
  if (!module->kernels.contains(name)) {
    call.unlock();
    auto code = Compiler::get().kernel({module->name, name});
    call.lock();
    if (code == nullptr) return Result::kNotFound;
    auto& known = module->kernels[name];
    if (known == nullptr)
      known =
          std::make_shared<LoadedKernel>(LoadedKernel{module->context, std::move(code), traits().limits.shared_bytes});
    kernels()[known.get()] = known;
  }
  *out = module->kernels[name].get();
  return Result::kSuccess;
}

Result permit_launch_bytes(const Call& call, const void* handle, int64_t bytes) {
  const auto found = kernels().find(handle);
  if (found == kernels().end()) return violate(Result::kInvalidHandle, "the kernel does not exist");
  LoadedKernel& kernel = *found->second;
  if (&kernel.context != &call.context()) return violate(Result::kInvalidHandle, "the kernel has another context");
  if (bytes < 0 || static_cast<uint64_t>(bytes) > traits().launch_bytes) {
    return violate(Result::kInvalidValue, "a launch cannot add so much shared memory");
  }
  kernel.launch_bytes = static_cast<uint64_t>(bytes);
  return Result::kSuccess;
}

Result check_launch(const Call& call, const void* handle, const Grid& grid, std::span<const std::byte> arguments) {
  const auto found = kernels().find(handle);
  if (found == kernels().end()) return violate(Result::kInvalidHandle, "the kernel does not exist");
  const LoadedKernel& kernel = *found->second;
  if (&kernel.context != &call.context()) return violate(Result::kInvalidHandle, "the kernel has another context");
  if (const Result result = check_grid(grid); result != Result::kSuccess) return result;
  if (const Result result = check_shared_bytes(kernel, grid.shared_bytes); result != Result::kSuccess) return result;
  if (arguments.size() <= (kernel.code->argument_count() - 1) * sizeof(void*)) {
    return violate(Result::kInvalidValue, "the arguments are shorter than the kernel's parameters");
  }
  return Result::kSuccess;
}

Result launch(Call& call, const void* handle, const void* stream_handle, const Grid& grid,
              std::span<const std::byte> arguments) {
  const auto stream = find_stream(call, stream_handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  if (const Result result = check_launch(call, handle, grid, arguments); result != Result::kSuccess) return result;
  const LoadedKernel& kernel = *kernels().find(handle)->second;
  Context& context = call.context();
  const std::size_t pointers = kernel.code->argument_count() - 1;
  if (is_faulty_launch()) {
    context.fault = Result::kIllegalAddress;
    return Result::kSuccess;
  }
  simt::test_driver::Arguments values;
  for (std::size_t i = 0; i < pointers; ++i) {
    const auto bytes = arguments.subspan(i * sizeof(void*), sizeof(void*));
    void* address = nullptr;
    std::memcpy(&address, bytes.data(), sizeof(address));
    if (address != nullptr) {
      context.fault = use_in_kernel(*stream, address);
      if (context.fault != Result::kSuccess) return Result::kSuccess;
    }
    values.values.emplace_back(bytes.begin(), bytes.end());
  }
  const auto params = arguments.subspan(pointers * sizeof(void*));
  values.values.emplace_back(params.begin(), params.end());
  return stream->command([&](Work& work) { return work.launch(*kernel.code, grid.groups, grid.group_size, values); });
}

}  // namespace backplane::gpu_host::test_driver
