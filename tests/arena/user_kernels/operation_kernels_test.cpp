// Kernels for every operation that takes them, in C++ and Python. The examples pass, a mistake fails at `correct`, and
// a kernel that keeps its outputs is found out.
#include <gtest/gtest.h>

#include <algorithm>

#include "arena/operations.hpp"
#include "arena/user_kernels/compile/python_interpreter.hpp"
#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::arena {
namespace {

/// A part of an example, and what makes it wrong in its place.
struct Mistake {
  const char* right;
  const char* wrong;
};

struct OperationCase {
  const char* operation;
  const char* problems;  ///< of C++
  const char* plain;     ///< of both languages
  const char* input;     ///< whose beginning a cheat remembers
  const char* output;
  Mistake in_cpp;
  Mistake in_python;
  const char* shared_bytes = "0";  ///< of the CUDA example
};

void PrintTo(const OperationCase& one, std::ostream* stream) { *stream << one.operation; }

const std::vector<OperationCase> cases{
    {"gemm",
     "[[problem]]\nm = 5\nn = 32\nk = 128\na = [\"fp8_row\", \"fp8_block\"]\nb = \"fp8_block\"\nout = \"fp32\"\n"
     "[[problem]]\nm = 5\nn = 16\nk = 64\na = \"nvfp4\"\nb = \"nvfp4\"\nout = \"bf16\"\n"
     "scale_layout = [\"row-major\", \"blocked\"]\n"
     "[[problem]]\nm = 5\nn = 16\nk = 256\na = \"fp8_block\"\nb = \"fp8_block\"\nout = \"bf16\"\n"
     "scale_layout = \"column-major\"\n",
     "[[problem]]\nm = 17\nn = 24\nk = 48\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\nbias = [\"none\", \"fp16\"]\n",
     "a",
     "c",
     {"k < call->k", "k < call->k - 1"},
     {"product if", "-product if"}},
    {"grouped_gemm",
     "[[problem]]\ncounts = [3, 0, 6]\nn = 16\nk = 64\na = \"fp16\"\nb = \"nvfp4\"\nout = \"fp16\"\n"
     "layout = [\"packed\", \"slots\"]\nbias = \"fp32\"\nrow_weights = true\n"
     "[[problem]]\ncounts = [3, 0, 6]\nn = 16\nk = 32\na = \"bf16\"\nb = \"bf16\"\nout = \"bf16\"\n"
     "layout = \"gathered\"\ntokens = 4\nrow_ids_divisor = 2\nskipped = 4\n",
     "[[problem]]\ncounts = [3, 0, 9]\nn = 16\nk = 32\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n",
     "a",
     "c",
     {"thresher_own_element(&call->b, expert, column, k)", "thresher_own_element(&call->b, 0, column, k)"},
     {"b[expert]", "b[0]"}},
    {"grouped_dual_gemm",
     "",
     "[[problem]]\ncounts = [3, 0, 9]\nn = 16\nk = 32\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n",
     "a",
     "c",
     {"product(call, &call->b2, expert, row, column)", "product(call, &call->b1, expert, row, column)"},
     {"b2[expert]", "b1[expert]"}},
    {"attention",
     "[[problem]]\nbatch = 2\nheads = 2\nkv_heads = 1\nqueries = 3\nkeys = 9\nhead_dim = 64\nformat = \"bf16\"\n"
     "lse = true\nsoftcap = 2.0\nwindow_left = 4\norder = \"rows-first\"\n"
     "[[problem]]\nheads = 2\nkv_heads = 1\nquery_lengths = [0, 3, 5]\nkey_lengths = [2, 7, 5]\nhead_dim = 64\n"
     "format = \"fp16\"\nsinks = true\nlse = true\ncausal = true\n"
     "[[problem]]\nbatch = 3\nheads = 2\nqueries = 1\nkeys = 9\nhead_dim = 64\nformat = \"fp16\"\npage_size = 4\n"
     "lengths = \"mixed\"\nkv_format = \"fp8_e4m3\"\n",
     "[[problem]]\nbatch = 2\nheads = 4\nkv_heads = 2\nqueries = 5\nkeys = 9\nhead_dim = 64\nformat = \"fp16\"\n"
     "causal = [false, true]\n"
     "[[problem]]\nbatch = 3\nheads = 4\nkv_heads = 2\nqueries = 1\nkeys = 11\nhead_dim = 64\nformat = \"fp16\"\n"
     "page_size = 4\n",
     "q",
     "o",
     {"call->causal && diagonal + 1 < end", "call->causal && diagonal + 2 < end"},
     {" + keys - queries]", "]"}},
    {"gated_mlp",
     "[[problem]]\ntokens = 5\nhidden_size = 64\nintermediate_size = 32\nx = \"bf16\"\ngate_up = \"nvfp4\"\n"
     "intermediate = \"bf16\"\ndown = \"nvfp4\"\nout = \"bf16\"\nactivation = \"gelu_tanh\"\n",
     "[[problem]]\ntokens = 7\nhidden_size = 40\nintermediate_size = 24\nx = \"fp16\"\ngate_up = \"fp16\"\n"
     "intermediate = \"fp16\"\ndown = \"fp16\"\nout = \"fp16\"\n",
     "x",
     "out",
     {"product(&call->x, token, &call->up, row)", "product(&call->x, token, &call->gate, row)"},
     {"* ups)", "* gates)"},
     "intermediate_size * 4"},
    {"moe_layer",
     "[[problem]]\nexperts = 3\nof_experts = 4\ntop_k = 2\ntokens = 5\nhidden_size = 32\nintermediate_size = 16\n"
     "x = \"bf16\"\ngate_up = \"nvfp4\"\nintermediate = \"bf16\"\ndown = \"nvfp4\"\nout = \"fp32\"\nskipped = 4\n"
     "bias = \"fp32\"\n",
     "[[problem]]\nexperts = 4\ntop_k = 2\ntokens = 7\nhidden_size = 40\nintermediate_size = 24\nx = \"fp16\"\n"
     "gate_up = \"fp16\"\nintermediate = \"fp16\"\ndown = \"fp16\"\nrows = \"fp16\"\nout = \"fp16\"\n",
     "x",
     "out",
     {"+= weight * thresher_own_rounded", "+= thresher_own_rounded"},
     {"+= topk_weights[token, choice] * row", "+= row"},
     "top_k * intermediate_size * 4"},
};

class OperationKernels : public OwnTournament, public ::testing::WithParamInterface<OperationCase> {
 protected:
  static std::string example(const std::string& extension) {
    return slurp(example_folder / "operations" / (std::string(GetParam().operation) + extension));
  }

  Pitch pitch(const std::string& name, const std::string& extension, const std::string& source,
              const std::string& entry, const std::string& launch = "") {
    std::ofstream(folder_.path() / (name + extension)) << source;
    const std::string baseline = library_registry(Device::cpu())->strategies(GetParam().operation).front();
    return parse_pitch("title = \"Mine\"\n[contestant]\noperation = \"" + std::string(GetParam().operation) +
                           "\"\nstrategy = \"" + name + "\"\n[kernel]\nsource = \"" + name + extension +
                           "\"\nentry = \"" + entry + "\"\n" + launch + "[baseline]\nstrategy = \"" + baseline +
                           "\"\n[claim]\nspeedup = 1\nconfidence = 0\nreason = \"none\"\n",
                       (folder_.path() / "pitch.toml").string());
  }

  static std::string with(std::string source, const Mistake& mistake) {
    const std::size_t at = source.find(mistake.right);
    EXPECT_NE(at, std::string::npos) << mistake.right;
    return at == std::string::npos ? source : source.replace(at, std::string(mistake.right).size(), mistake.wrong);
  }

  /// The example behind a kernel that keeps its outputs.
  Pitch cheat_in_cpp() {
    std::filesystem::copy_file(
        std::filesystem::path(THRESHER_SOURCE_DIR) / "tests/arena/user_kernels/cheats/remembers.h",
        folder_.path() / "remembers.h");
    return pitch("remembers", ".cpp",
                 "#include \"remembers.h\"\n" + example(".cpp") + "extern \"C\" void mine(const thresher_own_" +
                     GetParam().operation + "* call) {\n  remembers(naive, call, call->" + GetParam().input +
                     ", call->" + GetParam().output + ");\n}\n",
                 "mine");
  }

  Pitch cheat_in_python() {
    return pitch("remembers", ".py", example(".py") + R"(
import functools
kept = {}

@functools.wraps(naive)
def mine(*given, **named):
    key = given[-1].ctypes.data, given[0].tobytes()[:16]
    if key in kept:
        given[-1][...] = kept[key]
    else:
        naive(*given, **named)
        kept[key] = given[-1].copy()
)",
                 "mine");
  }

  static std::string suite(const std::string& problems) {
    return "title = \"Small\"\noperation = \"" + std::string(GetParam().operation) +
           "\"\ntimed = false\ndistributions = [\"normal\", \"full_range\"]\n" + problems;
  }

  static const Entry& entry(const TournamentResult& result, const std::string& strategy) {
    const std::string name = std::string(GetParam().operation) + "/" + strategy;
    const auto found = std::find_if(result.run.entries.begin(), result.run.entries.end(),
                                    [&](const Entry& one) { return one.contestant == name; });
    if (found == result.run.entries.end()) {
      throw std::runtime_error("no entry of " + name);
    }
    return *found;
  }

  static void expect_judged(const TournamentResult& result) {
    const Entry& right = entry(result, "right");
    for (const GateKind kind : {GateKind::feasible, GateKind::compiles, GateKind::correct, GateKind::honest}) {
      EXPECT_EQ(gate(right, kind).outcome, Outcome::passed) << name(kind) << ": " << gate(right, kind).sentence;
    }
    EXPECT_EQ(plain_verdict(entry(result, "wrong")), "failed at correct") << entry(result, "wrong").sentence;
    const Entry& cheat = entry(result, "remembers");
    EXPECT_TRUE(gate(cheat, GateKind::correct).outcome == Outcome::failed ||
                gate(cheat, GateKind::honest).outcome == Outcome::failed)
        << plain_verdict(cheat) << ": " << cheat.sentence;
  }
};

TEST_P(OperationKernels, InCppAreJudged) {
  expect_judged(hold({pitch("right", ".cpp", example(".cpp"), "naive"),
                      pitch("wrong", ".cpp", with(example(".cpp"), GetParam().in_cpp), "naive"), cheat_in_cpp()},
                     suite(std::string(GetParam().problems) + GetParam().plain)));
}

// Without a GPU they are compiled and audited.
TEST_P(OperationKernels, InCudaAreAudited) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const std::string launch_of_cuda =
      std::string("grid = [\"1\"]\nblock = [64]\nshared_bytes = \"") + GetParam().shared_bytes + "\"\n";
  const TournamentResult result =
      hold({pitch("right", ".cu", example(".cu"), "naive", launch_of_cuda)}, suite(GetParam().plain));
  const Entry& right = entry(result, "right");
  EXPECT_EQ(gate(right, GateKind::compiles).outcome, Outcome::passed) << gate(right, GateKind::compiles).sentence;
  EXPECT_NE(gate(right, GateKind::audited).outcome, Outcome::failed) << gate(right, GateKind::audited).sentence;
}

TEST_P(OperationKernels, InPythonAreJudged) {
  try {
    const std::vector<std::string>& known = user_kernels::python_interpreter().importable;
    if (std::find(known.begin(), known.end(), "numpy") == known.end()) {
      GTEST_SKIP() << "this Python has no NumPy";
    }
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  expect_judged(hold({pitch("right", ".py", example(".py"), "naive"),
                      pitch("wrong", ".py", with(example(".py"), GetParam().in_python), "naive"), cheat_in_python()},
                     suite(GetParam().plain)));
}

std::string name_of_case(const ::testing::TestParamInfo<OperationCase>& info) { return info.param.operation; }

INSTANTIATE_TEST_SUITE_P(Operation, OperationKernels, ::testing::ValuesIn(cases), name_of_case);

TEST(OperationKernelCases, AreThereForEachOperation) {
  for (const Operation* const operation : operations()) {
    const bool has_case = std::any_of(cases.begin(), cases.end(),
                                      [&](const OperationCase& one) { return one.operation == operation->name(); });
    EXPECT_TRUE(has_case || operation->name() == "dual_gemm") << operation->name();
  }
}

}  // namespace
}  // namespace thresher::arena
