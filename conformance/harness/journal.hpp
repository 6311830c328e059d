// SPDX-License-Identifier: Apache-2.0
// Results on disk as they come, so that a run that was killed goes on where it was.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "run.hpp"

namespace backplane::conformance {

class Journal {
 public:
  // `key` says what the results are of: plugin, suite, seed, device. With `resume`, results of the same key are kept;
  // throws std::runtime_error if the file is of another key, with what differs, or cannot be written.
  Journal(std::string path, const std::string& key, bool resume);

  // Results that an earlier run left, by case id.
  const std::map<std::string, Result, std::less<>>& kept() const { return kept_; }
  void add(const std::string& id, const Result& result);
  // The run is complete: the file goes.
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
