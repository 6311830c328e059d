// SPDX-License-Identifier: Apache-2.0
// The peers that a case is measured beside: libraries in this process, and processes that answer line by line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/data.hpp"
#include "bench/model_graph.hpp"
#include "bench/sampling.hpp"

namespace tool {

// A case made ready by a peer, with the outputs that it writes.
class PeerContestant : public Contestant {
 public:
  // What the peer made, in the order of the case's outputs; empty where it does not give it.
  virtual const std::vector<HostBlock>& outputs() const = 0;
  // What getting ready and the first call took, where the peer did them elsewhere and says so.
  virtual std::optional<double> first_ns() const { return {}; }
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual const std::string& name() const = 0;
  virtual const std::string& version() const = 0;
  virtual void set_threads(int threads) = 0;
  // Null with why where the peer has nothing of the kind. `op` and `data` outlive what comes back. One at a time. Throws Failure
  // where the peer itself has ended.
  virtual std::unique_ptr<PeerContestant> prepare(const OpCase& op, const CaseData& data, std::string* why) = 0;
  // Whether prepare_model is worth asking.
  virtual bool runs_models() const { return false; }
  // The same for a whole model, whose data is that of graph.make_data().
  virtual std::unique_ptr<PeerContestant> prepare_model(const ModelGraph&, const std::vector<HostBlock>&,
                                                        std::string* why) {
    *why = "the peer runs single operators only";
    return nullptr;
  }
};

// Every peer of a folder, libraries by name and then processes, and what is wrong with those that cannot be used.
struct Peers {
  std::vector<std::unique_ptr<Peer>> usable;
  std::vector<std::string> faults;
};
Peers find_peers(const std::string& folder);
// Adds those of peer.py that are installed here.
void add_python_peers(const std::string& folder, Peers& peers);
// The folder where the command's own are installed.
std::string peer_folder();

}  // namespace tool
