#pragma once
/// The subcommands of `thresher`. Each registers itself on the app; its callback runs the command.
///
/// Exit status: 0 ok (a rejected pitch is a result), 1 a gate failed or `warm` could not keep everything, 2 bad usage
/// or input, 3 a failure without a fault of the input: of a device, of memory, or of Thresher itself. A subcommand
/// throws thresher::Error, which is printed as one sentence; it sets `exit_status` only to report 1.
namespace CLI {
class App;
}

namespace thresher::cli {

inline constexpr int gate_failed = 1;
inline constexpr int bad_input = 2;
inline constexpr int failure = 3;

struct Context {
  int exit_status = 0;
};

void add_doctor(CLI::App& app, Context& context);
/// Internal: a tournament starts it to compile a user kernel.
void add_compile_confined(CLI::App& app, Context& context);
/// Internal: a tournament starts it to run a user kernel.
void add_serve_calls(CLI::App& app, Context& context);
void add_kernel_arguments(CLI::App& app, Context& context);
void add_ledger(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
/// `attention` under `run`.
void add_run_attention(CLI::App& run);
/// `gemm` under `run`.
void add_run_gemm(CLI::App& run);
/// `gated-mlp` under `run`.
void add_run_gated_mlp(CLI::App& run);
/// `grouped-dual-gemm` and `grouped-gemm` under `run`.
void add_run_grouped(CLI::App& run);
void add_pack(CLI::App& app, Context& context);
void add_tournament(CLI::App& app, Context& context);
void add_warm(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_quantize(CLI::App& app, Context& context);
void add_emulate(CLI::App& app, Context& context);

}  // namespace thresher::cli
