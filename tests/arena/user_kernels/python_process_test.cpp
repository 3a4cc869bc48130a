// Processes of a kernel in Python: copies of one that has imported what takes long. None knows of another, and each is
// confined before it reads the kernel.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "arena/user_kernels/process/kernel_process.hpp"
#include "arena/user_kernels/python_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

Kernel kernel_of(const std::string& text) {
  Kernel kernel;
  kernel.operation = "dual_gemm";
  kernel.source = "mine.py";
  kernel.text = text;
  kernel.entry = "mine";
  kernel.framework = "numpy";
  kernel.time_limit_s = 20;
  return kernel;
}

/// What the kernel raises while a process loads it.
std::string said_by(const ProcessOptions& process, const Writer& load) {
  try {
    const KernelProcess loads(process, load);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

class PythonProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    const Kernel probe = kernel_of("raise RuntimeError('read')");
    std::string said;
    try {
      const PythonFiles files(probe);
      said = said_by(files.process(), files.load());
    } catch (const Error& error) {
      said = error.what();
    }
    if (said.find("NumPy cannot be imported") != std::string::npos ||
        said.find("THRESHER_PYTHON") != std::string::npos) {
      GTEST_SKIP() << said;
    }
    EXPECT_EQ(said, "RuntimeError: read (line 1)");
  }
};

// Every interpreter that is started draws a seed of its own for the hashes of its texts.
TEST_F(PythonProcess, OneInterpreterIsStartedForAllProcessesOfAKernel) {
  const Kernel kernel = kernel_of("raise RuntimeError(hash('thresher'))");
  const PythonFiles files(kernel);
  const std::string said = said_by(files.process(), files.load());
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(said_by(files.process(), files.load()), said);
  }
  files.end_original();
  EXPECT_NE(said_by(files.process(), files.load()), said);
}

TEST_F(PythonProcess, NothingOfAnEarlierProcessIsInALaterOne) {
  const Kernel kernel = kernel_of(
      "import numpy, os, sys\n"
      "seen = [hasattr(sys, 'left'), hasattr(numpy, 'left'), 'contestant' in sys.modules and sys.modules['contestant'] "
      "is not sys.modules[__name__],\n"
      "        'LEFT' in os.environ, sorted(map(int, os.listdir('/proc/self/fd')))[-1] > 10]\n"
      "sys.left = numpy.left = True\n"
      "os.environ['LEFT'] = '1'\n"
      "for number in range(4): os.dup(0)\n"
      "raise RuntimeError(seen)");
  const PythonFiles files(kernel);
  for (int process = 0; process < 3; ++process) {
    EXPECT_EQ(said_by(files.process(), files.load()), "RuntimeError: [False, False, False, False, False] (line 7)");
  }
}

// Whoever has forked both has open what both have.
TEST_F(PythonProcess, NothingOfAnEarlierProcessIsInWhatIsOpen) {
  const Kernel kernel = kernel_of(
      "import fcntl, os\n"
      "opened = list(map(int, os.listdir('/proc/self/fd')))[:-1]\n"
      "seen = [fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_APPEND) for number in opened]\n"
      "for number in opened: fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)\n"
      "raise RuntimeError(any(seen))");
  const PythonFiles files(kernel);
  for (int process = 0; process < 2; ++process) {
    EXPECT_EQ(said_by(files.process(), files.load()), "RuntimeError: False (line 5)");
  }
}

// What is written into the folder that a GPU's kernels are compiled in is emptied as well.
TEST_F(PythonProcess, NothingOfAnEarlierProcessIsInAFile) {
  const Kernel kernel = kernel_of(
      "import os\n"
      "folder = os.path.join(os.path.dirname(__file__), 'compiled')\n"
      "seen = os.listdir(folder)\n"
      "os.makedirs(os.path.join(folder, 'triton', 'answers'))\n"
      "open(os.path.join(folder, 'answers'), 'w').write('42')\n"
      "raise RuntimeError(seen)");
  const PythonFiles files(kernel);
  for (int process = 0; process < 2; ++process) {
    EXPECT_EQ(said_by(files.process_for_gpu(), files.load()), "RuntimeError: [] (line 6)");
  }
}

TEST_F(PythonProcess, EndsWithAllThatItStarted) {
  const Kernel kernel = kernel_of(
      "import os, time\n"
      "child = os.fork()\n"
      "while child == 0: time.sleep(1)\n"
      "raise RuntimeError(child)");
  const PythonFiles files(kernel);
  const std::string said = said_by(files.process_for_gpu(), files.load());
  const std::string before = "RuntimeError: ";
  ASSERT_EQ(said.substr(0, before.size()), before) << said;
  EXPECT_EQ(::kill(static_cast<pid_t>(std::strtol(said.c_str() + before.size(), nullptr, 10)), 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// A copy shares a user and the rules of its original with it: what it may not do is said to it alone.
TEST_F(PythonProcess, ReachesNoOtherProcess) {
  const Kernel kernel = kernel_of(
      "import os\n"
      "def goes(attempt, *arguments):\n"
      "    try:\n"
      "        attempt(*arguments)\n"
      "    except OSError:\n"
      "        return False\n"
      "    return True\n"
      "me = os.getpid()\n"
      "read = [p for p in range(max(1, me - 2000), me + 50) if p != me and any(\n"
      "    goes(os.open, f'/proc/{p}/{name}', os.O_RDONLY) for name in ('maps', 'mem', 'stat', 'environ'))]\n"
      "wrote = [p for p in range(max(1, me - 2000), me + 50) if p != me and goes(os.open, f'/proc/{p}/task/{p}/mem', "
      "os.O_RDWR)]\n"
      "told = [p for p in range(max(1, me - 2000), me + 50) if p != me and goes(os.kill, p, 0)]\n"
      "raise RuntimeError([read, wrote, told, goes(os.setsid), goes(os.open, '/proc/self/maps', os.O_RDONLY), "
      "goes(os.kill, me, 0)])");
  const PythonFiles files(kernel);
  const std::string only_itself = "RuntimeError: [[], [], [], False, True, True] (line 13)";
  EXPECT_EQ(said_by(files.process(), files.load()), only_itself);
  files.end_original();
  EXPECT_EQ(said_by(files.process_for_gpu(), files.load()), only_itself);
}

// What it reads of the host it could tell in the sentence with which it fails.
TEST_F(PythonProcess, IsToldOfTheHostWhatAListNames) {
  ::setenv("HOST_SECRET", "told to nobody", 1);
  ::setenv("OMP_NUM_THREADS", "1", 0);
  const Kernel kernel = kernel_of(
      "import os\n"
      "told = ('CUDA_DEVICE_ORDER', 'CUDA_HOME', 'CUDA_PATH', 'CUDA_VISIBLE_DEVICES', 'HOME', 'LANG', "
      "'LD_LIBRARY_PATH', "
      "'PATH', 'THRESHER_LIBRARY_PATH', 'TZ', 'ASAN_OPTIONS', 'TSAN_OPTIONS', 'UBSAN_OPTIONS')\n"
      "own = [e.partition(b'=')[0].decode() for e in open('/proc/self/environ', 'rb').read().split(b'\\0') if e]\n"
      "more = [n for n in {*os.environ, *own} if n not in told and not n.startswith(('LC_', 'OMP_'))]\n"
      "raise RuntimeError([more, 'OMP_NUM_THREADS' in os.environ, os.getcwd() == os.path.dirname(__file__)])");
  const PythonFiles files(kernel);
  const std::string said = said_by(files.process(), files.load());
  ::unsetenv("HOST_SECRET");
  EXPECT_EQ(said, "RuntimeError: [[], True, True] (line 5)");
}

TEST_F(PythonProcess, TakesNoMemoryThatItsLimitDoesNotCount) {
  const Kernel kernel = kernel_of(
      "import mmap, os, resource\n"
      "def goes(attempt, *arguments):\n"
      "    try:\n"
      "        attempt(*arguments)\n"
      "    except (OSError, ValueError):\n"
      "        return False\n"
      "    return True\n"
      "grows_down, much = 0x100, 1 << 20\n"
      "raise RuntimeError([goes(mmap.mmap, -1, much, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS),\n"
      "    goes(mmap.mmap, -1, much, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | grows_down),\n"
      "    goes(mmap.mmap, -1, much, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS), goes(os.memfd_create, 'memory'),\n"
      "    goes(resource.setrlimit, resource.RLIMIT_STACK, (1 << 30, 1 << 30)),\n"
      "    goes(os.open, '/dev/shm', os.O_RDWR | os.O_TMPFILE)])");
  const PythonFiles files(kernel);
  const std::string said = said_by(files.process(), files.load());
  EXPECT_TRUE(said.starts_with("RuntimeError: [True, False, False, False, False, False]")) << said;
}

TEST_F(PythonProcess, StartsNoProgram) {
  const Kernel kernel = kernel_of("import os\nos.execv('/bin/true', ['true'])");
  const PythonFiles files(kernel);
  EXPECT_EQ(said_by(files.process(), files.load()).substr(0, 15), "PermissionError");
}

TEST_F(PythonProcess, TheOriginalOutlivesAProcessThatDies) {
  const Kernel kernel = kernel_of("import os\nos.abort()");
  const PythonFiles files(kernel);
  for (int process = 0; process < 2; ++process) {
    EXPECT_EQ(said_by(files.process(), files.load()), "the kernel's process was killed by signal 6 (Aborted)");
  }
}

TEST_F(PythonProcess, SaysWhatHoldsIt) {
  const Kernel kernel = kernel_of("def mine(a, b1, b2): pass\n");
  const PythonFiles files(kernel);
  const KernelProcess process(files.process(), files.load());
  EXPECT_TRUE(process.confined().whole()) << process.confined().missing();
  EXPECT_EQ(process.confined().protections.size(), 5U);
}

}  // namespace
}  // namespace thresher::arena::user_kernels
