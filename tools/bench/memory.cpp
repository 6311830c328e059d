// SPDX-License-Identifier: Apache-2.0
// Implements `backplane bench memory`, which measures the cost of copies and allocations on a
// device for several sizes.
#include <algorithm>

#include "bench/device_contestant.hpp"
#include "bench/ops.hpp"
#include "bench/report.hpp"
#include "bench/target.hpp"
#include "measure.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

// One measured operation on `bytes` bytes.
struct MemoryRow {
  std::string what;
  uint64_t bytes = 0;
  bool moves = false;  // whether the operation moves bytes, so that a rate is meaningful
  std::string reason;  // why the operation was not measured; empty if it was measured
  Figure latency, throughput;
  double rate() const { return moves && throughput.median > 0 ? static_cast<double>(bytes) / throughput.median : 0; }
};

// A contestant that calls a function and waits for a stream. The function enqueues one operation.
template <class Once>
class StreamContestant final : public Contestant {
 public:
  StreamContestant(const Stream& stream, Once once) : stream_(stream), once_(std::move(once)) {}
  double time(uint32_t calls, bool wait_each) override {
    return timed_ns([&] {
      for (uint32_t i = 0; i < calls; ++i) {
        once_();
        if (wait_each || i + 1 == calls) call(bph_stream_wait, stream_.get(), kWaitNs);
      }
    });
  }

 private:
  const Stream& stream_;
  Once once_;
};

bph_buffer* create(const Device& device, const bph_buffer_desc& desc) {
  bph_buffer* buffer = nullptr;
  call(bph_buffer_create, device.get(), &desc, &buffer);
  return buffer;
}

class MemoryBench {
 public:
  MemoryBench(const Target& target, const BenchMemoryOptions& options)
      : device_(target.open()), stream_(device_), kinds_(target.info().memory_kinds) {
    plan_.seconds = options.seconds;
    for (uint64_t bytes = 1024; bytes <= options.most_bytes; bytes *= 8) sizes_.push_back(bytes);
  }

  std::vector<MemoryRow> run() {
    for (const uint64_t bytes : sizes_) attempt("moves of memory", bytes, [&] { moves(bytes); });
    for (const uint64_t bytes : sizes_) attempt("buffers", bytes, [&] { allocations(bytes); });
    return std::move(rows_);
  }

 private:
  // If the preparation of a size fails, adds a row with the reason, so that the run can continue
  // with other sizes.
  template <class Body>
  void attempt(const char* what, uint64_t bytes, const Body& body) {
    try {
      body();
    } catch (const backplane::Error& error) {
      rows_.push_back({what, bytes, false, error.what(), {}, {}});
    }
  }
  bph_buffer_desc desc_of(uint64_t bytes, uint32_t flags = 0, uint32_t kind = BP_MEMORY_DEVICE) const {
    bph_buffer_desc desc = sized<bph_buffer_desc>();
    desc.kind = kind;
    desc.bytes = bytes;
    desc.flags = flags;
    desc.stream = (flags & BPH_BUFFER_RAW) != 0 ? nullptr : stream_.get();
    return desc;
  }

  // A contestant of measure_together(), and the description of its row.
  struct Entry {
    std::string what;
    bool moves;
    std::unique_ptr<Contestant> contestant;
  };
  // Measures the contestants of one size alternately. If a contestant fails, its row contains the
  // reason.
  void measure_together(uint64_t bytes, std::vector<Entry>& entries) {
    std::vector<Contestant*> contestants;
    std::vector<MemoryRow> rows;
    std::vector<size_t> at;
    for (Entry& entry : entries) {
      MemoryRow row{entry.what, bytes, entry.moves, "", {}, {}};
      try {
        entry.contestant->time(1, true);
        contestants.push_back(entry.contestant.get());
        at.push_back(rows.size());
      } catch (const backplane::Error& error) {
        row.reason = error.what();
      }
      rows.push_back(std::move(row));
    }
    const std::vector<Samples> samples = sample_interleaved(contestants, plan_);
    for (size_t i = 0; i < at.size(); ++i) {
      rows[at[i]].reason = samples[i].reason;
      rows[at[i]].latency = figure_of(samples[i].latency);
      rows[at[i]].throughput = figure_of(samples[i].throughput);
    }
    std::move(rows.begin(), rows.end(), std::back_inserter(rows_));
  }
  template <class Once>
  std::unique_ptr<Contestant> on_stream(Once once) {
    return std::make_unique<StreamContestant<Once>>(stream_, std::move(once));
  }

  void moves(uint64_t bytes) {
    const Buffer one(device_.get(), desc_of(bytes)), two(device_.get(), desc_of(bytes));
    const HostBlock host(bytes);
    std::vector<Entry> entries;
    // Each of the two contestants copies bytes / 2 bytes, because a copy reads and writes each
    // byte.
    entries.push_back(
        {"copy in device memory, read and written", true, std::make_unique<CopyContestant>(device_, bytes)});
    entries.push_back({"memcpy on the host, read and written", true, std::make_unique<MemcpyContestant>(bytes)});
    entries.push_back({"host to device, from pageable memory", true, on_stream([&] {
                         call(bph_copy_in, stream_.get(), one.get(), uint64_t{0}, static_cast<const void*>(host.data()),
                              bytes, uint32_t{0});
                       })});
    entries.push_back({"device to host, to pageable memory", true, on_stream([&] {
                         call(bph_copy_out, stream_.get(), static_cast<void*>(host.data()), one.get(), uint64_t{0},
                              bytes, uint32_t{0});
                       })});
    std::optional<Buffer> pinned;
    if ((kinds_ >> BP_MEMORY_HOST & 1u) != 0) {
      pinned.emplace(device_.get(), desc_of(bytes, 0, BP_MEMORY_HOST));
      entries.push_back({"host to device, from HOST memory", true, on_stream([&] {
                           call(bph_copy, stream_.get(), two.get(), uint64_t{0}, pinned->get(), uint64_t{0}, bytes,
                                uint32_t{0});
                         })});
      entries.push_back({"device to host, to HOST memory", true, on_stream([&] {
                           call(bph_copy, stream_.get(), pinned->get(), uint64_t{0}, two.get(), uint64_t{0}, bytes,
                                uint32_t{0});
                         })});
    }
    measure_together(bytes, entries);
  }

  void allocations(uint64_t bytes) {
    const bph_buffer_desc cached = desc_of(bytes), raw = desc_of(bytes, BPH_BUFFER_RAW);
    std::vector<Entry> entries;
    entries.push_back({"buffer created and released, cached", false,
                       on_stream([&] { bph_buffer_release(create(device_, cached)); })});
    entries.push_back({"buffer created and released, the plugin's own", false,
                       on_stream([&] { bph_buffer_release(create(device_, raw)); })});
    measure_together(bytes, entries);
  }

  Device device_;
  Stream stream_;
  uint64_t kinds_;
  SamplingPlan plan_;
  std::vector<uint64_t> sizes_;
  std::vector<MemoryRow> rows_;
};

void print_text(Session& session, const Target& target, const std::vector<MemoryRow>& rows) {
  session.print("{} ({}), plugin {}\n{}\n\n", target.name(), printable(target.info().name), printable(target.version()),
                machine_text());
  Table table({"WHAT", right("BYTES"), right("LATENCY"), right("p10..p90"), right("THROUGHPUT"), right("p10..p90"),
               right("RATE"), ""});
  for (const MemoryRow& row : rows) {
    if (!row.reason.empty()) {
      table.add({row.what, right(bytes_text(row.bytes)), "", "", "", "", "", Cell(row.reason, Style::faint)});
      continue;
    }
    table.add({row.what, right(bytes_text(row.bytes)), right(time_text(row.latency.median)),
               right(spread_text(row.latency)), right(time_text(row.throughput.median)),
               right(spread_text(row.throughput)), right(row.moves ? fmt::format("{:.2f} GB/s", row.rate()) : "")});
  }
  session.out += table.text(session.colour);
}

void print_json(Session& session, const Target& target, const std::vector<MemoryRow>& rows) {
  Json document = Session::document("backplane.bench_memory");
  document["device"] = target.name();
  document["description"] = target.info().name;
  document["plugin_version"] = target.version();
  document["machine"] = machine_text();
  document["started"] = now_text();
  document["rows"] = Json::array();
  for (const MemoryRow& row : rows) {
    Json json = Json::object(
        {{"what", row.what}, {"bytes", row.bytes}, {"measured", row.reason.empty()}, {"reason", row.reason}});
    if (row.reason.empty()) {
      json["latency_ns"] = figure_json(row.latency);
      json["throughput_ns"] = figure_json(row.throughput);
      if (row.moves) json["gigabytes_per_second"] = row.rate();
    }
    document["rows"].push_back(std::move(json));
  }
  session.print(document);
}

}  // namespace

int bench_memory(Session& session, const BenchMemoryOptions& options) {
  const Target target(session, {options.plugin, options.device, 0});
  const std::vector<MemoryRow> rows = MemoryBench(target, options).run();
  if (session.json) {
    print_json(session, target, rows);
  } else {
    print_text(session, target, rows);
  }
  return kExitOk;
}

}  // namespace tool
