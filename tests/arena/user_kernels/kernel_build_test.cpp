// How users' kernels are built: what a pitch may ask of the compiler, what the compiler may read, and what is kept.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "arena/expect_error.hpp"
#include "arena/ledger/sha256.hpp"
#include "arena/pitches/kernel_options.hpp"
#include "arena/pitches/pitch.hpp"
#include "arena/suites/suite.hpp"
#include "arena/user_kernels/base_contestant.hpp"
#include "arena/user_kernels/compile/cuda_build.hpp"
#include "arena/user_kernels/compile/host_build.hpp"
#include "arena/user_kernels/compile/include_lines.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

TEST(KernelOptions, ThoseThatChooseLanguageAndSpeedMayBeAskedFor) {
  for (const char* option : {"-O2",
                             "-Ofast",
                             "-mavx512f",
                             "-march=x86-64-v3",
                             "-mprefer-vector-width=512",
                             "-ffast-math",
                             "-fno-math-errno",
                             "-fopenmp",
                             "-std=c++20",
                             "-std=gnu++17",
                             "-DTILE=32",
                             "-DNAME",
                             "-DF(x)=((x)+1)",
                             "-DTEXT=\"a b\"",
                             "-UNDEBUG",
                             "-Wall",
                             "-Wno-unused",
                             "-g",
                             "-w",
                             "-pthread",
                             "-lm",
                             "-lgomp",
                             "-lpthread",
                             "--param=max-unroll-times=8",
                             "-I.",
                             "-Iinclude",
                             "-Ia/../b",
                             "-flto"}) {
    EXPECT_EQ(option_obstacle(Language::host, option), "") << option;
  }
  for (const char* option :
       {"--use_fast_math", "-use_fast_math", "-maxrregcount=64", "--maxrregcount=128", "-DTILE=32", "-UX",
        "--std=c++17", "-std=c++20", "--ptxas-options=-v", "--ptxas-options=-O3,-dlcm=cg", "--fmad=false", "-lineinfo",
        "--include-path=sub", "-Isub", "--diag-suppress=177", "--define-macro=A=1"}) {
    EXPECT_EQ(option_obstacle(Language::cuda, option), "") << option;
  }
}

TEST(KernelOptions, WhatReadsWritesOrStartsSomethingIsRefused) {
  for (const char* option : {"-o",
                             "-oclobbered.txt",
                             "-wrapper",
                             "sh,-c,touch x",
                             "-wrapper=x",
                             "-fplugin=evil.so",
                             "-fplugin-arg-x-y=1",
                             "-B/tmp",
                             "-Bx",
                             "-specs=x",
                             "@file",
                             "-include",
                             "-include/etc/passwd",
                             "-imacros",
                             "-isystem/",
                             "-iquote",
                             "-idirafter/x",
                             "-I",
                             "-I/etc",
                             "-I..",
                             "-Ia/../../b",
                             "-I-",
                             "-Wl,-rpath=/x",
                             "-Wa,-a=out",
                             "-Wp,-MD,x",
                             "-Xlinker",
                             "-Xassembler",
                             "-D",
                             "-U",
                             "-L/x",
                             "-lcrypto",
                             "-l",
                             "-l:evil.so",
                             "/etc/passwd",
                             "other.cpp",
                             "-x",
                             "-E",
                             "-S",
                             "-c",
                             "-M",
                             "-MD",
                             "-MFx",
                             "-save-temps",
                             "-fdump-tree-all",
                             "-fprofile-generate",
                             "-fprofile-use=x",
                             "-fprofile-dir=x",
                             "-fmodules-ts",
                             "-fuse-ld=evil",
                             "-fopt-info-all=x",
                             "-mllvm",
                             "-T",
                             "--sysroot=/x",
                             "-nostdinc",
                             "",
                             "-",
                             "-O2 -o x",
                             "-std=c++20\n-o",
                             "-D1",
                             "-v"}) {
    EXPECT_NE(option_obstacle(Language::host, option), "") << option;
  }
  for (const char* option : {"-o",
                             "--gpu-architecture=sm_80",
                             "-arch=sm_80",
                             "--include-path=/etc",
                             "-I..",
                             "--pre-include=x",
                             "-include=x",
                             "--ptxas-options=-o,x",
                             "--ptxas-options=",
                             "--time=out",
                             "-time=/x",
                             "--pch",
                             "--create-pch=x",
                             "--use-pch=x",
                             "--pch-dir=/x",
                             "-optf",
                             "--options-file=x",
                             "--keep",
                             "-lm",
                             "-O3",
                             "--fdevice-time-trace=x"}) {
    EXPECT_NE(option_obstacle(Language::cuda, option), "") << option;
  }
}

TEST(IncludeLines, AreFoundHoweverTheyAreWritten) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(include_lines("#include \"a.h\"\n  #  include <b.h> // c\n%:include \"d\"\n#include_next <e>\n"),
            (Lines{"\"a.h\"", "<b.h>", "\"d\"", "<e>"}));
  EXPECT_EQ(include_lines(
                "#/**/include/* */\"a\"\n#inc\\\nlude \"b\"\n/* \n */ #include WHERE\n#if 0\n#include \"c\"\n#endif"),
            (Lines{"\"a\"", "\"b\"", "WHERE", "\"c\""}));
  EXPECT_EQ(include_lines("// #include \"a\"\n/*\n#include \"b\"\n*/ x = \"/*\";\n#include \"c\"\n"), (Lines{"\"c\""}));
  EXPECT_EQ(include_lines("x = R\"k(\n/* )\" )k\"; y = '\"'; z = 1'000;\n#include \"a\"\n#define include\n"),
            (Lines{"\"a\""}));
  EXPECT_EQ(include_lines("#include"), (Lines{""}));
}

constexpr const char* small =
    "title = \"Small\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\"]\n[[problem]]\nm = 1\nn = 16\nk = 16\n"
    "a = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";

/// A folder with a kernel in it.
class KernelBuild : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((kernels_ / name).parent_path());
    std::ofstream(kernels_ / name, std::ios::binary) << text;
  }

  Kernel kernel(const std::string& text, std::vector<std::string> options = {}) {
    write("mine.cpp", text);
    Kernel kernel;
    kernel.operation = "dual_gemm";
    kernel.source = (kernels_ / "mine.cpp").string();
    kernel.text = text;
    kernel.language = Language::host;
    kernel.entry = "mine";
    kernel.options = std::move(options);
    return kernel;
  }

  /// What the function `mine` of a build returns; it stays loaded.
  static int answer_of(const HostBuild& build) {
    void* const library = ::dlopen(build.object().c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << ::dlerror();
    return reinterpret_cast<int (*)()>(::dlsym(library, "mine"))();
  }

  std::string refusal(const std::string& text, std::vector<std::string> options = {}) {
    return error_of([&] { const HostBuild build(kernel(text, std::move(options))); });
  }

  ScratchFolder kernels_;
};

TEST_F(KernelBuild, EveryFileBesideTheKernelIsKeptAndEveryOtherHashed) {
  write("tile.h", "#pragma once\n#include \"deep/er.h\"\n#include <cmath>\n");
  write("deep/er.h", "#include \"beside.h\"\n");
  write("deep/beside.h", "inline int told() { return 40; }\n");
  write("unused.h", "never read\n");
  const HostBuild build(kernel(
      "#include \"thresher/own_kernel.h\"\n#include \"tile.h\"\nextern \"C\" int mine() { return told() + TWO; }\n",
      {"-DTWO=2", "-fopenmp", "-lm"}));
  EXPECT_EQ(answer_of(build), 42);
  const nlohmann::json json = nlohmann::json::parse(to_json(evidence_of(build.record())));
  ASSERT_EQ(json["files"].size(), 3U) << json["files"];
  EXPECT_EQ(json["files"][0]["path"], "deep/beside.h");
  EXPECT_EQ(json["files"][1]["path"], "deep/er.h");
  EXPECT_EQ(json["files"][2]["path"], "tile.h");
  EXPECT_EQ(json["files"][0]["text"], "inline int told() { return 40; }\n");
  EXPECT_EQ(json["files"][0]["sha256"], sha256("inline int told() { return 40; }\n"));
  EXPECT_EQ(json["kernel"]["path"], "mine.cpp");
  EXPECT_GT(json["system_files"]["count"], 1);
  EXPECT_EQ(json["system_files"]["sha256"].get<std::string>().size(), 64U);
  EXPECT_EQ(json["tools"][0]["sha256"].get<std::string>().size(), 64U);
  EXPECT_NE(json["compiler"], "");
  EXPECT_EQ(json["confined"].size(), runtime::PreparedConfinement::steps);
}

TEST_F(KernelBuild, ItsOwnFoldersOfHeadersAreFound) {
  write("include/told.h", "inline int told() { return 7; }\n");
  const HostBuild build(kernel("#include <told.h>\nextern \"C\" int mine() { return told(); }\n", {"-Iinclude"}));
  EXPECT_EQ(answer_of(build), 7);
  ASSERT_EQ(build.record().files.size(), 1U);
  EXPECT_EQ(build.record().files[0].path, "include/told.h");
}

TEST_F(KernelBuild, ASourceInTheWorkingFolderIsFound) {
  write("told.h", "inline int told() { return 8; }\n");
  Kernel here = kernel("#include \"told.h\"\nextern \"C\" int mine() { return told(); }\n");
  EXPECT_EQ(answer_of(HostBuild(here)), 8);
}

TEST_F(KernelBuild, FilesOfOthersAreRefusedAndNotShown) {
  const ScratchFolder others;
  std::ofstream(others / "secret.h") << "#error told-to-nobody\n#told-to-nobody\ntold-to-nobody\n";
  fs::create_symlink(others / "secret.h", kernels_ / "link.h");
  const std::string end = "\nextern \"C\" int mine() { return 0; }\n";
  for (const std::string& include :
       {"#include \"" + (others / "secret.h").string() + "\"",
        std::string("#include \"../") + others.path().filename().string() + "/secret.h\"",
        std::string("#include \"link.h\""), std::string("#include \"/etc/passwd\""),
        std::string("#include \"/proc/self/environ\""), std::string("#include </etc/group>")}) {
    const std::string said = refusal(include + end);
    EXPECT_NE(said, "") << include;
    EXPECT_EQ(said.find("told-to-nobody"), std::string::npos) << said;
    EXPECT_EQ(said.find("root:"), std::string::npos) << said;
  }
}

TEST_F(KernelBuild, TheAssemblerReadsNoFilesOfOthersEither) {
  const ScratchFolder others;
  std::ofstream(others / "secret") << "told-to-nobody";
  const std::string text = "asm(\".section .rodata\\n.incbin \\\"" + (others / "secret").string() +
                           "\\\"\\n.text\");\nextern \"C\" int mine() { return 0; }\n";
  try {
    const HostBuild build(kernel(text));
    for (const runtime::Protection& protection : build.record().confined.protections) {
      EXPECT_FALSE(protection.what == "files" && protection.in_force) << "the file was read";
    }
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("told-to-nobody"), std::string::npos) << error.what();
  }
}

TEST_F(KernelBuild, TheFirstErrorNamesTheKernelAsItsUserDoes) {
  const std::string said = refusal("extern \"C\" int mine() { return undeclared; }\n");
  EXPECT_TRUE(said.starts_with("mine.cpp:1:")) << said;
  EXPECT_NE(said.find("undeclared"), std::string::npos) << said;
  EXPECT_NE(refusal("#include \"nowhere.h\"\n").find("nowhere.h"), std::string::npos);
}

TEST(SentenceOfACompiler, IsOneShortLineOfWhatIsShown) {
  EXPECT_EQ(in_a_sentence("mine.cpp:1: error: no"), "mine.cpp:1: error: no");
  EXPECT_EQ(in_a_sentence("\x1b[31mred\n\xff"), "?[31mred??");
  EXPECT_EQ(in_a_sentence(std::string(3'000'000, 'x')), std::string(400, 'x') + "…");
  EXPECT_EQ(in_a_sentence(std::string(400, 'x')), std::string(400, 'x'));
  std::string umlauts;
  for (int i = 0; i < 2000; ++i) {
    umlauts += "ä";
  }
  const std::string cut = in_a_sentence(umlauts);
  EXPECT_EQ(cut.size(), 2 * 400 + std::string("…").size());
}

// Whoever writes a kernel has its compiler say what he likes.
TEST_F(KernelBuild, WhatACompilerIsMadeToSayIsShownAsPlainText) {
  const Kernel loud = kernel("#error \x1b]0;title\x07 \n");
  const auto contestant =
      make_host_contestant({"dual_gemm", "loud"}, loud, Device::cpu(), {THRESHER_BINARY, "serve-calls"});
  const std::string said = contestant->compile(parse_suite(small, "small", "small.toml").problems.front()).sentence;
  EXPECT_EQ(said, "mine.cpp does not compile: mine.cpp:1:2: error: #error ?]0;title?");
}

TEST_F(KernelBuild, WhatIsNoTextOrTooMuchIsNotIncluded) {
  write("binary.h", "// \xff\xfe\n");
  EXPECT_NE(refusal("#include \"binary.h\"\n").find("no text"), std::string::npos);
  write("much.h", "//" + std::string(std::size_t{5} << 20, 'x') + "\n");
  EXPECT_NE(refusal("#include \"much.h\"\n").find("no more are kept"), std::string::npos);
}

TEST_F(KernelBuild, AScriptInPlaceOfTheCompilerIsNamedAndHashed) {
  const ScratchFolder tools;
  std::ofstream(tools / "cxx") << "#!/bin/sh\nexec c++ \"$@\"\n";
  fs::permissions(tools / "cxx", fs::perms::owner_all);
  const char* const before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("CXX", (tools / "cxx").c_str(), 1);
  std::string sentence;
  std::vector<ToolFile> used;
  try {
    const HostBuild build(kernel("extern \"C\" int mine() { return 0; }\n"));
    sentence = by_whom(build.record());
    used = build.record().tools;
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
  before == nullptr ? ::unsetenv("CXX") : ::setenv("CXX", kept.c_str(), 1);
  EXPECT_NE(sentence.find("by the script " + fs::canonical(tools / "cxx").string()), std::string::npos) << sentence;
  ASSERT_FALSE(used.empty());
  EXPECT_TRUE(used.front().is_script);
  EXPECT_EQ(used.front().sha256, sha256("#!/bin/sh\nexec c++ \"$@\"\n"));
}

TEST_F(KernelBuild, NothingIsLeftBehind) {
  fs::path folder;
  {
    const HostBuild build(kernel("extern \"C\" int mine() { return 0; }\n"));
    folder = build.folder();
    EXPECT_TRUE(fs::exists(build.object()));
  }
  EXPECT_FALSE(fs::exists(folder));
}

class CudaBuildTest : public KernelBuild {
 protected:
  void SetUp() override {
    if (const std::string& missing = runtime::nvrtc_status().problem; !missing.empty()) {
      GTEST_SKIP() << missing;
    }
  }

  CudaBuild build(const std::string& text, std::vector<std::string> options = {}) {
    Kernel asked = kernel(text, std::move(options));
    fs::rename(kernels_ / "mine.cpp", kernels_ / "mine.cu");
    asked.source = (kernels_ / "mine.cu").string();
    asked.language = Language::cuda;
    return build_cuda(asked, "sm_90a", THRESHER_BINARY);
  }

  std::string refusal(const std::string& text, std::vector<std::string> options = {}) {
    return error_of([&] { (void)build(text, std::move(options)); });
  }
};

TEST_F(CudaBuildTest, EveryFileBesideTheKernelIsKept) {
  write("tile.h", "#pragma once\n#include \"deep/er.h\"\n");
  write("deep/er.h", "#include \"beside.h\"\n");
  write("deep/beside.h", "__device__ int told() { return TWO; }\n");
  write("sub/other.h", "__device__ int other() { return 1; }\n");
  write("unused.h", "never read\n");
  const CudaBuild built = build(
      "#include \"thresher/own_kernel.h\"\n  #  include \"tile.h\" // with a word\n#include <other.h>\n"
      "extern \"C\" __global__ void mine(thresher_own_dual_gemm call) { *(int*)call.c = told() + other(); }\n",
      {"-DTWO=2", "-Isub", "--use_fast_math", "--maxrregcount=64"});
  EXPECT_FALSE(built.cubin.image.empty());
  ASSERT_EQ(built.cubin.kernels.size(), 1U);
  EXPECT_EQ(built.cubin.kernels.front().lowered_name, "mine");
  EXPECT_GT(built.cubin.kernels.front().resources.registers, 0);
  const nlohmann::json json = nlohmann::json::parse(to_json(evidence_of(built.record)));
  std::vector<std::string> paths;
  for (const auto& file : json["files"]) {
    paths.push_back(file["path"]);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"deep/beside.h", "deep/er.h", "sub/other.h", "tile.h"}));
  EXPECT_NE(json["compiler"].get<std::string>().find("NVRTC"), std::string::npos);
}

TEST_F(CudaBuildTest, FilesOfOthersAreRefusedAndNotShown) {
  const ScratchFolder others;
  std::ofstream(others / "secret.h") << "#error told-to-nobody\ntold-to-nobody\n";
  fs::create_symlink(others / "secret.h", kernels_ / "link.h");
  const std::string secret = (others / "secret.h").string();
  const std::string end =
      "\n#include \"thresher/own_kernel.h\"\nextern \"C\" __global__ void mine(thresher_own_dual_gemm) {}\n";
  for (const std::string& include :
       {"#include \"" + secret + "\"", "#include \"../" + others.path().filename().string() + "/secret.h\"",
        std::string("#include \"link.h\""), std::string("#include </etc/passwd>"),
        "#define WHERE \"" + secret + "\"\n#include WHERE", "#/**/include \"" + secret + "\"",
        "#inc\\\nlude \"" + secret + "\""}) {
    const std::string said = refusal(include + end);
    EXPECT_NE(said, "") << include;
    EXPECT_EQ(said.find("told-to-nobody"), std::string::npos) << said;
    EXPECT_EQ(said.find("root:"), std::string::npos) << said;
  }
}

TEST_F(CudaBuildTest, TheFirstErrorNamesTheKernelAsItsUserDoes) {
  const std::string said = refusal("extern \"C\" __global__ void mine() { undeclared = 1; }\n");
  EXPECT_NE(said.find("mine.cu(1): error"), std::string::npos) << said;
}

TEST_F(CudaBuildTest, KernelOfOtherParametersIsRefused) {
  const auto taking = [](const std::string& parameters) {
    return "#include \"thresher/own_kernel.h\"\nextern \"C\" __global__ void mine(" + parameters + ") {}";
  };
  for (const char* right : {"thresher_own_dual_gemm", "const __grid_constant__ thresher_own_dual_gemm call"}) {
    EXPECT_NO_THROW((void)build(taking(right))) << right;
  }
  for (const char* wrong :
       {"", "const thresher_own_dual_gemm*", "thresher_own_dual_gemm, int", "thresher_own_matrix"}) {
    EXPECT_NE(refusal(taking(wrong)).find("mine must take one argument, a thresher_own_dual_gemm by value"),
              std::string::npos)
        << wrong;
  }
}

std::string pitch_with(const std::string& name, const std::string& options) {
  return "title = \"x\"\n[contestant]\noperation = \"dual_gemm\"\nstrategy = \"" + name +
         "\"\n[baseline]\nstrategy = \"two_pass\"\n[claim]\nspeedup = 1\nconfidence = 0\nreason = "
         "\"none\"\n[kernel]\nsource = "
         "\"mine.cpp\"\nentry = \"mine\"\n" +
         options;
}

TEST_F(KernelBuild, APitchIsRefusedForItsOptionsAndItsNameWithFileAndLine) {
  write("mine.cpp", "");
  const std::string file = (kernels_ / "pitch.toml").string();
  const auto refused = [&](const std::string& text) { return error_of([&] { (void)parse_pitch(text, file); }); };
  const std::string option = refused(pitch_with("mine", "options = [\"-O2\", \"-wrapper\"]\n"));
  EXPECT_NE(option.find("pitch.toml:14: `options` in [kernel] holds \"-wrapper\", which is none that"),
            std::string::npos)
      << option;
  for (const char* name : {"interleaved[threads=1]", "a b", "", "name\\u001b[2J", "na/me", "n\\u00e4me", "n,m"}) {
    const std::string said = refused(pitch_with(name, ""));
    EXPECT_NE(said.find("pitch.toml:4: `strategy`"), std::string::npos) << said;
    EXPECT_EQ(said.find('\x1b'), std::string::npos);
  }
  EXPECT_NE(refused(pitch_with(std::string(65, 'x'), "")).find("1 to 64"), std::string::npos);
  EXPECT_EQ(parse_pitch(pitch_with("Mine_2.0-fast", ""), file).contestant.strategy, "Mine_2.0-fast");
  write("mine.cpp", "// \xff\n");
  EXPECT_NE(refused(pitch_with("mine", "")).find("no text in UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace thresher::arena::user_kernels
