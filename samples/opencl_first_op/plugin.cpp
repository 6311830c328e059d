// SPDX-License-Identifier: Apache-2.0
// A plugin for OpenCL 1.2. It consists of a Native class for the kit, operators in OpenCL C, and the exported
// symbol. It offers the devices of all installed drivers.
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#include <CL/opencl.hpp>
#include <backplane/kit/queue_device.hpp>

namespace {
using namespace backplane::kit;

Status check(cl_int code, const char* call, const std::string& more = {}) {
  if (code == CL_SUCCESS) return {};
  constexpr const char* kNames[] = {"DEVICE_NOT_AVAILABLE", "COMPILER_NOT_AVAILABLE", "MEM_OBJECT_ALLOCATION_FAILURE",
                                    "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY"};  // codes -2 to -6
  const char* name = code <= -2 && code >= -6 ? kNames[-2 - code] : "... (cl.h has the name)";
  bp_status status = code == CL_DEVICE_NOT_AVAILABLE ? BP_DEVICE_LOST : BP_INTERNAL;
  if (code <= CL_MEM_OBJECT_ALLOCATION_FAILURE && code >= CL_OUT_OF_HOST_MEMORY) status = BP_OUT_OF_MEMORY;
  return {status, text(call, ": ", code, ", CL_", name, more), code};
}

// The beginning of a kernel's source, which the statement of an operator follows. The statement computes
// element i of the output o from the inputs x and y and a scalar.
constexpr const char* kSource = R"(
kernel void run(global float* x, ulong x_at, long8 x_strides, global float* y, ulong y_at, long8 y_strides,
                global float* o, ulong o_at, long8 o_strides, uint rank, long8 shape, uint scalar, ulong items) {
  const ulong i = get_global_id(0);  x += x_at, y += y_at, o += o_at;
  if (i < items) )";

class Native {
 public:
  static constexpr bool kStaysOpen = true;
  using Memory = cl_mem;  // a plain handle without a reference count, because the kit copies it at each launch
  using Queue = cl::CommandQueue;
  using Mark = cl::Event;      // a handle with a reference count
  using Kernel = const char*;  // the statement of an operator in OpenCL C
  // A cl_kernel stores its arguments, so a launch locks the kernel. Streams wait for each other's lock only if
  // they launch the same operator.
  using Program = std::pair<cl::Kernel, std::unique_ptr<std::mutex>>;
  cl::Device device;
  cl::Context context;

  static Result<uint32_t> count() {
    if (const auto all = devices(); !all.empty()) return static_cast<uint32_t>(all.size());
    return Status{BP_UNAVAILABLE, "OpenCL: no driver has a usable device; install one, and see what clinfo says"};
  }
  static Status info(uint32_t index, bp_device_info& info) {
    const cl::Device device = devices().at(index);
    const auto type = device.getInfo<CL_DEVICE_TYPE>();
    info.type = type & CL_DEVICE_TYPE_GPU ? BP_DEVICE_GPU : type & CL_DEVICE_TYPE_CPU ? BP_DEVICE_CPU : BP_DEVICE_OTHER;
    std::strncpy(info.name, device.getInfo<CL_DEVICE_NAME>().c_str(), sizeof(info.name) - 1);
    std::strncpy(info.driver, device.getInfo<CL_DEVICE_VERSION>().c_str(), sizeof(info.driver) - 1);
    info.alignment = device.getInfo<CL_DEVICE_MEM_BASE_ADDR_ALIGN>() / 8;
    info.max_buffer_bytes = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
    info.capabilities = BP_CAP_DETERMINISTIC | (floats(device) & CL_FP_DENORM ? 0 : BP_CAP_FTZ_F32);
    return {};
  }
  static Result<std::unique_ptr<Native>> open(uint32_t index, const Host&) {
    cl_int code = CL_SUCCESS;
    std::unique_ptr<Native> native(new Native{devices().at(index), {}});
    native->context = cl::Context(native->device, nullptr, nullptr, nullptr, &code);
    return code == CL_SUCCESS ? Result(std::move(native)) : check(code, "clCreateContext");
  }
  Status memory_info(uint32_t, bp_memory_info& memory) {
    memory.total_bytes = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
    memory.free_bytes = UINT64_MAX;
    return {};
  }
  Result<Memory> allocate(const bp_buffer_desc& desc) {
    cl_int code = CL_SUCCESS;
    const Memory memory = clCreateBuffer(context(), CL_MEM_READ_WRITE, desc.bytes, nullptr, &code);
    return code == CL_SUCCESS ? Result(memory) : out_of_memory("clCreateBuffer: ", code, " for ", desc.bytes, " bytes");
  }
  void free(Memory memory) { clReleaseMemObject(memory); }
  Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&) {
    cl_int code = CL_SUCCESS;
    auto queue = std::make_unique<Queue>(context, device, CL_QUEUE_PROFILING_ENABLE, &code);
    return code == CL_SUCCESS ? Result(std::move(queue)) : check(code, "clCreateCommandQueue");
  }
  Result<Mark> mark(Queue& queue, bool) {
    Mark mark;
    Status status = check(queue.enqueueMarkerWithWaitList(nullptr, &mark), "clEnqueueMarkerWithWaitList");
    if (status.ok()) status = check(queue.flush(), "clFlush");
    return status.ok() ? Result(mark) : status;
  }
  Status poll(const Mark& mark) {
    cl_int state = CL_COMPLETE;  // positive while the work is pending, negative if the work failed
    const cl_int code = mark.getInfo(CL_EVENT_COMMAND_EXECUTION_STATUS, &state);
    return state > CL_COMPLETE ? timed_out() : check(state < 0 ? state : code, "the stream's work");
  }
  Status wait_for(Queue& queue, const Mark& mark) {
    return check(clEnqueueBarrierWithWaitList(queue(), 1, &mark(), nullptr), "clEnqueueBarrierWithWaitList");
  }
  Result<int64_t> elapsed(const Mark& begin, const Mark& end) {
    cl_ulong from = 0, to = 0;
    cl_int code = begin.getProfilingInfo(CL_PROFILING_COMMAND_END, &from);
    if (code == CL_SUCCESS) code = end.getProfilingInfo(CL_PROFILING_COMMAND_END, &to);
    return code == CL_SUCCESS ? Result(static_cast<int64_t>(to - from)) : check(code, "clGetEventProfilingInfo");
  }
  Status copy(Queue& queue, Memory dst, uint64_t to, Memory src, uint64_t from, uint64_t bytes) {
    return check(clEnqueueCopyBuffer(queue(), src, dst, from, to, bytes, 0, nullptr, nullptr), "clEnqueueCopyBuffer");
  }
  Status copy_in(Queue& queue, Memory dst, uint64_t to, const void* src, uint64_t bytes) {
    return check(clEnqueueWriteBuffer(queue(), dst, 0, to, bytes, src, 0, nullptr, nullptr), "clEnqueueWriteBuffer");
  }
  Status copy_out(Queue& queue, void* dst, Memory src, uint64_t from, uint64_t bytes) {
    return check(clEnqueueReadBuffer(queue(), src, 0, from, bytes, dst, 0, nullptr, nullptr), "clEnqueueReadBuffer");
  }
  Result<Program> compile(const Kernel& kernel) {
    cl_int code = CL_SUCCESS;
    const cl::Program program(context, text(kSource, kernel, ";\n}"), false, &code);
    if (code == CL_SUCCESS) code = program.build({device}, "-cl-fp32-correctly-rounded-divide-sqrt");
    if (code != CL_SUCCESS) return check(code, "clBuildProgram", program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device));
    Program made{cl::Kernel(program, "run", &code), std::make_unique<std::mutex>()};
    return code == CL_SUCCESS ? Result(std::move(made)) : check(code, "clCreateKernel");
  }
  Status launch(Queue& queue, const Program& program, const QueueCall<Memory>& call) {
    const QueueView<Memory> none{}, &o = call.out();
    const auto &x = call.inputs.empty() ? none : call.in(0), &y = call.inputs.size() < 2 ? none : call.in(1);
    // The work-group size is fixed, because a driver may compile a kernel again for each new size.
    const std::size_t items = o.elements(), group = 64, global = (items + 63) / 64 * 64;
    if (items == 0) return {};
    std::lock_guard lock(*program.second);
    cl_uint next = 0;
    cl_int code = CL_SUCCESS;
    const auto pass = [&](const auto& value) {  // NOLINTNEXTLINE(bugprone-sizeof-expression): handles are pointers
      if (code == CL_SUCCESS) code = clSetKernelArg(program.first(), next++, sizeof(value), &value);
    };
    for (const auto* v : {&x, &y, &o}) pass(v->place.memory), pass(v->place.offset / sizeof(float)), pass(v->strides);
    const auto scalar = static_cast<cl_uint>(call.scalars.empty() ? x.immediate : call.scalars[0].bits);
    pass(o.rank), pass(o.shape), pass(scalar), pass(items);
    if (code != CL_SUCCESS) return check(code, "clSetKernelArg");
    code = clEnqueueNDRangeKernel(queue(), program.first(), 1, nullptr, &global, &group, 0, nullptr, nullptr);
    return check(code, "clEnqueueNDRangeKernel");
  }
  // Returns the devices that round quotients and square roots correctly, in the loader's order. On other
  // devices, errors may exceed the bounds of CORE.
  static std::vector<cl::Device> devices() {
    std::vector<cl::Platform> platforms;
    std::vector<cl::Device> all, found;
    cl::Platform::get(&platforms);
    for (const cl::Platform& platform : platforms) {
      if (platform.getDevices(CL_DEVICE_TYPE_ALL, &found) == CL_SUCCESS)
        all.insert(all.end(), found.begin(), found.end());
    }
    std::erase_if(all, [](const auto& one) { return !(floats(one) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT); });
    return all;
  }
  static cl_device_fp_config floats(const cl::Device& one) { return one.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>(); }
};

class Driver : public QueueDriver<Native> {
 public:
  explicit Driver(Host host) : QueueDriver(host, {.name = "opencl", .version = PLUGIN_VERSION}) {
    operators().add(BP_OP_ADD, BP_F32, {.kernel = "o[i] = x[i] + y[i]"});
    operators().add(BP_OP_SUB, BP_F32, {.kernel = "o[i] = x[i] - y[i]"});
    operators().add(BP_OP_MUL, BP_F32, {.kernel = "o[i] = x[i] * y[i]"});
    operators().add(BP_OP_DIV, BP_F32, {.kernel = "o[i] = x[i] / y[i]"});
    operators().add(BP_OP_MAX, BP_F32, {.kernel = "o[i] = x[i] > y[i] || isnan(x[i]) ? x[i] : y[i]"});
    operators().add(BP_OP_MIN, BP_F32, {.kernel = "o[i] = x[i] < y[i] || isnan(x[i]) ? x[i] : y[i]"});
    operators().add(BP_OP_NEG, BP_F32, {.kernel = "o[i] = -x[i]"});
    operators().add(BP_OP_ABS, BP_F32, {.kernel = "o[i] = fabs(x[i])"});
    operators().add(BP_OP_SQRT, BP_F32, {.kernel = "o[i] = sqrt(x[i])"});
    operators().add(BP_OP_EXP, BP_F32, {.kernel = "o[i] = exp(x[i])"});
    operators().add(BP_OP_COPY, BP_F32, {.kernel = kMove, .dense = false});
    operators().add(BP_OP_FILL, BP_F32, {.kernel = kMove, .dense = false});
  }

 private:
  // Copies the bits of element i, for any strides. If x is an immediate, or if there is no input, stores
  // `scalar`.
  static constexpr const char* kMove = R"({
    long n[8], from[8], to[8], rest = i;
    for (vstore8(shape, 0, n), vstore8(x_strides, 0, from), vstore8(o_strides, 0, to); rank-- != 0; rest /= n[rank])
      x += rest % n[rank] * from[rank], o += rest % n[rank] * to[rank];
    *(global uint*)o = x ? *(global uint*)x : scalar;
  })";
};

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return query<Driver>(host, out, error);
}
