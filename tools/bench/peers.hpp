// SPDX-License-Identifier: Apache-2.0
// Peers run the same cases as the device. A peer is a library in this process, or a process with a
// line protocol.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/data.hpp"
#include "bench/model_graph.hpp"
#include "bench/sampling.hpp"

namespace tool {

// A case that a peer has prepared, and the outputs that the peer computes.
class PeerContestant : public Contestant {
 public:
  // Returns the peer's outputs in the order of the case's outputs, or none if the peer does not
  // return outputs.
  virtual const std::vector<HostBlock>& outputs() const = 0;
  // Returns the time of preparation and first call in nanoseconds, if the peer itself measures this
  // time.
  virtual std::optional<double> first_ns() const { return {}; }
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual const std::string& name() const = 0;
  virtual const std::string& version() const = 0;
  virtual void set_threads(int threads) = 0;
  // Returns null and sets `why` if the peer does not support the case. `op` and `data` must outlive
  // the result. Only one contestant of the peer may exist at a time. Throws Failure if the peer
  // process has exited.
  virtual std::unique_ptr<PeerContestant> prepare(const OpCase& op, const CaseData& data, std::string* why) = 0;
  // Returns whether the peer implements prepare_model.
  virtual bool runs_models() const { return false; }
  // Prepares a model in the same way as `prepare` prepares a case. `data` comes from
  // graph.make_data().
  virtual std::unique_ptr<PeerContestant> prepare_model(const ModelGraph&, const std::vector<HostBlock>&,
                                                        std::string* why) {
    *why = "the peer runs single operators only";
    return nullptr;
  }
};

// The usable peers of a folder. Libraries come first, sorted by name, and processes follow.
// `faults` contains the reasons why other peers are unusable.
struct Peers {
  std::vector<std::unique_ptr<Peer>> usable;
  std::vector<std::string> faults;
};
// Peers use the same hardware as the device: a GPU, or else the host's processor. Peers that are libraries use only the
// processor. `gpu_and_graphs` adds peers that replay a case as a graph.
enum class PeerKind { processor, gpu, gpu_and_graphs };
Peers find_peers(const std::string& folder, PeerKind kind);
// Adds those peers of peer.py whose packages are installed.
void add_python_peers(const std::string& folder, PeerKind kind, Peers& peers);
// Returns the folder of the peers that belong to the command.
std::string peer_folder();

}  // namespace tool
