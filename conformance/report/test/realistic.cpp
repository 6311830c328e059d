// SPDX-License-Identifier: Apache-2.0
#include "realistic.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <random>

#include "oracle/table.hpp"
#include "report/names.hpp"

namespace backplane::conformance::test {

namespace {

constexpr std::string_view kShapes[] = {"scalar", "tail", "odd", "large"};
constexpr std::string_view kLayouts[] = {"dense", "strided", "sliced"};
constexpr std::string_view kCoreDtypes[] = {"f32", "i32", "u32", "u8", "bool"};

std::string_view extension_of(std::string_view dtype) {
  return std::find(std::begin(kCoreDtypes), std::end(kCoreDtypes), dtype) == std::end(kCoreDtypes) ? dtype : "";
}

void add_numeric(Catalogue& catalogue, size_t values) {
  for (const oracle::Operator& op : oracle::kOperators) {
    for (uint32_t dtype = 0; dtype < 32; ++dtype) {
      const auto& names = dtype_names();
      const auto name = std::find(names.begin(), names.end(), dtype_name(dtype));
      if ((op.dtypes & BP_DTYPE_BIT(dtype)) == 0 || name == names.end()) continue;
      for (const std::string_view shape : kShapes) {
        for (const std::string_view layout : kLayouts) {
          for (size_t value = 0; value < values; ++value) {
            Case each;
            each.id = fmt::format("numeric.{}.{}.{}.{}.values{}", op.name, *name, shape, layout, value);
            each.profile = op.profile;
            each.extension = extension_of(*name);
            each.op = op.id;
            each.dtype = dtype;
            each.requirements = {"BP-REF-001"};
            catalogue.push_back(std::move(each));
          }
        }
      }
    }
  }
}

void add_behaviour(Catalogue& catalogue) {
  for (const std::string_view group :
       {"abi.library", "abi.sizes", "runtime.event", "runtime.stream", "negative.plan_create"}) {
    for (int number = 0; number < 40; ++number) {
      Case each;
      each.id = fmt::format("{}.rule{}", group, number);
      each.requirements = {"BP-PLUGIN-001", "BP-ABI-004"};
      catalogue.push_back(std::move(each));
    }
  }
}

bool exact(std::string_view op) {
  for (const std::string_view each : {"fill", "copy", "gather", "neg", "abs", "and", "or", "xor", "select", "sort"}) {
    if (op == each) return true;
  }
  return false;
}

Result passed(const Case& which, std::mt19937_64& random) {
  Result result{Outcome::pass, "", 50'000 + random() % 900'000};
  if (which.op == 0) return result;
  const double draw = static_cast<double>(random() % 1000) / 1000;
  result.error_ratio = exact(op_name(which.op)) ? 0 : std::exp2(-11 * draw * draw) * 0.98;
  return result;
}

// Messages of a careless or hostile plugin.
constexpr std::string_view kSaid[] = {
    "element 1 023 of 1 025 is 0x7fc00000 (nan); expected 0.333333343, error 1.84 of the bound; the input was 3",
    "plan_execute returned INTERNAL: </script><script>alert(1)</script> & \"quotes\" 'and' <b>tags</b>",
    "it ended by signal 11 (SIGSEGV) at 0x10; its last output: \x1b[31mred\x1b[0m \x01\x02 \xff\xfe not UTF-8 "
    "\xef\xbf\xbe",
    "12 bytes after the output were written: a5a5a5a5 is 3f800000",
};

Result failed(const Case& which, std::mt19937_64& random) {
  constexpr Outcome outcomes[] = {Outcome::fail, Outcome::fail, Outcome::fail,    Outcome::crash,
                                  Outcome::hang, Outcome::leak, Outcome::suspect, Outcome::not_run};
  const uint64_t draw = random();
  Result result{outcomes[draw % std::size(outcomes)], std::string(kSaid[draw / 64 % std::size(kSaid)]), 1'000'000};
  if (result.outcome == Outcome::fail && which.op != 0) result.error_ratio = 1.5 + static_cast<double>(draw % 64);
  return result;
}

Result result_of(const Case& which, Kind kind, std::mt19937_64& random) {
  const std::string op = which.op == 0 ? "" : op_name(which.op);
  if (kind == Kind::silent) return {Outcome::not_run, "the plugin did not load"};
  if (which.extension == "f64" || (which.extension == "bf16" && op == "matmul"))
    return {Outcome::not_claimed, fmt::format("plan_create returned UNSUPPORTED: {} has no {}", op, which.extension)};
  if (kind == Kind::failing && op == "sort")
    return {Outcome::not_claimed, "plan_create returned UNSUPPORTED: sort <is> not offered"};
  const bool fails = kind == Kind::broken
                         ? which.id.find("values0") == std::string::npos
                         : kind == Kind::failing &&
                               (op == "tanh" || op == "erf" || which.id.starts_with("runtime.event")) &&
                               random() % 4 == 0;
  return fails ? failed(which, random) : passed(which, random);
}

}  // namespace

Run realistic_run(Kind kind, const std::string& library, uint32_t profile) {
  Run made;
  add_behaviour(made.catalogue);
  add_numeric(made.catalogue, kind == Kind::broken ? 6 : 2);
  made.run = {{library, 0}, {profile, {}}, 7, 2, "2026-01-31T12:00:00Z", 41.7, false};
  Case later = made.catalogue.front();
  later.id += ".later";
  later.since = BP_ABI_VERSION + 1;
  made.catalogue.push_back(later);
  made.selection = select(made.catalogue, made.run.selection);
  made.facts.plugin = kind == Kind::failing ? "<img src=x onerror=alert(1)>" : "acme";
  made.facts.version = "1.4.0";
  made.facts.device = kind == Kind::failing ? "Device \"9\" & sons \xff" : "Acme 9000";
  made.facts.driver = "driver 7.1";
  made.facts.abi_version = made.facts.abi_version_min = BP_ABI_VERSION;
  made.facts.device_count = 1;
  made.facts.device_type = BP_DEVICE_NPU;
  made.facts.alignment = 64;
  made.facts.max_buffer_bytes = uint64_t{12} << 30;
  made.facts.memory_kinds = 3;
  made.facts.capabilities = BP_CAP_TIMING | BP_CAP_DETERMINISTIC | uint64_t{1} << 40;
  if (kind == Kind::silent) {
    made.facts = Facts();
    made.facts.error = "the plugin did not load: libacme_driver.so.1 does not exist";
  }
  std::mt19937_64 random(7);
  for (const size_t index : made.selection) made.results.push_back(result_of(made.catalogue[index], kind, random));
  made.verdict = judge(made.catalogue, made.selection, made.results, made.run.selection, made.facts);
  made.certificate = certificate_of(made.catalogue, made.selection, made.results, made.verdict, made.facts, made.run);
  return made;
}

}  // namespace backplane::conformance::test
