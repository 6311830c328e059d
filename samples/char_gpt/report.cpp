// SPDX-License-Identifier: Apache-2.0
// Writes the numbers of reports as JSON, and writes files.
#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>

namespace char_gpt {

namespace {

using Json = nlohmann::ordered_json;

// Converts JSON to text. Replaces invalid UTF-8, which the model may generate.
std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json to_object(const Facts& facts) {
  Json object = Json::object();
  for (const auto& [name, value] : facts) object[name] = value;
  return object;
}

Json to_object(const Curve& curve) {
  Json bits = Json::array();
  for (const double loss : curve.losses) bits.push_back(loss * std::numbers::log2e);
  return {{"name", curve.name}, {"seconds", curve.seconds}, {"bits_per_character", bits}};
}

}  // namespace

bool ComparisonReport::agrees() const {
  return std::ranges::all_of(differences, [](const Difference& difference) { return difference.share <= 1; });
}

std::string to_json(const TrainingReport& report) {
  Json known = Json::array();
  for (const auto& [step, bits] : report.known) known.push_back({{"step", step}, {"bits_per_character", bits}});
  return dump({{"report", "char_gpt training"},
               {"facts", to_object(report.facts)},
               {"held_out", known},
               {"gzip_bits_per_character", report.gzip},
               {"gzip_behind_training_bits_per_character", report.gzip_behind_training},
               {"prompt", report.prompt},
               {"written", report.written},
               {"training", to_object(report.curve)}});
}

std::string to_json(const ComparisonReport& report) {
  Json curves = Json::array(), differences = Json::array();
  for (const Curve& curve : report.curves) curves.push_back(to_object(curve));
  for (size_t i = 0; i < report.differences.size(); ++i) {
    const Difference& worst = report.differences[i];
    differences.push_back({{"name", report.curves[i + 1].name},
                           {"beside", report.curves.front().name},
                           {"worst_step", worst.step + 1},
                           {"relative", worst.relative},
                           {"bound", loss_bound(worst.step)},
                           {"agrees", worst.share <= 1}});
  }
  return dump({{"report", "char_gpt comparison"},
               {"facts", to_object(report.facts)},
               {"agrees", report.agrees()},
               {"differences", differences},
               {"curves", curves}});
}

void check_writable(const std::filesystem::path& file) {
  if (file.empty()) return;
  std::error_code ignored;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (std::filesystem::is_directory(file, ignored))
    throw std::runtime_error(fmt::format("report: {} is a directory; name a file", file.string()));
  const auto& checked = std::filesystem::exists(file, ignored) ? file : folder;
  if (access(checked.c_str(), W_OK) != 0)
    throw std::runtime_error(
        fmt::format("report: cannot write {}: {}; choose another place", file.string(), std::strerror(errno)));
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  if (file.empty()) return;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(fmt::format("report: writing {} failed: {}", file.string(), std::strerror(errno)));
}

}  // namespace char_gpt
