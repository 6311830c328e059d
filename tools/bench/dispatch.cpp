// SPDX-License-Identifier: Apache-2.0
// Implements `backplane bench dispatch`, which measures in one run the cost of calls through core and the cost of calls
// directly through a plugin's table.
#include <malloc.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "direct_plugin.hpp"
#include "host.hpp"
#include "measure.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

namespace fs = std::filesystem;

struct DispatchFigure {
  std::string key;
  std::string what;
  std::string unit;  // "ns" or "count"
  std::optional<Spread> value;
  std::string why_none;
  std::optional<double> budget;
};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = fs::temp_directory_path() / "backplane-bench-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Failure(kExitFinding, "UNAVAILABLE",
                    fmt::format("no directory can be created in {}; set TMPDIR to a directory that you can write",
                                fs::temp_directory_path().string()));
    }
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  // Copies a library. The dynamic linker treats the copy as a different library and loads it again.
  std::string copy_of(const std::string& library) {
    const fs::path copy = path_ / fmt::format("copy_{}.so", copies_++);
    fs::copy_file(library, copy);
    return copy;
  }

 private:
  fs::path path_;
  int copies_ = 0;
};

std::string find_null_plugin(const std::string& given) {
  std::error_code failure;
  if (!given.empty()) return fs::absolute(given).string();
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  const fs::path installed = program.parent_path() / BACKPLANE_BENCH_FROM_BINDIR / "libbackplane_null.so";
  if (fs::exists(installed, failure)) return fs::canonical(installed).string();
  throw Failure(
      kExitFinding, "UNAVAILABLE",
      fmt::format("the null plugin is not at {}; name its library with --null-plugin, or install the SDK whole",
                  installed.lexically_normal().string()));
}

// A device and a stream for an eager `add` on three dense f32 operands of rank 2.
class EagerAdd {
 public:
  EagerAdd(Device device, int64_t rows, int64_t columns) : device_(std::move(device)), stream_(device_) {
    bph_buffer_desc desc = sized<bph_buffer_desc>();
    desc.bytes = static_cast<uint64_t>(rows * columns) * sizeof(float);
    desc.stream = stream_.get();
    for (size_t i = 0; i < 3; ++i) {
      buffers_[i] = Buffer(device_.get(), desc);
      views_[i].buffer = buffers_[i].get();
      views_[i].dtype = BP_F32;
      views_[i].rank = 2;
    }
    reshape(rows, columns);
    call_ = sized<bph_call>();
    call_.op = BP_OP_ADD;
    call_.inputs = views_;
    call_.outputs = views_ + 2;
    call_.input_count = 2;
    call_.output_count = 1;
    call(bph_execute, stream_.get(), &call_);
  }
  void reshape(int64_t rows, int64_t columns) {
    for (bph_tensor& view : views_) {
      view.shape[0] = rows;
      view.shape[1] = columns;
      view.strides[0] = columns;
      view.strides[1] = 1;
    }
  }
  bp_status execute() { return bph_execute(stream_.get(), &call_, nullptr); }
  // Records `count` calls in a graph. A launch enqueues these calls one by one, because the flag
  // BPH_GRAPH_NO_NATIVE prevents a launch by the plugin.
  Graph record(uint64_t count) {
    const auto calls = [&] {
      for (uint64_t i = 0; i < count; ++i) call(bph_execute, stream_.get(), &call_);
    };
    return Graph::record(stream_, calls, {}, BPH_GRAPH_NO_NATIVE);
  }
  void wait() { stream_.wait(); }
  const Device& device() const { return device_; }
  const Stream& stream() const { return stream_; }

 private:
  Device device_;
  Stream stream_;
  Buffer buffers_[3];
  bph_tensor views_[3] = {};
  bph_call call_;
};

constexpr int64_t kFew = 4;            // number of rows and of columns in calls whose plan is cached
constexpr int64_t kMostColumns = 128;  // new shapes have 2 to kMostRows rows and 2 to kMostColumns columns
constexpr int64_t kMostRows = 512;

int64_t new_rows(uint64_t index) { return 2 + static_cast<int64_t>(index) / (kMostColumns - 1) % (kMostRows - 1); }
int64_t new_columns(uint64_t index) { return 2 + static_cast<int64_t>(index) % (kMostColumns - 1); }

class Bench {
 public:
  Bench(const Session& session, const BenchOptions& options)
      : session_(session), options_(options), null_library_(find_null_plugin(options.null_plugin)) {}

  std::vector<DispatchFigure> measure_all() {
    calls();
    optional("plan_reference", [&] { plans(); });
    optional("load_reference", [&] { loads(); });
    torch();
    return std::move(figures_);
  }

 private:
  void add(std::string key, std::string what, Spread value, std::optional<double> budget = {},
           std::string unit = "ns") {
    figures_.push_back({std::move(key), std::move(what), std::move(unit), value, "", budget});
  }
  template <class Body>
  void optional(const char* key, Body body) {
    try {
      body();
    } catch (const std::exception& failure) {
      figures_.push_back({key, fmt::format("not measured on {}", options_.device), "ns", {}, failure.what(), {}});
    }
  }

  void calls() {
    const Registry registry = open_registry(session_, !session_.json);
    DirectPlugin direct(null_library_, kFew, kFew);
    EagerAdd eager(registry.load(null_library_).open(), kFew, kFew);
    const uint32_t batches = options_.batches;
    const auto measured = [&] { return measure(batches, options_.calls, [&](uint64_t) { eager.execute(); }); };
    const Spread direct_call = measure(batches, options_.calls, [&](uint64_t) { direct.execute(); });
    const Spread one = measured();
    allocations(eager);
    std::vector<Plugin> others;
    for (int i = 0; i < 6; ++i) others.push_back(registry.load(directory_.copy_of(null_library_)));
    const Spread seven = measured();
    const auto share = [&](const Spread& all) {
      return Spread{all.median - direct_call.median, all.least - direct_call.least, all.most - direct_call.most};
    };
    add("direct_call", "call through the plugin's table, no library", direct_call);
    optional("kit_binding", [&] { binding(direct_call); });
    add("eager_call", "eager call, cached plan, 1 plugin loaded", one);
    add("eager_share", "  of that the library's share", share(one), 45);
    add("eager_call_7", "eager call, cached plan, 7 plugins loaded", seven);
    add("eager_share_7", "  of that the library's share", share(seven), 45);
    replay(eager);
    add("allocations", "heap allocations of an eager call", {allocations_, allocations_, allocations_}, 0, "count");
    new_shapes("null", "null plugin");
    allocator(eager);
  }

  // Measures how long the author kit takes to bind operands. The result is the time of a call of a plugin that only
  // binds its operands with the kit, minus the time of a call of the C plugin that does nothing.
  void binding(const Spread& direct_call) {
    const std::string library = (fs::path(null_library_).parent_path() / "libbackplane_null_kit.so").string();
    DirectPlugin bound(library, kFew, kFew);
    const Spread call = measure(options_.batches, options_.calls, [&](uint64_t) { bound.execute(); });
    add("kit_binding", "the author kit's binding of operands",
        {call.median - direct_call.median, call.least - direct_call.least, call.most - direct_call.most}, 15);
  }

  // Measures a launch of a graph whose calls core enqueues one by one. The result is the time per recorded call.
  void replay(EagerAdd& eager) {
    const uint64_t nodes = std::min<uint64_t>(options_.calls, 1000);
    const Graph graph = eager.record(nodes);
    const auto launches = std::max<uint32_t>(1, static_cast<uint32_t>(options_.calls / nodes));
    const Spread launch = measure(options_.batches, launches, [&](uint64_t) { graph.launch(eager.stream()); });
    const auto each = static_cast<double>(nodes);
    add("replay", fmt::format("call in a recorded graph of {} calls", nodes),
        {launch.median / each, launch.least / each, launch.most / each}, 41);
  }

  void allocations(EagerAdd& eager) {
    constexpr int count = 1000;
    const uint64_t before = allocation_count();
    const size_t heap_before = mallinfo2().uordblks;
    for (int i = 0; i < count; ++i) eager.execute();
    const double counted = static_cast<double>(allocation_count() - before);
    // Detects allocations that use malloc instead of operator new.
    const double grown = mallinfo2().uordblks > heap_before ? 1.0 : 0.0;
    allocations_ = std::max(counted, grown) / count;
  }

  // Measures the host cost of a new shape in two cases: with a cached plan of the shape's class,
  // and after all plans were dropped.
  void new_shapes(const std::string& key, const std::string& where) {
    EagerAdd large(eager_device(key), kMostRows, kMostColumns);
    constexpr uint32_t calls = 200;  // keeps the queue of an asynchronous device short
    const bph_stats before = large.device().stats();
    const auto shaped = [&](uint64_t index) {
      large.reshape(new_rows(index), new_columns(index));
      large.execute();
    };
    const Spread known = measure(options_.batches, calls, shaped, [&] { large.wait(); });
    const bph_stats after = large.device().stats();
    const uint64_t hits = after.plan_class_hits - before.plan_class_hits;
    add("new_shape_" + key,
        fmt::format("eager call, new shape, {} ({} of {} served by an any-size plan)", where, hits,
                    uint64_t{calls} * options_.batches),
        known, key == "null" ? std::optional<double>(700) : std::nullopt);
    std::vector<double> samples;
    for (uint64_t i = 0; i < 50 * uint64_t{options_.batches}; ++i) {
      large.wait();
      large.device().trim(true);
      large.reshape(new_rows(i), new_columns(i));
      samples.push_back(timed_ns([&] { large.execute(); }));
    }
    large.wait();
    add("new_plan_" + key, fmt::format("eager call that makes a plan, {}", where), spread_of(std::move(samples)));
  }

  Device eager_device(const std::string& key) {
    if (key == "null") return open_registry(session_, !session_.json).load(null_library_).open();
    return open_registry(session_, !session_.json).open(options_.device.c_str());
  }

  void allocator(EagerAdd& eager) {
    bph_buffer_desc desc = sized<bph_buffer_desc>();
    desc.bytes = 4096;
    desc.stream = eager.stream().get();
    const auto pair = [&](uint64_t) {
      bph_buffer* buffer = nullptr;
      bph_buffer_create(eager.device().get(), &desc, &buffer, nullptr);
      bph_buffer_release(buffer);
    };
    measure(1, 1000, pair);
    add("allocator", "buffer create + release, 4 KiB, steady state", measure(options_.batches, options_.calls, pair),
        50);
  }

  void plans() {
    const Registry registry = open_registry(session_, !session_.json);
    const std::string library = device_library(registry);
    DirectPlugin direct(library, kMostRows, kMostColumns);
    constexpr uint32_t calls = 200;
    std::vector<bp_plan*> made;
    const Spread create = measure(
        options_.batches, calls,
        [&](uint64_t index) {
          bp_plan* plan = nullptr;
          direct.create_plan(new_rows(index), new_columns(index), &plan);
          made.push_back(plan);
        },
        [&] {
          for (bp_plan* plan : made) direct.destroy_plan(plan);
          made.clear();
        });
    add("plan_create", fmt::format("plan_create of add at a new shape, {}, through its table", options_.device), create,
        1000);
    EagerAdd eager(registry.open(options_.device.c_str()), kFew, kFew);
    const Spread cached = measure(
        options_.batches, 200, [&](uint64_t) { eager.execute(); }, [&] { eager.wait(); });
    add("eager_device", fmt::format("eager call, cached plan, {} (with enqueueing)", options_.device), cached);
    new_shapes("device", options_.device);
  }

  std::string device_library(const Registry& registry) const {
    return registry.load(options_.device.substr(0, options_.device.find(':'))).info().library;
  }

  Spread load_and_probe(const std::string& library) {
    std::vector<double> samples;
    for (int i = 0; i < 9; ++i) {
      const std::string copy = directory_.copy_of(library);
      samples.push_back(timed_ns([&] {
        const Registry registry = open_registry(session_, !session_.json);
        const Plugin plugin = registry.load(copy);
        if (plugin.device_count() > 0) plugin.device_info(0);
      }));
    }
    return spread_of(std::move(samples));
  }

  void loads() {
    add("load_null", "registry, load and probe, null plugin", load_and_probe(null_library_), 5e6);
    const std::string library = device_library(open_registry(session_, !session_.json));
    add("load_device", fmt::format("registry, load and probe, {}", options_.device), load_and_probe(library), 5e6);
  }

  // Measures PyTorch's eager add, called from Python.
  void torch() {
    static constexpr const char* kCommand =
        "python3 -c 'import time, torch\n"
        "torch.set_num_threads(1)\n"
        "a, b, times = torch.ones(2, 2), torch.ones(2, 2), []\n"
        "for batch in range(21):\n"
        "    begin = time.perf_counter_ns()\n"
        "    for i in range(2000): torch.add(a, b)\n"
        "    times.append((time.perf_counter_ns() - begin) / 2000)\n"
        "times.sort()\n"
        "print(times[10], times[0], times[-1])' 2>/dev/null";
    Spread value;
    FILE* pipe = popen(kCommand, "r");
    const bool read =
        pipe != nullptr && std::fscanf(pipe, "%lf %lf %lf", &value.median, &value.least, &value.most) == 3;
    if (pipe != nullptr) pclose(pipe);
    DispatchFigure figure{
        "torch_add", "PyTorch: eager add of 4 elements, from Python", "ns", {}, "python3 has no torch", {}};
    if (read) {
      figure.value = value;
      figure.why_none.clear();
    }
    figures_.push_back(std::move(figure));
  }

  const Session& session_;
  const BenchOptions& options_;
  std::string null_library_;
  TemporaryDirectory directory_;
  std::vector<DispatchFigure> figures_;
  double allocations_ = 0;
};

std::string value_text(const DispatchFigure& figure, double value) {
  if (figure.unit == "count") return fmt::format("{:g}", value);
  if (value >= 1e6) return fmt::format("{:.2f} ms", value / 1e6);
  return value >= 1e4 ? fmt::format("{:.2f} µs", value / 1e3) : fmt::format("{:.1f} ns", value);
}

bool within(const DispatchFigure& figure) { return figure.value->median <= *figure.budget; }

void print_text(Session& session, const BenchOptions& options, const std::vector<DispatchFigure>& figures) {
  session.print("Median of {} batches of {} calls, least and most batch\n\n", options.batches, options.calls);
  Table table({"WHAT", Cell("MEDIAN", Style::plain, true), Cell("LEAST", Style::plain, true),
               Cell("MOST", Style::plain, true), Cell("BUDGET", Style::plain, true), ""});
  for (const DispatchFigure& figure : figures) {
    if (!figure.value) {
      table.add({figure.what, "", "", "", "", Cell(figure.why_none, Style::faint)});
      continue;
    }
    std::vector<Cell> row = {figure.what};
    for (const double value : {figure.value->median, figure.value->least, figure.value->most}) {
      row.push_back(Cell(value_text(figure, value), Style::plain, true));
    }
    if (figure.budget) {
      row.push_back(Cell("<= " + value_text(figure, *figure.budget), Style::plain, true));
      row.push_back(within(figure) ? Cell("✓", Style::good) : Cell("✗", Style::bad));
    }
    table.add(std::move(row));
  }
  session.out += table.text(session.colour);
}

void print_json(Session& session, const BenchOptions& options, const std::vector<DispatchFigure>& figures) {
  Json document = Session::document("backplane.bench_dispatch");
  document["batches"] = options.batches;
  document["calls"] = options.calls;
  document["device"] = options.device;
  document["figures"] = Json::array();
  for (const DispatchFigure& figure : figures) {
    Json row;
    row["key"] = figure.key;
    row["what"] = figure.what;
    row["unit"] = figure.unit;
    row["measured"] = figure.value.has_value();
    row["reason"] = figure.why_none;
    if (figure.value) {
      row["median"] = figure.value->median;
      row["least"] = figure.value->least;
      row["most"] = figure.value->most;
    }
    if (figure.budget) {
      row["budget"] = *figure.budget;
      if (figure.value) row["within_budget"] = within(figure);
    }
    document["figures"].push_back(row);
  }
  session.print(document);
}

}  // namespace

int bench_dispatch(Session& session, const BenchOptions& options) {
  const std::vector<DispatchFigure> figures = Bench(session, options).measure_all();
  if (session.json) {
    print_json(session, options, figures);
  } else {
    print_text(session, options, figures);
  }
  return kExitOk;
}

}  // namespace tool
