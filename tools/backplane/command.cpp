// SPDX-License-Identifier: Apache-2.0
// Parses the command line and runs the chosen subcommand. Each error becomes one message, or a JSON
// document with --json.
#include "command.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>

#include "host.hpp"
#include "options.hpp"
#include "subcommands.hpp"

namespace tool {
namespace {

constexpr const char* kExamples = R"(Examples:
  backplane list                         devices that can be used, and from where
  backplane info reference:0             what a device is and which operators it has
  backplane doctor                       why a plugin is not available, and what to do
  backplane run matmul --shape 64x32 --shape 32x16 --device reference:0
  backplane certify reference            measure a plugin and write its certificate
  backplane verify FILE.json reference   whether a certificate is what this plugin gives
  backplane new acme                     start a plugin of your own
  backplane bench ops --filter tiny      what operators cost, compared with other libraries
  backplane bench dispatch               what the SDK itself costs
  backplane list --json                  the same for programs; schemas: share/backplane/schemas
Exit status: 0 done, 1 a finding or a failed operation, 2 usage error.)";

constexpr const char* kRunExamples = R"(Examples:
  backplane run add --data 1,2,3 --data 10,20,30 --shape 3
  backplane run matmul --dtype bf16 --out-dtype f32 --shape 64x32 --shape 32x16 --repeat 100
  backplane run reduce_sum --shape 4x1000 --attr axes=2
  backplane run fill --scalar 3.5 --shape 2x3
  backplane run copy --shape 3x4 --strides 1,3)";

constexpr const char* kCertifyExamples = R"(Examples:
  backplane certify ./libbackplane_acme.so
  backplane certify acme --profile train --seed 7
  backplane certify acme --filter numeric.add --filter 'runtime.event.*'
  backplane certify --list --profile core
  backplane certify --bound softmax bf16
Exit status: 0 certified at the profile, or every chosen case passed; 1 otherwise; 2 usage error.)";

constexpr const char* kVerifyExamples = R"(Examples:
  backplane verify certificates/libbackplane_acme.json ./libbackplane_acme.so
  backplane verify acme.json acme --sample 2000
Exit status: 0 verified, 1 refused, with the part that is wrong, 2 usage error.)";

void add_run(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = app.add_subcommand("run", "run one operator on random or given data");
  RunOptions& run_options = options.run;
  subcommand->add_option("OP", run_options.op, "operator, as in ops.def")->required();
  subcommand->add_option("--device,-d", run_options.device, "plugin:index; default: as the library chooses");
  subcommand->add_option("--dtype,-t", run_options.dtype,
                         "T of the operator's dtype rule; default f32 where it is legal");
  subcommand->add_option("--out-dtype", run_options.out_dtype, "of the output, where the rule leaves a choice");
  add_each(subcommand, "--shape,-s", run_options.shapes, "of the next input, as 64x32 or scalar; default 4x4");
  add_each(subcommand, "--out-shape", run_options.out_shapes, "of the next output, where the inputs do not say");
  add_each(subcommand, "--strides", run_options.strides, "of the next operand in elements, inputs first, as 32,1");
  add_each(subcommand, "--data", run_options.data, "values of the next input, as 1,2,3; default random");
  add_each(subcommand, "--scalar", run_options.scalars, "next scalar; default 1, 2, ..");
  add_each(subcommand, "--attr,-a", run_options.attributes, "NAME=VALUE, or NAME=VALUE,VALUE for an array");
  subcommand->add_option("--seed", run_options.seed, "of the random data")->capture_default_str();
  subcommand->add_option("--repeat,-n", run_options.repeat, "timed calls after the first")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
  subcommand->add_flag("--all", run_options.all, "whole tensors, however large");
  subcommand->footer(kRunExamples);
  subcommand->callback([&] { chosen = [&] { return run(options.session, options.run); }; });
}

void add_certify(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand =
      app.add_subcommand("certify", "run the conformance suite on a plugin and write its certificate");
  CertifyOptions& certify_options = options.certify;
  subcommand->add_option("PLUGIN", certify_options.plugin, "path of a plugin's library, or a plugin's name");
  CLI::Option* profile =
      subcommand->add_option("--profile,-p", certify_options.profile, "core, infer or train")->capture_default_str();
  subcommand->add_option("--device,-d", certify_options.device, "index of the plugin's device")->capture_default_str();
  add_each(subcommand, "--filter,-f", certify_options.filters,
           "a case's id, the beginning of one up to a dot, or a pattern with *; may be given again");
  subcommand->add_option("--seed", certify_options.seed, "of the data; default: random, and printed");
  subcommand->add_option("--jobs,-j", certify_options.jobs, "processes at once; default: one a processor")
      ->check(CLI::Range(1u, 1024u));
  subcommand->add_option("--timeout", certify_options.timeout_s, "seconds that a case may take")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86400.0));
  subcommand->add_option("--memory-limit", certify_options.memory_mib, "MiB that one process may hold")
      ->capture_default_str()
      ->check(CLI::Range(64u, 1u << 24));
  subcommand
      ->add_option("--equal-failures", certify_options.equal_failures,
                   "with the same words, after which the rest of a group is not run; 0: run all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  subcommand->add_option("--output,-o", certify_options.output, "directory of the certificates")->capture_default_str();
  subcommand->add_flag("--list", certify_options.list, "show the cases and end");
  subcommand
      ->add_option("--bound", certify_options.bound, "show the bound of an operator, or of one dtype of it, and end")
      ->type_name("OP [DTYPE]")
      ->expected(1, 2);
  subcommand->add_flag("--resume", certify_options.resume, "go on where a run of the same seed was stopped");
  subcommand->add_flag("--only-failed", certify_options.only_failed,
                       "what failed in the certificate, with its profile and seed; written next to it");
  subcommand->add_flag("--in-process", certify_options.in_process, "no child processes and no limits: for a debugger");
  subcommand->add_flag("--fail-fast", certify_options.fail_fast, "end at the first failure, with what ran until then");
  subcommand->add_flag("--quiet,-q", certify_options.quiet, "of the progress a line a minute");
  subcommand->add_flag("--junit", certify_options.junit, "JUnit XML on standard output");
  subcommand->add_flag("--html", certify_options.html, "the HTML page on standard output");
  subcommand->footer(kCertifyExamples);
  subcommand->callback([&, profile] {
    certify_options.profile_given = profile->count() != 0;
    chosen = [&] { return certify(options.session, certify_options); };
  });
}

void add_verify(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand =
      app.add_subcommand("verify", "check a certificate: its parts, its plugin, and a sample run again");
  VerifyOptions& verify_options = options.verify;
  subcommand->add_option("CERTIFICATE", verify_options.certificate, "JSON file that certify wrote")->required();
  subcommand->add_option("PLUGIN", verify_options.plugin, "path of the plugin's library, or the plugin's name")
      ->required();
  subcommand->add_option("--sample,-n", verify_options.sample, "cases that are run again")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{1} << 32));
  subcommand->add_option("--seed", verify_options.seed, "of the choice and its data; default: random, and printed");
  subcommand->add_option("--device,-d", verify_options.device,
                         "index of the plugin's device; default: the certificate's");
  subcommand->add_option("--jobs,-j", verify_options.jobs, "processes at once; default: one a processor")
      ->check(CLI::Range(1u, 1024u));
  subcommand->add_option("--timeout", verify_options.timeout_s, "seconds that a case may take")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86400.0));
  subcommand->add_flag("--quiet,-q", verify_options.quiet, "of the progress a line a minute");
  subcommand->footer(kVerifyExamples);
  subcommand->callback([&] { chosen = [&] { return verify(options.session, options.verify); }; });
}

void add_subcommands(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = app.add_subcommand("list", "plugins and devices found, and from where");
  subcommand->add_option("NAME", options.list.filter, "only this plugin or device");
  subcommand->add_flag("--all", options.list.all, "also what is shadowed or broken, with the reason");
  subcommand->callback([&] { chosen = [&] { return list(options.session, options.list); }; });

  subcommand = app.add_subcommand("info", "properties, memory and operators of a device, or the operator table");
  subcommand->add_option("DEVICE", options.info.device, "plugin:index, or plugin for index 0");
  subcommand->add_flag("--all", options.info.all, "every operator x dtype");
  subcommand->add_flag("--operators", options.info.operators, "the table of the SDK's operators, without a device");
  subcommand->callback([&] { chosen = [&] { return info(options.session, options.info); }; });

  subcommand =
      app.add_subcommand("doctor", "every candidate: the rule that it kept or broke, and which side must change");
  subcommand->callback([&] { chosen = [&] { return doctor(options.session, options.doctor); }; });

  add_run(app, options, chosen);
  add_certify(app, options, chosen);
  add_verify(app, options, chosen);

  subcommand = app.add_subcommand("new", "write a plugin project that builds against this SDK and certifies itself");
  subcommand->add_option("NAME", options.new_plugin.name, "of the plugin: 1 to 63 of a-z, 0-9 and _")->required();
  subcommand->add_option("--dir", options.new_plugin.directory,
                         "directory of the project, which must not exist; default NAME");
  subcommand->add_flag(
      "--queue", options.new_plugin.queue,
      "for a device that is not the host: queues and memory of its own; with a small card to start from");
  subcommand->callback([&] { chosen = [&] { return new_plugin(options.session, options.new_plugin); }; });

  add_bench(app, options, chosen);
}

void print_version(Session& session) {
  if (!session.json) {
    session.print("backplane {} (libbackplane {}, plugin ABI {})\n", BACKPLANE_VERSION, bph_version(),
                  version_text(bph_abi_version()));
    return;
  }
  Json document = Session::document("backplane.version");
  document["command_version"] = BACKPLANE_VERSION;
  document["library_version"] = bph_version();
  document["abi_version"] = version_text(bph_abi_version());
  session.print(document);
}

int parse_and_run(const std::vector<std::string>& arguments, Options& options) {
  CLI::App app("Backplane: accelerators as plugins that any framework loads at run time.", "backplane");
  app.set_help_flag("--help,-h", "show this and end");
  app.add_flag("--json", options.session.json, "one JSON document on standard output");
  CLI::Option* path =
      app.add_option("--plugin-path", options.plugin_path,
                     "directories or manifests, ':' between, searched first; default BACKPLANE_PLUGIN_PATH");
  app.add_flag("--version", options.version, "show the versions and end");
  app.footer(kExamples);
  app.fallthrough();
  std::function<int()> chosen;
  add_subcommands(app, options, chosen);
  for (CLI::App* subcommand : app.get_subcommands({})) subcommand->fallthrough();
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    // Shows the help of the subcommand that was named last.
    const CLI::App* command_app = &app;
    while (!command_app->get_subcommands().empty()) command_app = command_app->get_subcommands().back();
    options.session.out = command_app->help();
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    fail_usage("{}; see: backplane --help", error.what());
  }
  if (*path) options.session.plugin_path = options.plugin_path;
  if (options.version) {
    print_version(options.session);
    return kExitOk;
  }
  if (!chosen)
    fail_usage(
        "a subcommand is missing: list, info, doctor, run, certify, verify, new or bench; see: backplane --help");
  return chosen();
}

Answer failed(bool json, int exit_code, const char* status, const char* message) {
  Answer answer;
  answer.exit_code = exit_code;
  if (json) {
    Session output;
    Json document = Session::document("backplane.error");
    document["status"] = status;
    document["message"] = message;
    document["exit_code"] = exit_code;
    output.print(document);
    answer.out = std::move(output.out);
  } else {
    answer.err = fmt::format("backplane: {}\n", message);
  }
  return answer;
}

}  // namespace

Answer command(const std::vector<std::string>& arguments, bool colour) noexcept {
  // Searches for --json before parsing, so that a parse error is also reported as JSON.
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    try {
      Options options;
      options.session.colour = colour;
      options.session.json = json;
      const int exit_code = parse_and_run(arguments, options);
      return {exit_code, std::move(options.session.out), {}};
    } catch (const Failure& failure) {
      return failed(json, failure.exit_code(), failure.status().c_str(), failure.what());
    } catch (const backplane::Error& failure) {
      return failed(json, kExitFinding, bph_status_name(failure.status()), failure.what());
    } catch (const std::bad_alloc&) {
      return failed(json, kExitFinding, "OUT_OF_MEMORY", "host memory is exhausted; free some or request less");
    } catch (const std::exception& failure) {
      return failed(json, kExitFinding, "INTERNAL", failure.what());
    }
  } catch (...) {
    return {kExitFinding, {}, {}};
  }
}

}  // namespace tool
