// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of layers: the puppet plugin wrapped in the layer `validation`, some
// objects, and an operator to execute.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "expect.hpp"
#include "layers/fault/fault.hpp"
#include "layers/trace/trace.hpp"
#include "layers/validation/rules.hpp"
#include "layers/validation/validation.hpp"
#include "owned.hpp"
#include "puppet.hpp"

namespace backplane::core::test {

// An execution of out = a + b with four f32 elements per operand. Tests change parts of the
// execution.
struct Addition {
  bp_tensor_desc views[3] = {};  // views of `a`, `b` and `out`
  bp_operand operands[3] = {};
  bp_op_desc desc = {};
  bp_execution execution = {};

  explicit Addition(bp_buffer* in, bp_buffer* out) {
    for (bp_tensor_desc& view : views) {
      view.dtype = BP_F32;
      view.rank = 1;
      view.alignment_log2 = 8;
      view.shape[0] = 4;
      view.strides[0] = 1;
    }
    operands[0] = {in, 0, 0};
    operands[1] = {in, 256, 0};
    operands[2] = {out, 0, 0};
    desc.struct_size = sizeof(desc);
    desc.op = BP_OP_ADD;
    desc.inputs = views;
    desc.outputs = views + 2;
    desc.input_count = 2;
    desc.output_count = 1;
    execution.struct_size = sizeof(execution);
    execution.desc = &desc;
    execution.inputs = operands;
    execution.outputs = operands + 2;
  }
  Addition(const Addition&) = delete;
  Addition& operator=(const Addition&) = delete;
};

// Ids of the rules that the tests of this program have broken.
inline std::set<std::string> rules_seen;

class LayerTest : public ::testing::Test {
 protected:
  void open(uint64_t capabilities = BP_CAP_TIMING) {
    puppet.capabilities = capabilities;
    layer = layers::validation(&puppet.instance.table, &puppet.host);
    api = layer->device_api;
    ASSERT_OK(layer->device_open(layer, 0, nullptr, &device, &error));
  }
  void TearDown() override {
    if (layer == nullptr) return;
    for (bp_stream* each : streams) api->stream_wait(device, each, BP_WAIT_FOREVER, nullptr);
    for (bp_buffer* each : buffers) api->buffer_destroy(device, each);
    for (bp_event* each : events) api->event_destroy(device, each);
    for (bp_plan* each : plans) api->plan_destroy(device, each);
    for (bp_stream* each : streams) api->stream_destroy(device, each);
    api->close(device);
    layer->shutdown(layer);
    EXPECT_EQ(puppet.alive, 0);
    EXPECT_TRUE(puppet.ended);
    EXPECT_THAT(puppet.log, ::testing::IsEmpty());
  }

  bp_buffer* buffer(uint32_t kind = BP_MEMORY_DEVICE, uint64_t bytes = 4096, uint64_t alignment = 0) {
    bp_buffer_desc desc = {sizeof(desc), kind, bytes, alignment};
    bp_buffer* made = nullptr;
    EXPECT_OK(api->buffer_create(device, &desc, &made, &error));
    buffers.push_back(made);
    return made;
  }
  bp_stream* stream() {
    bp_stream_desc desc = {sizeof(desc), 0};
    bp_stream* made = nullptr;
    EXPECT_OK(api->stream_create(device, &desc, &made, &error));
    streams.push_back(made);
    return made;
  }
  bp_event* event(uint32_t flags = 0) {
    bp_event* made = nullptr;
    EXPECT_OK(api->event_create(device, flags, &made, &error));
    events.push_back(made);
    return made;
  }
  bp_plan* plan(const Addition& work) {
    bp_plan* made = nullptr;
    bp_plan_info info = {};
    info.struct_size = sizeof(info);
    EXPECT_OK(api->plan_create(device, &work.desc, &made, &info, &error));
    plans.push_back(made);
    return made;
  }
  template <class T>
  static void forget(std::vector<T*>& list, T* item) {
    std::erase(list, item);
  }

  // Expects that the layer refuses the call with `rule` and does not call the plugin.
  template <class Call>
  void refused(const layers::Rule& rule, Call&& call) {
    const auto before = puppet.calls;
    error = fresh_error();
    EXPECT_EQ(call(&error), BP_INVALID_ARGUMENT) << rule.id << " " << error.message;
    saw(rule, error.message);
    EXPECT_EQ(puppet.calls, before) << rule.id << ": it was passed on";
  }
  // Expects that the layer refuses a call of a slot that returns no status, and logs `rule`.
  template <class Call>
  void logged(const layers::Rule& rule, Call&& call) {
    const auto before = puppet.calls;
    puppet.log.clear();
    call();
    ASSERT_EQ(puppet.log.size(), 1u) << rule.id;
    saw(rule, puppet.log.front());
    puppet.log.clear();
    EXPECT_EQ(puppet.calls, before) << rule.id << ": it was passed on";
  }
  // Expects that the layer reports a defect of the plugin with `rule`.
  template <class Call>
  void blamed(const layers::Rule& rule, Call&& call) {
    error = fresh_error();
    EXPECT_EQ(call(&error), BP_INTERNAL) << rule.id << " " << error.message;
    saw(rule, error.message);
    EXPECT_THAT(error.message, ::testing::HasSubstr("report it to the plugin's author"));
  }
  void saw(const layers::Rule& rule, const std::string& message) {
    EXPECT_THAT(message, ::testing::HasSubstr(std::string("[") + rule.id + "]"));
    EXPECT_THAT(message, ::testing::StartsWith("validation: "));
    rules_seen.insert(rule.id);
  }

  Puppet puppet;
  const bp_plugin* layer = nullptr;
  const bp_device_api* api = nullptr;
  bp_device* device = nullptr;
  bp_error error = fresh_error();
  std::vector<bp_buffer*> buffers;
  std::vector<bp_stream*> streams;
  std::vector<bp_event*> events;
  std::vector<bp_plan*> plans;
};

}  // namespace backplane::core::test
