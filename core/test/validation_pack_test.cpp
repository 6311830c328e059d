// SPDX-License-Identifier: Apache-2.0
// Tests the rules of the layer `validation` for packed operands.
#include "layer_fixture.hpp"

namespace backplane::core::test {
namespace {

namespace rule = layers::rule;

// The descriptor of out[16,16] = a[16,16] * b[16,16].
struct Product {
  bp_tensor_desc views[3] = {};  // views of `a`, `b` and `out`
  bp_operand operands[3] = {};
  bp_matmul_attributes attributes = {sizeof(attributes), 0};
  bp_op_desc desc = {};
  bp_execution execution = {};

  Product() {
    for (bp_tensor_desc& view : views) {
      view.dtype = BP_F32;
      view.rank = 2;
      view.alignment_log2 = 8;
      view.shape[0] = view.shape[1] = view.strides[0] = 16;
      view.strides[1] = 1;
    }
    desc.struct_size = sizeof(desc);
    desc.op = BP_OP_MATMUL;
    desc.attributes = &attributes;
    desc.inputs = views;
    desc.outputs = views + 2;
    desc.input_count = 2;
    desc.output_count = 1;
    execution.struct_size = sizeof(execution);
    execution.desc = &desc;
    execution.inputs = operands;
    execution.outputs = operands + 2;
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  bp_tensor_desc& right() { return views[1]; }
  void pack_right(uint64_t bytes) {
    right().flags = BP_DESC_PACKED;
    right().strides[0] = static_cast<int64_t>(bytes);
    right().strides[1] = 7;
  }
};

class ValidationPackTest : public LayerTest {
 protected:
  void open_packs() {
    open();
    table = static_cast<const bp_pack_api*>(layer->get_interface(layer, device, BP_INTERFACE_PACK, 1));
    ASSERT_NE(table, nullptr);
  }
  auto create(const Product& product, uint32_t input = 1) {
    return [this, &product, input](bp_error* e) {
      bp_pack_info info = {};
      info.struct_size = sizeof(info);
      return table->pack_create(device, &product.desc, input, &made, &info, e);
    };
  }
  const bp_pack_api* table = nullptr;
  bp_pack* made = nullptr;
};

TEST_F(ValidationPackTest, InputsAreChecked) {
  open_packs();
  Product product;
  refused(rule::kPackInput, create(product, 2));
  Product sum;  // only elementwise operators work in place
  sum.desc.op = BP_OP_ADD;
  sum.desc.attributes = nullptr;
  sum.views[2].alias = 2;
  refused(rule::kPackInput, create(sum));
  const bp_tensor_desc plain = product.right();
  product.pack_right(2048);
  refused(rule::kPackInput, create(product));
  product.right() = plain;
  product.right().flags = BP_DESC_IMMEDIATE;
  product.right().strides[0] = product.right().strides[1] = 0;
  refused(rule::kPackInput, create(product));
  product.right() = plain;
  product.right().flags = 4;
  refused(rule::kUnknownValue, create(product));
  product.right() = plain;
  bp_pack_info info = {};
  refused(rule::kOutputStruct,
          [&](bp_error* e) { return table->pack_create(device, &product.desc, 1, &made, &info, e); });
  refused(rule::kNullPointer,
          [&](bp_error* e) { return table->pack_create(device, &product.desc, 1, &made, nullptr, e); });
  puppet.packed_bytes = 0;
  blamed(rule::kPackInfo, create(product));
  EXPECT_EQ(made, nullptr);
  puppet.packed_bytes = uint64_t{1} << 63;
  blamed(rule::kPackInfo, create(product));
}

TEST_F(ValidationPackTest, PackingsAreChecked) {
  open_packs();
  const Product product;
  bp_buffer *const from = buffer(), *const to = buffer();
  bp_stream* const s = stream();
  EXPECT_OK(create(product)(&error));
  bp_pack* const pack = made;
  const auto run = [&](bp_buffer* src, uint64_t src_offset, bp_buffer* dst, uint64_t dst_offset) {
    return [=, this](bp_error* e) { return table->pack_execute(device, s, pack, src, src_offset, dst, dst_offset, e); };
  };
  refused(rule::kPackRange, run(from, 4096 - 1023, to, 0));
  refused(rule::kPackRange, run(from, UINT64_MAX, to, 0));
  refused(rule::kPackRange, run(from, 0, to, 4096 - puppet.packed_bytes + 256));
  refused(rule::kPackRange, run(from, 0, to, 64));
  refused(rule::kPackRange, run(from, 0, from, 0));
  refused(rule::kNullPointer, run(nullptr, 0, to, 0));
  refused(rule::kNullPointer, run(from, 0, nullptr, 0));
  bp_buffer* const host = buffer(BP_MEMORY_HOST);
  refused(rule::kOperandMemory, run(host, 0, to, 0));
  refused(rule::kOperandMemory, run(from, 0, host, 0));
  const auto* graphs = static_cast<const bp_graph_api*>(layer->get_interface(layer, device, BP_INTERFACE_GRAPH, 1));
  const bp_graph_desc desc = {sizeof(desc), 0, nullptr, 0, 0};
  bp_graph* graph = nullptr;
  EXPECT_OK(graphs->graph_begin(device, s, &desc, &error));
  refused(rule::kCaptureCall, run(from, 0, to, 0));
  EXPECT_OK(graphs->graph_end(device, s, &graph, nullptr, &error));
  graphs->graph_destroy(device, graph);
  EXPECT_OK(run(from, 0, to, 0)(&error));
  logged(rule::kBufferPending, [&] { api->buffer_destroy(device, to); });
  logged(rule::kCloseLast, [&] { api->close(device); });
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  table->pack_destroy(device, pack);
  logged(rule::kEndedHandle, [&] { table->pack_destroy(device, pack); });
  refused(rule::kEndedHandle, run(from, 0, to, 0));
}

// The rules for operands also apply to packed operands, whose views state their size in bytes.
TEST_F(ValidationPackTest, ExecutionsAreChecked) {
  open_packs();
  Product product;
  product.pack_right(2048);
  bp_buffer *const in = buffer(), *const out = buffer();
  bp_stream* const s = stream();
  product.operands[0] = {in, 0, 0};
  product.operands[1] = {in, 1024, 0};
  product.operands[2] = {out, 0, 0};
  puppet.plan_info.flags = BP_PLAN_ANY_SIZE;
  bp_plan* plan = nullptr;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_OK(api->plan_create(device, &product.desc, &plan, &info, &error));
  plans.push_back(plan);
  const auto run = [&](bp_error* e) { return api->plan_execute(device, s, plan, &product.execution, e); };
  EXPECT_OK(run(&error));
  product.operands[1].offset = 2304;
  refused(rule::kOperandBounds, run);
  product.operands[1].offset = 1024;
  product.operands[2] = {in, 2560, 0};  // in the last bytes of the packed operand
  refused(rule::kOperandOverlap, run);
  product.operands[2] = {out, 0, 0};
  product.right().strides[1] = 8;
  refused(rule::kPlanIdentity, run);  // another layout is another plan, even if the plan serves any size
  product.right().strides[1] = 7;
  product.right().flags = 0;
  product.right().strides[0] = 16;
  product.right().strides[1] = 1;
  refused(rule::kPlanIdentity, run);
}

}  // namespace
}  // namespace backplane::core::test
