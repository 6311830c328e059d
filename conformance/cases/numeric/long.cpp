// SPDX-License-Identifier: Apache-2.0
// Test cases with element positions above 2^24 or 2^31. f32 represents every integer only up to
// 2^24. To save memory, inputs repeat one element or have one byte per position.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "cases/numeric/cases.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/exact.hpp"
#include "cases/support/large_buffer.hpp"
#include "cases/support/op_desc.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr int64_t kPower = int64_t{1} << 24;
constexpr int64_t kLength = kPower + 101;

bp_tensor_desc repeated(uint32_t dtype, int64_t count) {
  bp_tensor_desc view = dense_view(dtype, {count});
  view.strides[0] = 0;
  return view;
}

// Executes a new plan. Ends the case as not claimed if the plan requests staged operands.
void run(Device& device, OpDesc desc, std::vector<bp_operand> inputs, std::vector<bp_operand> outputs,
         const std::vector<uint64_t>& scalars = {}) {
  Runner runner(device, std::move(desc));
  if ((runner.plan().info.stage_inputs | runner.plan().info.stage_outputs) != 0)
    throw CaseEnd{Outcome::not_claimed, "the plan requests staged operands"};
  std::vector<bp_operand> values;
  for (const uint64_t bits : scalars) values.push_back({nullptr, 0, bits});
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &runner.desc().get();
  execution.inputs = inputs.data();
  execution.outputs = outputs.data();
  execution.scalars = values.data();
  execution.workspace = runner.workspace();
  execution.workspace_bytes = runner.plan().info.workspace_bytes;
  Stream stream(device);
  runner.plan().execute(stream.get(), execution);
  stream.wait();
}

// Returns the ranges of a result that the case reads, as pairs of begin and end.
std::vector<std::pair<int64_t, int64_t>> windows(Context& context) {
  std::vector<std::pair<int64_t, int64_t>> all = {{0, 64}, {kPower / 2 - 32, kPower / 2 + 32}, {kPower - 32, kLength}};
  for (int i = 0; i < 6; ++i) {
    const auto at = static_cast<int64_t>(context.below(static_cast<uint64_t>(kPower - 64)));
    all.emplace_back(at, at + 64);
  }
  return all;
}
void check(Context& context, Buffer& out, uint32_t dtype, std::string_view what,
           const std::function<uint64_t(int64_t index)>& expected,
           const std::function<bool(uint64_t, uint64_t)>& agree = std::equal_to<>()) {
  const uint64_t size = oracle::bytes_of(dtype);
  for (const auto& [first, last] : windows(context)) {
    const Bytes got =
        download<unsigned char>(out, static_cast<uint64_t>(last - first) * size, static_cast<uint64_t>(first) * size);
    for (int64_t i = first; i < last; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, got.data() + static_cast<uint64_t>(i - first) * size, size);
      context.require(agree(bits, expected(i)), "{}: element {} is {}, expected {}", what, i, oracle::text(dtype, bits),
                      oracle::text(dtype, expected(i)));
    }
  }
}

Buffer make_result(Context& context, uint32_t dtype) {
  return make_large(context, static_cast<uint64_t>(kLength) * oracle::bytes_of(dtype));
}

void ramp(Context& context, uint32_t dtype) {
  constexpr int64_t start = 5, step = 3;
  Buffer out = make_result(context, dtype);
  OpDesc desc(BP_OP_IOTA);
  desc.attributes(bp_axis_attributes{}).output(dense_view(dtype, {kLength})).scalars(2);
  const bool real = oracle::is_float(dtype);
  run(context.device(), desc, {}, {{out.get(), 0, 0}},
      {bph_scalar_from_i64(dtype, real ? 0 : start), bph_scalar_from_i64(dtype, real ? 1 : step)});
  if (!real)
    return check(context, out, dtype, "iota",
                 [=](int64_t i) { return static_cast<uint64_t>(start + i * step) & oracle::mask_of(dtype); });
  check(
      context, out, dtype, "iota", [=](int64_t i) { return oracle::encode(dtype, static_cast<long double>(i)); },
      [=](uint64_t got, uint64_t right) {
        return std::fabs(oracle::decode(dtype, got) - oracle::decode(dtype, right)) <=
               oracle::ulp(dtype, oracle::decode(dtype, right));
      });
}

void running_sum(Context& context, uint32_t dtype, bool exclusive, bool reverse) {
  Buffer out = make_result(context, dtype), one(context.device(), 64);
  upload(one, Words{1});
  OpDesc desc(BP_OP_CUMSUM);
  bp_cumsum_attributes attributes = {};
  attributes.exclusive = exclusive ? 1 : 0;
  attributes.reverse = reverse ? 1 : 0;
  desc.attributes(attributes).input(repeated(dtype, kLength)).output(dense_view(dtype, {kLength}));
  run(context.device(), desc, {{one.get(), 0, 0}}, {{out.get(), 0, 0}});
  check(context, out, dtype, "a running sum of ones", [=](int64_t i) {
    return static_cast<uint64_t>((reverse ? kLength - 1 - i : i) + (exclusive ? 0 : 1)) & oracle::mask_of(dtype);
  });
}

// Tests an input in which one byte is greater or less than all other bytes.
void extreme(Context& context, uint32_t op, bool of_index) {
  Device& device = context.device();
  const bool least = op == BP_OP_ARGMIN || op == BP_OP_REDUCE_MIN;
  Buffer in(device, static_cast<uint64_t>(kLength)), out(device, 64);
  upload(in, Bytes(static_cast<size_t>(kLength), 100));
  OpDesc desc(op);
  if (of_index)
    desc.attributes(bp_axis_attributes{});
  else
    desc.attributes(bp_reduce_attributes{0, 1});
  desc.input(dense_view(BP_U8, {kLength})).output(dense_view(of_index ? BP_I32 : BP_U8, {1}));
  for (const int64_t at : {kPower + 1, kPower + 3, kLength - 1, kPower - 1}) {
    const unsigned char value = least ? 7 : 200;
    upload(in, Bytes{value}, static_cast<uint64_t>(at));
    run(device, desc, {{in.get(), 0, 0}}, {{out.get(), 0, 0}});
    if (of_index) {
      const int32_t got = download<int32_t>(out, 1)[0];
      context.require(got == at, "the extreme is at {}, the result is {}", at, got);
    } else {
      const unsigned got = download<unsigned char>(out, 1)[0];
      context.require(got == value, "the extreme, at {}, is {}, the result is {}", at, value, got);
    }
    upload(in, Bytes{100}, static_cast<uint64_t>(at));
  }
}

// Checks the sum of `times` elements with the value 1.
void count(Context& context, uint32_t dtype, int64_t times) {
  Device& device = context.device();
  Buffer one(device, 64), out(device, 64);
  upload(one, Words{1});
  OpDesc desc(BP_OP_REDUCE_SUM);
  desc.attributes(bp_reduce_attributes{0, 1}).input(repeated(dtype, times)).output(dense_view(BP_I32, {1}));
  run(device, desc, {{one.get(), 0, 0}}, {{out.get(), 0, 0}});
  const auto expected = static_cast<uint32_t>(times);
  const uint32_t got = download<uint32_t>(out, 1)[0];
  context.require(got == expected, "{} ones add up to {}, expected {}", times, static_cast<int32_t>(got),
                  static_cast<int32_t>(expected));
}

// Gathers or scatters rows of one byte, with indices that f32 cannot represent.
template <typename Index>
void indexed(Context& context, bool gather, int64_t rows, const std::vector<Index>& named) {
  Device& device = context.device();
  Buffer table = make_large(context, static_cast<uint64_t>(rows));
  Buffer index(device, named.size() * sizeof(Index)), few(device, named.size());
  const uint32_t index_dtype = sizeof(Index) == 8 ? BP_I64 : BP_I32;
  const auto row_count = static_cast<int64_t>(named.size());
  upload(index, named);
  Bytes values(named.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<unsigned char>(i + 1);
  for (const Index row : named)  // overwrites rows that a rounded index would select
    for (int64_t near = std::max<int64_t>(row - 4, 0); near < std::min<int64_t>(row + 5, rows); ++near)
      upload(table, Bytes{0xEE}, static_cast<uint64_t>(near));
  if (gather)
    for (size_t i = 0; i < named.size(); ++i) upload(table, Bytes{values[i]}, static_cast<uint64_t>(named[i]));
  upload(few, gather ? Bytes(values.size(), 0x5A) : values);
  OpDesc desc(gather ? BP_OP_GATHER : BP_OP_SCATTER);
  const bp_tensor_desc all = dense_view(BP_U8, {rows}), some = dense_view(BP_U8, {row_count}),
                       which = dense_view(index_dtype, {row_count});
  if (gather) {
    desc.attributes(bp_axis_attributes{}).input(all).input(which).output(some);
    run(device, desc, {{table.get(), 0, 0}, {index.get(), 0, 0}}, {{few.get(), 0, 0}});
    require_same(context, download<unsigned char>(few, values.size()), values, "rows at the end of a large table");
    return;
  }
  desc.attributes(bp_scatter_attributes{}).input(which).input(some).output(all);
  run(device, desc, {{index.get(), 0, 0}, {few.get(), 0, 0}}, {{table.get(), 0, 0}});
  for (size_t i = 0; i < named.size(); ++i)
    for (int64_t near = std::max<int64_t>(named[i] - 4, 0); near < std::min<int64_t>(named[i] + 5, rows); ++near) {
      unsigned char expected = 0xEE;
      for (size_t j = 0; j < named.size(); ++j)
        if (named[j] == near) expected = values[j];
      const unsigned got = download<unsigned char>(table, 1, static_cast<uint64_t>(near))[0];
      context.require(got == expected, "row {} is {}, expected {}", near, got, expected);
    }
}

void elements(Context& context, uint32_t op) {
  Device& device = context.device();
  Buffer in(device, static_cast<uint64_t>(kLength)), out(device, static_cast<uint64_t>(kLength));
  const auto value = [](int64_t i) { return static_cast<unsigned char>(i * 7 + (i >> 8) + (i >> 16) * 3); };
  Bytes data(static_cast<size_t>(kLength));
  for (int64_t i = 0; i < kLength; ++i) data[static_cast<size_t>(i)] = value(i);
  upload(in, data);
  OpDesc desc = elementwise(op, BP_U8, kLength);
  std::vector<bp_operand> inputs(desc.inputs().size(), {in.get(), 0, 0});
  run(device, desc, inputs, {{out.get(), 0, 0}});
  check(context, out, BP_U8, op_info(op).name, [&](int64_t i) {
    const auto x = static_cast<unsigned>(value(i));
    return static_cast<uint64_t>(op == BP_OP_ADD ? x + x : op == BP_OP_BITNOT ? ~x : x) & 0xFFu;
  });
}

void random_numbers(Context& context) {
  Buffer out = make_result(context, BP_U32);
  constexpr uint64_t key = 0x0123456789abcdef, low = 0xfffffff0, high = 3;
  OpDesc desc(BP_OP_PHILOX);
  desc.output(dense_view(BP_U32, {kLength})).scalars(3);
  run(context.device(), desc, {}, {{out.get(), 0, 0}}, {key, low, high});
  for (const auto& [from, to] : windows(context)) {
    const int64_t first = from / 4 * 4;
    oracle::Call call;
    call.op = BP_OP_PHILOX;
    call.outputs.push_back({BP_U32, {to - first}, {}});
    call.scalars = {key, low + static_cast<uint64_t>(first) / 4, high};
    const oracle::Expected expected = std::move(oracle::evaluate(call).front());
    const Words got = download<uint32_t>(out, static_cast<uint64_t>(to - first), static_cast<uint64_t>(first) * 4);
    for (size_t i = 0; i < got.size(); ++i)
      context.require(got[i] == expected.elements[i].bits, "element {} is {:#x}, expected {:#x}",
                      first + static_cast<int64_t>(i), got[i], expected.elements[i].bits);
  }
}

}  // namespace

void add_long(Catalogue& catalogue) {
  const auto add = [&](uint32_t id, uint32_t dtype, std::string_view what, std::function<void(Context&)> body,
                       std::string_view extension = "", uint32_t least_profile = BP_PROFILE_CORE) {
    const bph_op_info& op = op_info(id);
    catalogue.push_back({.id = fmt::format("numeric.{}.{}.long.{}", op.name, oracle::format_of(dtype).name, what),
                         .profile = std::max(op.profile, least_profile),
                         .extension = extension,
                         .op = id,
                         .dtype = dtype,
                         .requirements = {"BP-NUM-015", "BP-NUM-048"},
                         .run = std::move(body)});
  };
  for (const uint32_t dtype : {BP_I32, BP_U8, BP_U32, BP_F32})
    add(BP_OP_IOTA, dtype, "past_2_to_24", [=](Context& context) { ramp(context, dtype); });
  for (const uint32_t dtype : {BP_I32, BP_U8})
    for (const bool exclusive : {false, true})
      add(BP_OP_CUMSUM, dtype, fmt::format("past_2_to_24.{}", exclusive ? "exclusive_reverse" : "inclusive"),
          [=](Context& context) { running_sum(context, dtype, exclusive, exclusive); });
  for (const uint32_t op : {BP_OP_ARGMAX, BP_OP_ARGMIN})
    add(op, BP_U8, "past_2_to_24", [=](Context& context) { extreme(context, op, true); });
  for (const uint32_t op : {BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN})
    add(op, BP_U8, "past_2_to_24", [=](Context& context) { extreme(context, op, false); });
  for (const uint32_t dtype : {BP_BOOL, BP_I32})
    add(BP_OP_REDUCE_SUM, dtype, "past_2_to_24", [=](Context& context) { count(context, dtype, kLength); });
  add(
      BP_OP_REDUCE_SUM, BP_BOOL, "past_2_to_31",
      [](Context& context) {
        // Many devices process a row in one thread or workgroup. The predicted time of the whole
        // row is therefore 64 times the time of one part.
        constexpr int64_t parts = 64, all = (int64_t{1} << 31) + 3;
        constexpr uint64_t most_ns = 8'000'000'000;
        const uint64_t begin = now_ns();
        count(context, BP_BOOL, all / parts);
        const uint64_t whole_ns = parts * (now_ns() - begin);
        if (whole_ns > most_ns)
          context.not_claimed("{} ones in a row would take this device about {} s", all, whole_ns / 1'000'000'000);
        count(context, BP_BOOL, all);
      },
      "LARGE");
  for (const bool gather : {true, false}) {
    const uint32_t op = gather ? BP_OP_GATHER : BP_OP_SCATTER;
    add(op, BP_U8, "past_2_to_24", [=](Context& context) {
      indexed<int32_t>(context, gather, kLength, {kPower + 1, kPower + 3, 5, kPower - 1, kLength - 1, kPower + 50});
    });
    add(
        op, BP_U8, "past_2_to_31",
        [=](Context& context) {
          constexpr int64_t far = int64_t{1} << 31;
          indexed<int64_t>(context, gather, far + 101, {far + 1, 5, far - 1, far + 100, kPower + 1, far});
        },
        "LARGE", BP_PROFILE_INFER);
    catalogue.back().large = true;
  }
  for (const uint32_t op : {BP_OP_ADD, BP_OP_BITNOT, BP_OP_COPY})
    add(op, BP_U8, "past_2_to_24", [=](Context& context) { elements(context, op); });
  add(BP_OP_PHILOX, BP_U32, "past_2_to_24", random_numbers);
}

}  // namespace backplane::conformance::numeric
