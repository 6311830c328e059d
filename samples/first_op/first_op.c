/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal program in C. It loads the plugin that the command line names, and adds two vectors on the
 * plugin's first device. */
#include <backplane/backplane.h>
#include <stdio.h>

/* [check] */
static int failed(bp_status status, const bp_error* error) {
  if (status != BP_OK) fprintf(stderr, "first_op_c: %s (%s)\n", error->message, bph_status_name(status));
  return status != BP_OK;
}
/* [/check] */

/* [view] */
static bph_tensor vector_view(bph_buffer* buffer, uint64_t index) {
  bph_tensor view = {.buffer = buffer, .offset = index * 4 * sizeof(float), .dtype = BP_F32, .rank = 1};
  view.shape[0] = 4;
  view.strides[0] = 1;
  return view;
}
/* [/view] */

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: first_op_c PLUGIN (a name, or the path of a library or manifest)\n"), 2;
  const float values[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  float sum[4];
  char name[128];
  /* [open] */
  bp_error error = {.struct_size = sizeof(error)};
  bph_registry* registry = NULL;
  bph_plugin* plugin = NULL;
  bph_device* device = NULL;
  bph_stream* stream = NULL;
  bph_buffer* buffer = NULL;
  const bph_registry_desc desc = {.struct_size = sizeof(desc)};
  bph_buffer_desc memory = {.struct_size = sizeof(memory), .kind = BP_MEMORY_DEVICE, .bytes = 3 * sizeof(sum)};
  int bad = failed(bph_registry_create(&desc, &registry, &error), &error) ||
            failed(bph_plugin_load(registry, argv[1], &plugin, &error), &error) ||
            failed(bph_plugin_device_open(plugin, 0, NULL, &device, &error), &error) ||
            failed(bph_device_name(device, name, sizeof(name), &error), &error) ||
            failed(bph_stream_create(device, NULL, &stream, &error), &error);
  memory.stream = stream;
  bad = bad || failed(bph_buffer_create(device, &memory, &buffer, &error), &error);
  /* [/open] */

  /* [execute] */
  const bph_tensor inputs[2] = {vector_view(buffer, 0), vector_view(buffer, 1)};
  const bph_tensor output = vector_view(buffer, 2);
  const bph_call add = {.struct_size = sizeof(add),
                        .op = BP_OP_ADD,
                        .inputs = inputs,
                        .outputs = &output,
                        .input_count = 2,
                        .output_count = 1};
  bad = bad || failed(bph_copy_in(stream, buffer, 0, values, sizeof(values), 0, &error), &error) ||
        failed(bph_execute(stream, &add, &error), &error) ||
        failed(bph_copy_out(stream, sum, buffer, output.offset, sizeof(sum), 0, &error), &error);
  /* [/execute] */
  if (!bad) printf("%s: %g %g %g %g\n", name, sum[0], sum[1], sum[2], sum[3]);

  /* [release] */
  bph_buffer_release(buffer); /* any order works, because each object keeps what it needs; null is valid */
  bph_stream_release(stream);
  bph_device_release(device);
  bph_plugin_release(plugin);
  bph_registry_release(registry);
  /* [/release] */
  return bad;
}
