// SPDX-License-Identifier: Apache-2.0
// Finds the peers of a folder. Loads the peers that are libraries, and runs these peers in this
// process.
#include "bench/peers.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "bench/peers/peer.h"
#include "measure.hpp"
#include "session.hpp"

namespace tool {
namespace {

namespace fs = std::filesystem;

// Describes a case with a descriptor of the plugin ABI. The object refers to `op`, which must outlive it.
struct Description {
  explicit Description(const OpCase& op) : views(op) {
    for (const std::vector<bph_tensor>* side : {&views.inputs, &views.outputs}) {
      for (const bph_tensor& view : *side) {
        bp_tensor_desc tensor = {};
        tensor.dtype = view.dtype;
        tensor.rank = view.rank;
        tensor.alignment_log2 = 6;
        std::copy(std::begin(view.shape), std::end(view.shape), tensor.shape);
        std::copy(std::begin(view.strides), std::end(view.strides), tensor.strides);
        tensors.push_back(tensor);
      }
    }
    desc.struct_size = sizeof(desc);
    desc.op = op.info.op;
    desc.attributes = views.call.attributes;
    desc.inputs = tensors.data();
    desc.outputs = tensors.data() + views.inputs.size();
    desc.input_count = views.call.input_count;
    desc.output_count = views.call.output_count;
    desc.scalar_count = views.call.scalar_count;
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  CallViews views;
  std::vector<bp_tensor_desc> tensors;
  bp_op_desc desc = {};
};

class LibraryContestant final : public PeerContestant {
 public:
  LibraryContestant(const bench_peer& peer, const OpCase& op, const CaseData& data, std::string* why)
      : peer_(peer), description_(op), outputs_(make_outputs(op)) {
    std::vector<void*> in, out;
    for (const HostBlock& block : data.inputs) in.push_back(block.data());
    for (const HostBlock& block : outputs_) out.push_back(block.data());
    char text[512] = "it gives no reason";
    made_ = peer_.prepare(&description_.desc, in.data(), out.data(), text, sizeof(text));
    if (made_ == nullptr) *why = text;
  }
  ~LibraryContestant() override {
    if (made_ != nullptr) peer_.release(made_);
  }
  bool made() const { return made_ != nullptr; }
  const std::vector<HostBlock>& outputs() const override { return outputs_; }
  double time(uint32_t calls, bool) override {
    int failed = 0;
    const double ns = timed_ns([&] {
      for (uint32_t i = 0; i < calls; ++i) failed |= peer_.run(made_);
    });
    if (failed != 0) throw Failure(kExitFinding, "INTERNAL", fmt::format("the peer {} failed in a call", peer_.name));
    return ns;
  }

 private:
  const bench_peer& peer_;
  Description description_;
  std::vector<HostBlock> outputs_;
  void* made_ = nullptr;
};

class LibraryPeer final : public Peer {
 public:
  explicit LibraryPeer(const bench_peer& peer) : peer_(peer), name_(peer.name), version_(peer.version) {}
  const std::string& name() const override { return name_; }
  const std::string& version() const override { return version_; }
  void set_threads(int threads) override { peer_.set_threads(threads); }
  std::unique_ptr<PeerContestant> prepare(const OpCase& op, const CaseData& data, std::string* why) override {
    auto made = std::make_unique<LibraryContestant>(peer_, op, data, why);
    if (!made->made()) return nullptr;
    return made;
  }

 private:
  const bench_peer& peer_;
  std::string name_, version_;
};

}  // namespace

Peers find_peers(const std::string& folder, PeerKind kind) {
  Peers peers;
  if (kind != PeerKind::processor) {
    add_python_peers(folder, kind, peers);
    return peers;
  }
  std::error_code failure;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libbackplane_peer_") && name.ends_with(".so")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    void* library = dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library == nullptr ? nullptr : dlsym(library, BENCH_PEER_SYMBOL);
    if (symbol == nullptr) {
      const char* why = dlerror();
      peers.faults.push_back(
          fmt::format("{}: {}; reinstall it, or leave it away", file.string(), why != nullptr ? why : "no peer"));
      continue;
    }
    // The library stays mapped, because threads of its runtime may still run.
    peers.usable.push_back(std::make_unique<LibraryPeer>(*reinterpret_cast<const bench_peer* (*)()>(symbol)()));
  }
  add_python_peers(folder, kind, peers);
  return peers;
}

std::string peer_folder() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  return (program.parent_path() / BACKPLANE_BENCH_FROM_BINDIR).lexically_normal().string();
}

}  // namespace tool
