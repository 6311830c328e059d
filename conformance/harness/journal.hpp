// SPDX-License-Identifier: Apache-2.0
// Writes each result to disk when it arrives, so that a killed run can be resumed.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "run.hpp"

namespace backplane::conformance {

class Journal {
 public:
  // `key` identifies the plugin, suite, seed, device and limits of the run. If `resume` is true, keeps the
  // results of an earlier run with an equal key. Throws std::runtime_error if the file cannot be
  // written, or if the earlier run had a different key.
  Journal(std::string path, const std::string& key, bool resume);

  // Results of an earlier run, by case id.
  const std::map<std::string, Result, std::less<>>& kept() const { return kept_; }
  void add(const std::string& id, const Result& result);
  // Removes the file after a complete run.
  void remove();

 private:
  void read(const std::string& key);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, Result, std::less<>> kept_;
};

}  // namespace backplane::conformance
