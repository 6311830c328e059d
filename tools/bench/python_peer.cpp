// SPDX-License-Identifier: Apache-2.0
// Runs peers in separate processes with a line protocol, which tools/bench/peers/peer.py describes.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/peers.hpp"
#include "host.hpp"

extern char** environ;

namespace tool {
namespace {

namespace fs = std::filesystem;
using Message = nlohmann::json;

constexpr std::chrono::seconds kStartLimit(60);  // long enough for Python to import large packages
constexpr std::chrono::seconds kReplyLimit(600);

[[noreturn]] void fail_peer(const std::string& peer, const std::string& what) {
  throw Failure(kExitFinding, "UNAVAILABLE",
                fmt::format("the peer {}: {}; run without it (--no-peers), or mend its Python package", peer, what));
}

// A child process that exchanges lines on its standard streams. The destructor terminates the
// process.
class LineProcess {
 public:
  LineProcess(const std::string& script, const std::string& argument) : name_(argument) {
    std::array<int, 2> to{}, from{};
    if (pipe2(to.data(), O_CLOEXEC) != 0) fail_peer(name_, "no pipe can be made");
    if (pipe2(from.data(), O_CLOEXEC) != 0) {
      close(to[0]);
      close(to[1]);
      fail_peer(name_, "no pipe can be made");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::string program = "python3", path = script, which = argument;
    std::array<char*, 4> arguments = {program.data(), path.data(), which.data(), nullptr};
    const int code = posix_spawnp(&child_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = from[0];
    if (code != 0) child_ = 0;
  }
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;
  ~LineProcess() {
    close(in_);
    close(out_);
    if (child_ == 0) return;
    kill(child_, SIGTERM);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
  }

  bool started() const { return child_ != 0; }

  void write(const std::string& line) {
    if (!given_up_.empty()) fail_peer(name_, given_up_);
    // A write to a peer that has exited must return an error instead of raising SIGPIPE.
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const std::string text = line + "\n";
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t count = ::write(in_, text.data() + done, text.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    const timespec at_once{};
    if (done < text.size()) sigtimedwait(&pipe_signal, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (done < text.size()) fail_peer(name_, "its process ended");
  }

  Message read(std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (buffer_.find('\n') == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd ready{out_, POLLIN, 0};
      const int polled = poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
      if (polled < 0 && errno == EINTR) continue;
      if (polled == 0) give_up(fmt::format("no reply within {} s", limit.count()));
      std::array<char, 4096> bytes;
      const ssize_t count = ::read(out_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_peer(name_, "its process ended");
      buffer_.append(bytes.data(), static_cast<size_t>(count));
    }
    const std::string line = buffer_.substr(0, buffer_.find('\n'));
    buffer_.erase(0, line.size() + 1);
    try {
      return Message::parse(line);
    } catch (const Message::exception& error) {
      give_up(error.what());
    }
  }

  // Calls `body`, which interprets a reply. After a malformed reply, the peer receives no further
  // request.
  template <class Body>
  auto understand(const Body& body) {
    try {
      return body();
    } catch (const Message::exception& error) {
      give_up(error.what());
    }
  }

  Message exchange(const Message& request) {
    write(request.dump());
    return read(kReplyLimit);
  }

 private:
  // Terminates the process after a late or malformed reply. Otherwise, the next reply could belong
  // to an earlier request.
  [[noreturn]] void give_up(std::string why) {
    given_up_ = std::move(why);
    kill(child_, SIGTERM);
    fail_peer(name_, given_up_);
  }

  std::string name_, buffer_, given_up_;
  pid_t child_ = 0;
  int in_ = -1, out_ = -1;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = fs::temp_directory_path() / "backplane-bench-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Failure(kExitFinding, "UNAVAILABLE",
                    fmt::format("no directory can be created in {}; set TMPDIR to a directory that you can write",
                                fs::temp_directory_path().string()));
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// A peer process keeps results only until it prepares the next case, so only one contestant may
// exist at a time.
class PythonContestant final : public PeerContestant {
 public:
  // `outputs` must have the sizes that the case states.
  PythonContestant(LineProcess& process, std::vector<HostBlock> outputs, const Message& prepared)
      : process_(process), outputs_(std::move(outputs)) {
    const auto files = process_.understand([&] {
      first_ns_ = prepared.at("ns").get<double>();
      return prepared.at("outputs").get<std::vector<std::string>>();
    });
    while (outputs_.size() > files.size()) outputs_.pop_back();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      std::ifstream file(files[i], std::ios::binary);
      file.read(reinterpret_cast<char*>(outputs_[i].data()), static_cast<std::streamsize>(outputs_[i].bytes()));
      if (!file || file.peek() != std::ifstream::traits_type::eof()) {
        throw Failure(kExitFinding, "INTERNAL",
                      fmt::format("a peer's output {} does not have the {} bytes of the case", i, outputs_[i].bytes()));
      }
    }
  }
  ~PythonContestant() override {
    try {
      process_.exchange({{"do", "release"}});
    } catch (const Failure&) {
      return;  // the process has exited, and the next request reports this
    }
  }
  const std::vector<HostBlock>& outputs() const override { return outputs_; }
  std::optional<double> first_ns() const override { return first_ns_; }
  double time(uint32_t calls, bool wait_each) override {
    const Message reply = process_.exchange({{"do", "time"}, {"calls", calls}, {"wait_each", wait_each}});
    return process_.understand([&] {
      if (reply.contains("error")) fail_peer("in Python", reply["error"].get<std::string>());
      return reply.at("ns").get<double>();
    });
  }

 private:
  LineProcess& process_;
  std::vector<HostBlock> outputs_;
  double first_ns_ = 0;
};

class PythonPeer final : public Peer {
 public:
  PythonPeer(std::unique_ptr<LineProcess> process, const Message& hello)
      : process_(std::move(process)),
        name_(hello.at("name").get<std::string>()),
        version_(hello.at("version").get<std::string>()) {}
  const std::string& name() const override { return name_; }
  const std::string& version() const override { return version_; }
  void set_threads(int threads) override { threads_ = threads; }

  std::unique_ptr<PeerContestant> prepare(const OpCase& op, const CaseData& data, std::string* why) override {
    // The folder is needed only in this function. The peer reads its inputs before it replies, and
    // the constructor of the contestant reads the outputs.
    const TemporaryFolder folder;
    Message request = {{"do", "prepare"}, {"op", op.info.name}, {"threads", threads_}, {"folder", folder.path()}};
    for (const auto& [role, operands] : {std::pair("inputs", &op.inputs), std::pair("outputs", &op.outputs)}) {
      request[role] = Message::array();
      for (const Operand& operand : *operands) {
        if (!operand.dense()) {
          *why = "the peer is measured with dense operands only";
          return nullptr;
        }
        request[role].push_back({bph_dtype_name(operand.dtype), operand.shape});
      }
    }
    for (size_t i = 0; i < data.inputs.size(); ++i) {
      const std::string path = folder.file(fmt::format("input{}", i));
      if (!write_block(path, data.inputs[i], why)) return nullptr;
      request["inputs"][i].push_back(path);
    }
    request["attributes"] = Message::parse(op.attributes.json().text());
    if (request["attributes"].is_null()) request["attributes"] = Message::object();
    const Message reply = process_->exchange(request);
    if (reply.contains("error")) {
      *why = process_->understand([&] { return reply["error"].get<std::string>(); });
      return nullptr;
    }
    return std::make_unique<PythonContestant>(*process_, make_outputs(op), reply);
  }

  bool runs_models() const override { return true; }
  std::unique_ptr<PeerContestant> prepare_model(const ModelGraph& graph, const std::vector<HostBlock>& data,
                                                std::string* why) override {
    const TemporaryFolder folder;
    Message request = {{"do", "prepare_model"},
                       {"threads", threads_},
                       {"folder", folder.path()},
                       {"values", Message::array()},
                       {"nodes", Message::array()}};
    std::vector<HostBlock> outputs;
    for (size_t i = 0; i < graph.values().size(); ++i) {
      const Value& value = graph.values()[i];
      Message described = {
          {"role", role_name(value.role)}, {"dtype", bph_dtype_name(value.dtype)}, {"shape", value.shape}};
      if (value.role == Role::output) outputs.emplace_back(bytes_of(value));
      if (data[i].bytes() > 0) {
        described["file"] = folder.file(fmt::format("value{}", i));
        if (!write_block(described["file"].get<std::string>(), data[i], why)) return nullptr;
      }
      request["values"].push_back(described);
    }
    for (const Node& node : graph.nodes()) {
      Message described = {{"op", node.op.name}, {"inputs", Message::array()}, {"outputs", Message::array()}};
      described["attributes"] = Message::parse(node.attributes.json().text());
      for (const View& view : node.inputs) described["inputs"].push_back(view_message(view));
      for (const View& view : node.outputs) described["outputs"].push_back(view_message(view));
      request["nodes"].push_back(described);
    }
    const Message reply = process_->exchange(request);
    if (reply.contains("error")) {
      *why = process_->understand([&] { return reply["error"].get<std::string>(); });
      return nullptr;
    }
    return std::make_unique<PythonContestant>(*process_, std::move(outputs), reply);
  }

 private:
  static bool write_block(const std::string& path, const HostBlock& block, std::string* why) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(block.bytes()));
    if (file.flush()) return true;
    *why = "its inputs cannot be written to a temporary file";
    return false;
  }
  static Message view_message(const View& view) {
    if (view.number) return {{"number", *view.number}};
    Message message = {{"value", view.value}};
    if (!view.reshape.empty()) message["reshape"] = view.reshape;
    if (view.slice) message["slice"] = {view.slice->axis, view.slice->begin, view.slice->end};
    if (!view.permute.empty()) message["permute"] = view.permute;
    if (!view.broadcast.empty()) message["broadcast"] = view.broadcast;
    return message;
  }

  std::unique_ptr<LineProcess> process_;
  std::string name_, version_;
  int threads_ = 1;
};

}  // namespace

void add_python_peers(const std::string& folder, PeerKind kind_of_peers, Peers& peers) {
  const std::string script = fs::path(folder) / "peer.py";
  std::error_code failure;
  if (!fs::is_regular_file(script, failure)) return;
  std::vector<const char*> kinds = {"torch", "onnxruntime"};
  if (kind_of_peers != PeerKind::processor) kinds = {"torch_gpu"};
  if (kind_of_peers == PeerKind::gpu_and_graphs) kinds.push_back("torch_gpu_graph");
  for (const char* kind : kinds) {
    try {
      auto process = std::make_unique<LineProcess>(script, kind);
      if (!process->started()) return;  // Python is missing
      const Message hello = process->read(kStartLimit);
      if (hello.contains("error")) {  // the package is not installed, which is not an error
        if (kind_of_peers != PeerKind::processor) {
          peers.faults.push_back(fmt::format("no peer uses the GPU: {}", hello["error"].get<std::string>()));
        }
        continue;
      }
      peers.usable.push_back(std::make_unique<PythonPeer>(std::move(process), hello));
    } catch (const Failure& fault) {
      peers.faults.push_back(fault.what());
    } catch (const Message::exception& fault) {
      peers.faults.push_back(fmt::format("the peer {}: {}; mend its Python package", kind, fault.what()));
    }
  }
}

}  // namespace tool
