// SPDX-License-Identifier: Apache-2.0
// Implements `backplane run OP`, which runs one operator on random or given data and prints the
// result, times and properties of the plan.
#include <algorithm>
#include <bit>
#include <chrono>

#include "devices.hpp"
#include "op_case.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

constexpr uint64_t kWaitNs = 600'000'000'000;  // wait limit; a debugging aid must not wait forever

struct Timing {
  double first_ns = 0;  // time of the first call, including plan creation and lazy loading
  uint32_t repeats = 0;
  double median_ns = 0, least_ns = 0, most_ns = 0;
};

// A tensor on the device. Its buffer spans all addresses that the strides reach.
struct Placed {
  Buffer buffer;
  Values values;  // elements in row-major order
  Extents strides;
  int64_t first = 0;  // distance from the buffer's start to element 0, in elements
  int64_t span = 0;   // length of the buffer, in elements
};

uint32_t parse_dtype(const std::string& name) {
  if (name.empty()) return 0;
  const uint32_t dtype = bph_dtype_by_name(name.c_str());
  if (dtype != 0) return dtype;
  std::vector<std::string> names;
  for (const uint32_t one : dtypes_of(BP_SET_ALL)) names.push_back(bph_dtype_name(one));
  fail_usage("there is no dtype '{}'; there are {}", name, fmt::join(names, ", "));
}

bph_op_info find_operator(const std::string& name) {
  bph_op_info info = sized<bph_op_info>();
  bp_error error = fresh_error();
  if (bph_op_by_name(name.c_str(), &info, &error) == BP_OK) return info;
  throw Failure(kExitUsage, bph_status_name(BP_INVALID_ARGUMENT), error.message);
}

OpCase make_case(const RunOptions& options) {
  OpRequest request;
  request.dtype = parse_dtype(options.dtype);
  request.out_dtype = parse_dtype(options.out_dtype);
  for (const std::string& text : options.shapes) request.shapes.push_back(parse_shape(text));
  for (const std::string& text : options.out_shapes) request.out_shapes.push_back(parse_shape(text));
  request.attributes = options.attributes;
  OpCase op = make_case(find_operator(options.op), request);
  if (options.scalars.size() > op.scalars.size()) {
    fail_usage("{} takes {} scalar(s), and {} --scalar are given", op.info.name, op.scalars.size(),
               options.scalars.size());
  }
  const uint32_t dtype = op.info.scalar_dtype != 0 ? op.info.scalar_dtype : op.outputs[0].dtype;
  for (size_t i = 0; i < options.scalars.size(); ++i) op.scalars[i] = parse_element(dtype, options.scalars[i]);
  const size_t operands = op.inputs.size() + op.outputs.size();
  if (options.strides.size() > operands) {
    fail_usage("{} has {} operands, and {} --strides are given", op.info.name, operands, options.strides.size());
  }
  if (options.data.size() > op.inputs.size()) {
    fail_usage("{} has {} input(s), and {} --data are given", op.info.name, op.inputs.size(), options.data.size());
  }
  return op;
}

void fill(Values& values, const Operand& operand, const std::string* data, uint64_t seed, size_t index) {
  if (data == nullptr) {
    if (operand.index_limit > 0) return fill_random_index(values, operand.index_limit, seed);
    return fill_random(values, seed);
  }
  const auto texts = data->empty() ? std::vector<std::string_view>() : split(*data, ',');
  if (texts.size() != values.count()) {
    fail_usage("input {} of shape {} has {} elements, and its --data has {}", index, shape_text(values.shape),
               values.count(), texts.size());
  }
  for (size_t i = 0; i < texts.size(); ++i) values.store(i, parse_element(values.dtype, texts[i]));
}

// Calls each(logical index, element offset) in row-major order.
template <class Each>
void for_each_element(const Placed& placed, Each each) {
  const Extents& shape = placed.values.shape;
  Extents at(shape.size(), 0);
  int64_t offset = placed.first;
  const size_t count = placed.values.count();
  for (size_t index = 0; index < count; ++index) {
    each(index, static_cast<size_t>(offset));
    for (size_t i = shape.size(); i-- > 0;) {
      offset += placed.strides[i];
      if (++at[i] < shape[i]) break;
      offset -= placed.strides[i] * shape[i];
      at[i] = 0;
    }
  }
}

Placed allocate(bph_device* device, bph_stream* stream, const Operand& operand, const std::string* strides_text) {
  Placed placed;
  placed.values = Values(operand.dtype, operand.shape);
  placed.strides = strides_text != nullptr ? parse_strides(*strides_text) : dense_strides(operand.shape);
  if (placed.strides.size() != operand.shape.size()) {
    fail_usage("strides '{}' are {}, and the shape {} has rank {}", *strides_text, placed.strides.size(),
               shape_text(operand.shape), operand.shape.size());
  }
  int64_t last = 0;
  if (placed.values.count() > 0) {
    for (size_t i = 0; i < placed.strides.size(); ++i) {
      const int64_t reach = (operand.shape[i] - 1) * placed.strides[i];
      (reach < 0 ? placed.first : last) += reach < 0 ? -reach : reach;
    }
    placed.span = placed.first + last + 1;
  }
  bph_buffer_desc desc = sized<bph_buffer_desc>();
  desc.bytes = static_cast<uint64_t>(placed.span) * bph_dtype_bytes(operand.dtype);
  desc.stream = stream;
  placed.buffer = Buffer(device, desc);
  return placed;
}

void upload(bph_stream* stream, const Placed& placed) {
  const size_t size = bph_dtype_bytes(placed.values.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(placed.span) * size);
  for_each_element(placed, [&](size_t index, size_t offset) {
    std::copy_n(placed.values.bytes.begin() + static_cast<std::ptrdiff_t>(index * size), size,
                bytes.begin() + static_cast<std::ptrdiff_t>(offset * size));
  });
  call(bph_copy_in, stream, placed.buffer.get(), uint64_t{0}, bytes.data(), uint64_t{bytes.size()}, uint32_t{0});
  call(bph_stream_wait, stream, kWaitNs);
}

void download(bph_stream* stream, Placed& placed) {
  const size_t size = bph_dtype_bytes(placed.values.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(placed.span) * size);
  call(bph_copy_out, stream, bytes.data(), placed.buffer.get(), uint64_t{0}, uint64_t{bytes.size()}, uint32_t{0});
  for_each_element(placed, [&](size_t index, size_t offset) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset * size), size,
                placed.values.bytes.begin() + static_cast<std::ptrdiff_t>(index * size));
  });
}

void point_at(bph_tensor& view, const Placed& placed) {
  view.buffer = placed.buffer.get();
  view.offset = static_cast<uint64_t>(placed.first) * bph_dtype_bytes(placed.values.dtype);
  std::copy(placed.strides.begin(), placed.strides.end(), view.strides);
}

double timed_call(bph_stream* stream, const bph_call& one) {
  const auto begin = std::chrono::steady_clock::now();
  call(bph_execute, stream, &one);
  call(bph_stream_wait, stream, kWaitNs);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

void measure_repeats(bph_stream* stream, const bph_call& one, uint32_t repeats, Timing& timing) {
  if (repeats == 0) return;
  std::vector<double> times_ns;
  for (uint32_t i = 0; i < repeats; ++i) times_ns.push_back(timed_call(stream, one));
  std::sort(times_ns.begin(), times_ns.end());
  timing.repeats = repeats;
  timing.median_ns = times_ns[times_ns.size() / 2];
  timing.least_ns = times_ns.front();
  timing.most_ns = times_ns.back();
}

struct Result {
  std::string device;
  const OpCase* op;
  std::vector<Placed> inputs, outputs;
  bph_support plan;
  bph_stats stats;
  Timing timing;
  double gigabytes_per_second = 0;
};

std::string plan_text(const Result& result) {
  const uint32_t staged =
      static_cast<uint32_t>(std::popcount(result.plan.stage_inputs) + std::popcount(result.plan.stage_outputs));
  return fmt::format("{}{}, {} operand(s) staged, workspace {}",
                     (result.plan.plan_flags & BP_PLAN_ANY_SIZE) != 0 ? "any size" : "this size only",
                     (result.plan.plan_flags & BP_PLAN_DETERMINISTIC) != 0 ? ", deterministic" : "", staged,
                     bytes_text(result.plan.workspace_bytes));
}

void print_text(Session& session, const Result& result, bool all) {
  const size_t threshold = all ? SIZE_MAX : 1000;
  const auto show = [&](const char* role, size_t index, const Placed& placed) {
    session.print("{}\n{}\n",
                  styled(fmt::format("{} {}: {} {}", role, index, bph_dtype_name(placed.values.dtype),
                                     shape_text(placed.values.shape)),
                         Style::strong, session.colour),
                  array_text(placed.values, threshold));
  };
  for (size_t i = 0; i < result.inputs.size(); ++i) show("input", i, result.inputs[i]);
  for (size_t i = 0; i < result.outputs.size(); ++i) show("output", i, result.outputs[i]);
  session.print("\n");
  Table table({});
  const auto us = [](double ns) { return fmt::format("{:.2f} µs", ns / 1000); };
  table.add({"operator", fmt::format("{}: {}", result.op->info.name, result.op->info.doc)});
  table.add({"device", result.device});
  table.add({"attributes", result.op->attributes.text()});
  table.add({"plan", plan_text(result)});
  if (result.stats.fallback_executions > 0) {
    table.add(
        {"fallback", Cell(fmt::format("{} executions ran on the fallback device", result.stats.fallback_executions),
                          Style::warning)});
  }
  table.add({"first call", us(result.timing.first_ns)});
  if (result.timing.repeats > 0) {
    table.add({"repeats", fmt::format("{}: median {}, {} .. {}", result.timing.repeats, us(result.timing.median_ns),
                                      us(result.timing.least_ns), us(result.timing.most_ns))});
    table.add({"throughput", fmt::format("{:.3f} GB/s of operands", result.gigabytes_per_second)});
  }
  session.out += table.text(session.colour);
}

Json extents_json(const Extents& extents) {
  Json json = Json::array();
  for (const int64_t extent : extents) json.push_back(extent);
  return json;
}

void print_json(Session& session, const Result& result, bool all) {
  const size_t limit = all ? SIZE_MAX : 1000;
  Json document = Session::document("backplane.run");
  document["operator"] = result.op->info.name;
  document["device"] = result.device;
  document["attributes"] = result.op->attributes.json();
  document["scalars"] = Json::array();
  const uint32_t scalar_dtype =
      result.op->info.scalar_dtype != 0 ? result.op->info.scalar_dtype : result.op->outputs[0].dtype;
  for (const uint64_t bits : result.op->scalars) document["scalars"].push_back(element_json(scalar_dtype, bits));
  for (const auto& [role, operands] : {std::pair("inputs", &result.inputs), std::pair("outputs", &result.outputs)}) {
    document[role] = Json::array();
    for (const Placed& placed : *operands) {
      document[role].push_back(Json::object({{"dtype", bph_dtype_name(placed.values.dtype)},
                                             {"shape", extents_json(placed.values.shape)},
                                             {"strides", extents_json(placed.strides)},
                                             {"elements", placed.values.count()},
                                             {"values", array_json(placed.values, limit)}}));
    }
  }
  document["plan"] = Json::object({{"any_size", (result.plan.plan_flags & BP_PLAN_ANY_SIZE) != 0},
                                   {"deterministic", (result.plan.plan_flags & BP_PLAN_DETERMINISTIC) != 0},
                                   {"staged_inputs", std::popcount(result.plan.stage_inputs)},
                                   {"staged_outputs", std::popcount(result.plan.stage_outputs)},
                                   {"workspace_bytes", result.plan.workspace_bytes}});
  document["fallback_executions"] = result.stats.fallback_executions;
  document["timing"] = Json::object({{"first_call_ns", result.timing.first_ns},
                                     {"repeats", result.timing.repeats},
                                     {"median_ns", result.timing.median_ns},
                                     {"least_ns", result.timing.least_ns},
                                     {"most_ns", result.timing.most_ns},
                                     {"gigabytes_per_second", result.gigabytes_per_second}});
  session.print(document);
}

}  // namespace

int run(Session& session, const RunOptions& options) {
  const OpCase op = make_case(options);
  const Registry registry = open_registry(session, !session.json);
  const Device device = registry.open(options.device.empty() ? nullptr : options.device.c_str());
  const Stream stream(device);
  Result result{};
  result.op = &op;
  result.device = device.name();

  CallViews views(op);
  const auto item = [](const std::vector<std::string>& list, size_t index) {
    return index < list.size() ? &list[index] : nullptr;
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    result.inputs.push_back(allocate(device.get(), stream.get(), op.inputs[i], item(options.strides, i)));
    fill(result.inputs[i].values, op.inputs[i], item(options.data, i), options.seed + i, i);
    upload(stream.get(), result.inputs[i]);
    point_at(views.inputs[i], result.inputs[i]);
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    result.outputs.push_back(
        allocate(device.get(), stream.get(), op.outputs[i], item(options.strides, op.inputs.size() + i)));
    // Uploads zeros, since some operators also read their outputs.
    upload(stream.get(), result.outputs[i]);
    point_at(views.outputs[i], result.outputs[i]);
  }
  result.plan = sized<bph_support>();
  call(bph_device_supports, device.get(), &views.call, &result.plan);
  result.timing.first_ns = timed_call(stream.get(), views.call);
  for (Placed& output : result.outputs) download(stream.get(), output);
  measure_repeats(stream.get(), views.call, options.repeat, result.timing);
  result.stats = device.stats();
  double bytes = 0;
  for (const Placed& placed : result.inputs) bytes += static_cast<double>(placed.values.bytes.size());
  for (const Placed& placed : result.outputs) bytes += static_cast<double>(placed.values.bytes.size());
  if (result.timing.median_ns > 0) result.gigabytes_per_second = bytes / result.timing.median_ns;

  if (session.json) {
    print_json(session, result, options.all);
  } else {
    print_text(session, result, options.all);
  }
  return kExitOk;
}

}  // namespace tool
