// SPDX-License-Identifier: Apache-2.0
// Peers that run the same cases: libraries in this process, and processes with a line protocol.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/data.hpp"
#include "bench/model_graph.hpp"
#include "bench/sampling.hpp"

namespace tool {

// A case that a peer has prepared, with the outputs that it computes.
class PeerContestant : public Contestant {
 public:
  // The peer's outputs in the order of the case's outputs; empty if the peer does not return them.
  virtual const std::vector<HostBlock>& outputs() const = 0;
  // Time of preparation and first call, if the peer measured them itself.
  virtual std::optional<double> first_ns() const { return {}; }
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual const std::string& name() const = 0;
  virtual const std::string& version() const = 0;
  virtual void set_threads(int threads) = 0;
  // Returns null and sets `why` if the peer does not support the case. `op` and `data` must outlive
  // the result. Only one contestant may exist at a time. Throws Failure if the peer has ended.
  virtual std::unique_ptr<PeerContestant> prepare(const OpCase& op, const CaseData& data, std::string* why) = 0;
  // Whether the peer implements prepare_model.
  virtual bool runs_models() const { return false; }
  // Like prepare, for a model and the data of graph.make_data().
  virtual std::unique_ptr<PeerContestant> prepare_model(const ModelGraph&, const std::vector<HostBlock>&,
                                                        std::string* why) {
    *why = "the peer runs single operators only";
    return nullptr;
  }
};

// The usable peers of a folder: libraries by name, then processes. `faults` says why the others
// cannot be used.
struct Peers {
  std::vector<std::unique_ptr<Peer>> usable;
  std::vector<std::string> faults;
};
Peers find_peers(const std::string& folder);
// Adds the peers of peer.py whose packages are installed.
void add_python_peers(const std::string& folder, Peers& peers);
// The folder of the command's own peers.
std::string peer_folder();

}  // namespace tool
