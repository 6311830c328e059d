// SPDX-License-Identifier: Apache-2.0
// Parses the command line and runs the chosen subcommand. Each error becomes one message, or a JSON
// document with --json.
#include "command.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>

#include "harness/run.hpp"
#include "host.hpp"
#include "options.hpp"
#include "subcommands.hpp"

namespace tool {
namespace {

constexpr const char* kExamples = R"(Examples:
  backplane list                         the usable devices, and where their plugins were found
  backplane info reference:0             the properties and operators of a device
  backplane doctor                       why a plugin is unavailable, and what to do
  backplane run matmul --shape 64x32 --shape 32x16 --device reference:0
  backplane certify reference            test a plugin and write its certificate
  backplane verify FILE.json reference   whether this plugin reproduces a certificate
  backplane new acme                     start your own plugin
  backplane bench ops --filter tiny      the time of operators, compared with other libraries
  backplane bench dispatch               the overhead of the SDK
  backplane list --json                  the list as JSON; schemas: share/backplane/schemas
Exit status: 0 success, 1 a finding or a failed operation, 2 a usage error.)";

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
Exit status: 0 if the plugin is certified at the profile, or if every chosen case passed; 1 otherwise; 2 after a usage error.)";

constexpr const char* kVerifyExamples = R"(Examples:
  backplane verify certificates/libbackplane_acme.json ./libbackplane_acme.so
  backplane verify acme.json acme --sample 2000
Exit status: 0 if the certificate is verified; 1 if it is refused (the output states the wrong part); 2 after a usage error.)";

void add_run(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = app.add_subcommand("run", "run one operator on random or given data");
  RunOptions& run_options = options.run;
  subcommand->add_option("OP", run_options.op, "operator, as in ops.def")->required();
  subcommand->add_option("--device,-d", run_options.device, "plugin:index; by default, the library chooses");
  subcommand->add_option("--dtype,-t", run_options.dtype,
                         "T of the operator's dtype rule; the default is f32 if f32 is legal");
  subcommand->add_option("--out-dtype", run_options.out_dtype, "dtype of the output, if the dtype rule allows several");
  add_each(subcommand, "--shape,-s", run_options.shapes,
           "shape of the next input, such as 64x32 or scalar; the default is 4x4");
  add_each(subcommand, "--out-shape", run_options.out_shapes,
           "shape of the next output, if the inputs do not determine it");
  add_each(subcommand, "--strides", run_options.strides,
           "strides of the next operand in elements, such as 32,1; inputs come first");
  add_each(subcommand, "--data", run_options.data, "values of the next input, such as 1,2,3; random by default");
  add_each(subcommand, "--scalar", run_options.scalars, "value of the next scalar; the defaults are 1, 2, ..");
  add_each(subcommand, "--attr,-a", run_options.attributes, "NAME=VALUE, or NAME=VALUE,VALUE for an array");
  subcommand->add_option("--seed", run_options.seed, "seed of the random data")->capture_default_str();
  subcommand->add_option("--repeat,-n", run_options.repeat, "number of timed calls after the first call")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
  subcommand->add_flag("--all", run_options.all, "print whole tensors, whatever their size");
  subcommand->footer(kRunExamples);
  subcommand->callback([&] { chosen = [&] { return run(options.session, options.run); }; });
}

CLI::Range case_seconds() {
  return {backplane::conformance::kLeastCaseSeconds, backplane::conformance::kMostCaseSeconds};
}
CLI::Range resident_mib() {
  return {backplane::conformance::kLeastResidentMib, backplane::conformance::kMostResidentMib};
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
           "the id of a case, a prefix of an id that ends before a dot, or a pattern with *; may be repeated");
  subcommand->add_option("--seed", certify_options.seed, "seed of the data; by default, a random seed that is printed");
  subcommand
      ->add_option("--jobs,-j", certify_options.jobs, "number of concurrent processes; by default, one per processor")
      ->check(CLI::Range(1u, 1024u));
  subcommand->add_option("--timeout", certify_options.timeout_s, "seconds that a case may take")
      ->capture_default_str()
      ->check(case_seconds());
  subcommand->add_option("--memory-limit", certify_options.memory_mib, "memory limit of each process in MiB")
      ->capture_default_str()
      ->check(resident_mib());
  subcommand
      ->add_option(
          "--equal-failures", certify_options.equal_failures,
          "number of failures with equal messages after which the rest of a group is skipped; 0 runs all cases")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  subcommand->add_option("--output,-o", certify_options.output, "directory of the certificates")->capture_default_str();
  subcommand->add_flag("--list", certify_options.list, "print the cases and exit");
  subcommand
      ->add_option("--bound", certify_options.bound,
                   "print the error bound of an operator, or of one of its dtypes, and exit")
      ->type_name("OP [DTYPE]")
      ->expected(1, 2);
  subcommand->add_flag("--resume", certify_options.resume, "continue an interrupted run that had the same seed");
  subcommand->add_flag(
      "--only-failed", certify_options.only_failed,
      "run only the cases that failed in the certificate, with its profile and seed; the result is a separate file");
  subcommand->add_flag(
      "--in-process", certify_options.in_process,
      "use no child processes and no limits, for use with a debugger; such a run certifies no profile");
  subcommand->add_flag("--fail-fast", certify_options.fail_fast,
                       "end at the first failure; the certificate lists only the cases that ran");
  subcommand->add_flag("--quiet,-q", certify_options.quiet, "print one line of progress per minute");
  subcommand->add_flag("--junit", certify_options.junit, "print JUnit XML on standard output");
  subcommand->add_flag("--html", certify_options.html, "print the HTML page on standard output");
  subcommand->footer(kCertifyExamples);
  subcommand->callback([&, profile] {
    certify_options.profile_given = profile->count() != 0;
    chosen = [&] { return certify(options.session, certify_options); };
  });
}

void add_verify(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = app.add_subcommand(
      "verify", "check a certificate: its form, its plugin, and a sample of its cases, which runs again");
  VerifyOptions& verify_options = options.verify;
  subcommand->add_option("CERTIFICATE", verify_options.certificate, "JSON file that certify wrote")->required();
  subcommand->add_option("PLUGIN", verify_options.plugin, "path of the plugin's library, or the plugin's name")
      ->required();
  subcommand->add_option("--sample,-n", verify_options.sample, "number of cases to run again")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{1} << 32));
  subcommand->add_option("--seed", verify_options.seed,
                         "seed that selects the cases and their data; by default, a random seed that is printed");
  subcommand->add_option("--device,-d", verify_options.device,
                         "index of the plugin's device; by default, the index in the certificate");
  subcommand
      ->add_option("--jobs,-j", verify_options.jobs, "number of concurrent processes; by default, one per processor")
      ->check(CLI::Range(1u, 1024u));
  subcommand
      ->add_option("--timeout", verify_options.timeout_s,
                   "seconds that a case may take; by default, the limit of the certificate's run")
      ->check(case_seconds());
  subcommand
      ->add_option("--memory-limit", verify_options.memory_mib,
                   "memory limit of each process in MiB; by default, the limit of the certificate's run")
      ->check(resident_mib());
  subcommand->add_flag("--quiet,-q", verify_options.quiet, "print one line of progress per minute");
  subcommand->footer(kVerifyExamples);
  subcommand->callback([&] { chosen = [&] { return verify(options.session, options.verify); }; });
}

void add_subcommands(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = app.add_subcommand("list", "list the plugins and devices that were found, and their origins");
  subcommand->add_option("NAME", options.list.filter, "list only this plugin or device");
  subcommand->add_flag("--all", options.list.all, "also list shadowed and broken plugins, with the reasons");
  subcommand->callback([&] { chosen = [&] { return list(options.session, options.list); }; });

  subcommand =
      app.add_subcommand("info", "show the properties, memory and operators of a device, or the operator table");
  subcommand->add_option("DEVICE", options.info.device, "plugin:index, or plugin for index 0");
  subcommand->add_flag("--all", options.info.all, "show every combination of operator and dtype");
  subcommand->add_flag("--operators", options.info.operators, "show the SDK's operator table; needs no device");
  subcommand->callback([&] { chosen = [&] { return info(options.session, options.info); }; });

  subcommand = app.add_subcommand(
      "doctor", "show each candidate, the rule that it satisfies or violates, and which side must change");
  subcommand->callback([&] { chosen = [&] { return doctor(options.session, options.doctor); }; });

  add_run(app, options, chosen);
  add_certify(app, options, chosen);
  add_verify(app, options, chosen);

  subcommand = app.add_subcommand("new", "write a plugin project that builds against this SDK and certifies itself");
  subcommand->add_option("NAME", options.new_plugin.name, "name of the plugin: 1 to 63 characters of a-z, 0-9 and _")
      ->required();
  subcommand->add_option("--dir", options.new_plugin.directory,
                         "directory of the project, which must not exist; the default is NAME");
  subcommand->add_flag(
      "--queue", options.new_plugin.queue,
      "write a project for a device with its own queues and memory, with a simulated card as an example");
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
  app.set_help_flag("--help,-h", "show this help and exit");
  app.add_flag("--json", options.session.json, "print one JSON document on standard output");
  CLI::Option* path = app.add_option(
      "--plugin-path", options.plugin_path,
      "directories or manifests, separated by ':', to search first; the default is BACKPLANE_PLUGIN_PATH");
  app.add_flag("--version", options.version, "show the versions and exit");
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
