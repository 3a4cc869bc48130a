#include "runtime/process_table.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace thresher::runtime {
namespace {

/// A path in /proc, built from its parts.
class Path {
 public:
  Path& operator<<(const char* text) noexcept {
    for (; *text != '\0' && length_ + 1 < text_.size(); ++text) {
      text_[length_++] = *text;
    }
    return *this;
  }
  Path& operator<<(pid_t number) noexcept {
    std::array<char, 16> digits{};
    std::size_t at = digits.size() - 1;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0 && at > 0);
    return *this << &digits[at];
  }
  [[nodiscard]] const char* text() const noexcept { return text_.data(); }

 private:
  std::array<char, 128> text_{};
  std::size_t length_ = 0;
};

/// An open file of /proc.
class File {
 public:
  explicit File(const Path& path, int flags = 0) noexcept : file_(::open(path.text(), O_RDONLY | O_CLOEXEC | flags)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }
  [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }
  [[nodiscard]] std::size_t read(std::span<char> buffer) noexcept {
    const ssize_t got = file_ < 0 ? 0 : ::read(file_, buffer.data(), buffer.size());
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  [[nodiscard]] std::size_t list(std::span<char> buffer) noexcept {
    const long got = file_ < 0 ? 0 : ::syscall(SYS_getdents64, file_, buffer.data(), buffer.size());
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

 private:
  int file_;
};

/// Calls `visit` with each number among the names of a folder until it returns false. False when the folder is missing.
template <class Visit>
bool for_each_number(const Path& folder, Visit visit) noexcept {
  constexpr std::size_t length_at = 16;  // of a linux_dirent64: 8 of its inode, 8 of its offset
  constexpr std::size_t name_at = 19;    // 2 of its length, 1 of its type
  File file(folder, O_DIRECTORY);
  alignas(8) std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = file.list(buffer)) > 0;) {
    for (std::size_t at = 0; at < got;) {
      std::uint16_t length = 0;
      std::memcpy(&length, &buffer[at + length_at], sizeof length);
      pid_t number = 0;
      const char* digit = &buffer[at + name_at];
      for (; *digit >= '0' && *digit <= '9'; ++digit) {
        number = number * 10 + (*digit - '0');
      }
      if (*digit == '\0' && !visit(number)) {
        return true;
      }
      at += length;
    }
  }
  return file.is_open();
}

struct Stat {
  char state = 'X';  ///< a process that has ended
  pid_t parent = 0;
};

/// /proc/N/stat: "N (name) S parent …", where the name may hold any characters.
Stat stat_of(const Path& path) noexcept {
  std::array<char, 512> buffer{};
  File file(path);
  const std::size_t got = file.read(std::span(buffer).first(buffer.size() - 1));
  const char* const end = buffer.data() + got;
  const char* after = end;
  for (const char* at = buffer.data(); at != end; ++at) {
    after = *at == ')' ? at : after;
  }
  Stat stat;
  if (end - after > 4) {
    stat.state = after[2];
    for (const char* digit = after + 4; *digit >= '0' && *digit <= '9'; ++digit) {
      stat.parent = stat.parent * 10 + (*digit - '0');
    }
  }
  return stat;
}

bool holds(std::span<const pid_t> list, pid_t process) noexcept {
  return std::find(list.begin(), list.end(), process) != list.end();
}

/// Adds the children of one thread. False when this kernel does not list them.
bool add_children_of_thread(pid_t process, pid_t thread, std::span<pid_t> out, std::size_t& count) noexcept {
  File file(Path() << "/proc/" << process << "/task/" << thread << "/children");
  std::array<char, 1024> buffer{};
  pid_t number = 0;
  for (std::size_t got = 0; (got = file.read(buffer)) > 0;) {
    for (std::size_t at = 0; at < got; ++at) {
      if (buffer[at] >= '0' && buffer[at] <= '9') {
        number = number * 10 + (buffer[at] - '0');
      } else if (number > 0) {
        if (count < out.size() && !holds(out.first(count), number)) {
          out[count++] = number;
        }
        number = 0;
      }
    }
  }
  return file.is_open();
}

/// Whether this kernel lists the children of a thread (CONFIG_PROC_CHILDREN).
bool lists_children() noexcept { return File(Path() << "/proc/self/task/" << ::getpid() << "/children").is_open(); }

std::size_t descendants_by_list(pid_t process, std::span<pid_t> out) noexcept {
  std::size_t count = 0;
  std::size_t seen = 0;
  for (pid_t at = process;; at = out[seen++]) {
    (void)for_each_number(Path() << "/proc/" << at << "/task", [&](pid_t thread) {
      (void)add_children_of_thread(at, thread, out, count);
      return true;
    });
    if (seen == count) {
      return count;
    }
  }
}

/// Searches all processes until a pass finds no new one.
std::size_t descendants_by_search(pid_t process, std::span<pid_t> out, bool children_alone) noexcept {
  std::size_t count = 0;
  for (std::size_t before = out.size() + 1; before != count;) {
    before = count;
    (void)for_each_number(Path() << "/proc", [&](pid_t other) {
      const pid_t parent = stat_of(Path() << "/proc/" << other << "/stat").parent;
      const bool is_one = parent == process || (!children_alone && holds(out.first(count), parent));
      if (is_one && count < out.size() && !holds(out.first(count), other)) {
        out[count++] = other;
      }
      return true;
    });
  }
  return count;
}

}  // namespace

std::size_t children_of_caller(std::span<pid_t> out) noexcept {
  const pid_t own = ::getpid();
  std::size_t count = 0;
  return add_children_of_thread(own, own, out, count) ? count : descendants_by_search(own, out, true);
}

std::size_t descendants_of(pid_t process, std::span<pid_t> out) noexcept {
  return lists_children() ? descendants_by_list(process, out) : descendants_by_search(process, out, false);
}

bool is_stopped(pid_t process) noexcept {
  bool all = true;
  (void)for_each_number(Path() << "/proc/" << process << "/task", [&](pid_t thread) {
    const char state = stat_of(Path() << "/proc/" << process << "/task/" << thread << "/stat").state;
    all = state == 'T' || state == 't' || state == 'Z' || state == 'X';
    return all;
  });
  return all;
}

}  // namespace thresher::runtime
