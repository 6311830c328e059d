// SPDX-License-Identifier: Apache-2.0
// Test cases for the first use of a slot or an operator in a process. Each case runs in a new
// process, because earlier cases in a process initialise the plugin.
#include "cases/catalogue.hpp"
#include "cases/numeric/problem.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

constexpr unsigned kFirstUseThreads = 8;

// Each thread creates its own plugin instance, and so calls bp_plugin_query.
void queries(Context& context) {
  // Keeps the library loaded, because each Plugin opens and closes the library.
  const Library library(context.path());
  in_threads(context, kFirstUseThreads, [&](unsigned) { const Plugin plugin(context.path()); });
}

void instances(Context& context) {
  in_threads(context, kFirstUseThreads, [&](unsigned index) {
    Plugin plugin(context.path());
    Device device(plugin, context.device_index());
    Buffer from(device, 4096), to(device, 4096);
    const Words data(1024, index + 1);
    device.write(from.get(), 0, data.data(), 4096);
    Stream stream(device);
    stream.copy(to.get(), 0, from.get(), 0, 4096);
    stream.wait();
    Words got(1024);
    device.read(to.get(), 0, got.data(), 4096);
    require_same(context, got, data, "the first copy of an instance, concurrent with seven others");
  });
}

void device_opens(Context& context) {
  Plugin& plugin = context.plugin();
  in_threads(context, kFirstUseThreads, [&](unsigned) { const Device device(plugin, context.device_index()); });
}

void device_questions(Context& context) {
  Plugin& plugin = context.plugin();
  in_threads(context, kFirstUseThreads, [&](unsigned) {
    plugin.device_count();
    plugin.device_info(context.device_index());
  });
}

template <class Body>
void of_one_device(Context& context, const Body& body) {
  Device& device = context.device();
  in_threads(context, kFirstUseThreads, [&](unsigned index) { body(context, device, index); });
}

void streams(Context& context) {
  of_one_device(context, [](Context&, Device& device, unsigned) { Stream(device).wait(); });
}
void events(Context& context) {
  of_one_device(context, [](Context&, Device& device, unsigned) { Event(device).wait(); });
}
void buffers(Context& context) {
  of_one_device(context, [](Context&, Device& device, unsigned index) { const Buffer made(device, 1000 + index); });
}
void copies(Context& context) {
  of_one_device(context, [](Context& of, Device& device, unsigned index) {
    Buffer from(device, 4096), to(device, 4096);
    Stream stream(device);
    Event event(device);
    const Words data(1024, index + 1);
    device.write(from.get(), 0, data.data(), 4096, stream.get());
    stream.copy(to.get(), 0, from.get(), 0, 4096);
    stream.record(event.get());
    event.wait();
    Words got(1024);
    device.read(to.get(), 0, got.data(), 4096, stream.get());
    require_same(of, got, data, "the first copies of a device, by eight threads at once");
  });
}

// Returns a score for how well a case represents its operator. The best case executes the operator
// once on 16 to 4096 elements, preferably f32, and needs no extension.
int merit(const Case& which) {
  const numeric::Problem* problem = numeric::problem_of(which);
  if (problem == nullptr || which.id.ends_with(".decomposed") || problem->mode != numeric::Mode::once) return 0;
  const int64_t count = problem->shape.count();
  const bool plain = problem->pattern == numeric::DataPattern::tags ||
                     problem->pattern == numeric::DataPattern::uniform ||
                     problem->pattern == numeric::DataPattern::family;
  return 1 + 4 * (which.extension.empty() ? 1 : 0) + 2 * (problem->dtype == BP_F32 ? 1 : 0) +
         (plain && count >= 16 && count <= 4096 ? 1 : 0);
}

}  // namespace

void add_first_use_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, void (*run)(Context&), int times) {
    for (int time = 1; time <= times; ++time) {  // a race may occur only in some of the processes
      add_case(catalogue, fmt::format("runtime.first_use.of_{}_{}", what, time), {"BP-THR-010"}, run);
      catalogue.back().fresh = true;
    }
  };
  add("queries", queries, 2);
  add("instances", instances, 4);
  add("device_questions", device_questions, 2);
  add("device_opens", device_opens, 2);
  add("streams", streams, 2);
  add("events", events, 2);
  add("buffers", buffers, 2);
  add("copies", copies, 4);

  // Runs one numeric case per operator again, as the first work of a new process.
  struct Best {
    size_t index = 0;
    int merit = 0;
  };
  std::vector<Best> best(BP_OP_LIMIT);
  for (size_t index = 0; index < catalogue.size(); ++index) {
    const Case& each = catalogue[index];
    if (!each.id.starts_with("numeric.") || each.op >= best.size()) continue;
    if (const int own = merit(each); own > best[each.op].merit) best[each.op] = {index, own};
  }
  for (const Best& of : best) {
    if (of.merit == 0) continue;
    Case again = catalogue[of.index];
    const size_t name = std::string_view("numeric.").size();
    again.id = "runtime.first_use." + again.id.substr(name, again.id.find('.', name) - name);
    again.requirements.emplace_back("BP-THR-010");
    again.fresh = true;
    catalogue.push_back(std::move(again));
  }
}

}  // namespace backplane::conformance
