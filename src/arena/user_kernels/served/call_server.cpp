#include "arena/user_kernels/served/call_server.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <unordered_map>

#include "arena/user_kernels/line/doorbell.hpp"
#include "arena/user_kernels/line/kernel_confinement.hpp"
#include "arena/user_kernels/line/wire.hpp"
#include "arena/user_kernels/served/served.hpp"
#include "runtime/confinement.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// Memory that the judge shares, mapped here.
class Pieces {
 public:
  void add(std::uint32_t number, std::size_t bytes, int memory) {
    // Maps all pages now, so that no call touches one first.
    void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
    ::close(memory);
    if (base == MAP_FAILED) {
      throw Error(ErrorCode::out_of_memory, "the judge's memory cannot be mapped: free some memory");
    }
    pieces_[number] = {static_cast<std::byte*>(base), bytes};
  }
  void remove(std::uint32_t number) {
    const Piece piece = pieces_.at(number);
    ::munmap(piece.base, piece.bytes);
    pieces_.erase(number);
  }
  [[nodiscard]] std::uintptr_t address(std::uintptr_t place) const {
    const auto number = static_cast<std::uint32_t>((place >> place_bits) - 1);
    return reinterpret_cast<std::uintptr_t>(pieces_.at(number).base) +
           (place & ((std::uintptr_t{1} << place_bits) - 1));
  }
  [[nodiscard]] std::byte* first() const { return pieces_.contains(0) ? pieces_.at(0).base : nullptr; }

 private:
  struct Piece {
    std::byte* base;
    std::size_t bytes;
  };
  std::unordered_map<std::uint32_t, Piece> pieces_;
};

void add_calls(Served& served, const std::unordered_map<std::uint32_t, CallLayout>& layouts, const Pieces* pieces,
               Reader& question) {
  const auto binding = question.get<std::uint32_t>();
  const CallLayout& layout = layouts.at(binding);
  while (!question.at_end()) {
    const std::span<const std::byte> told = question.get_bytes(layout.bytes);
    std::vector<std::byte> call(told.begin(), told.end());
    if (pieces != nullptr) {
      translate_addresses(call, layout.addresses, [&](std::uintptr_t place) { return pieces->address(place); });
    }
    served.add_call(binding, std::move(call));
  }
}

class Server {
 public:
  Server() : doorbell_(doorbell_descriptor) { ::close(doorbell_descriptor); }

  [[noreturn]] void serve() {
    for (std::uint32_t ring = 0;;) {
      ring = await_change(doorbell_->rung, ring);
      switch (doorbell_->what) {
        case Doorbell::What::message: hear(); break;
        case Doorbell::What::get_ready: tell(doorbell_->done, ring); break;
        case Doorbell::What::call:
          doorbell_->status.store(make_call() ? 0 : 1);
          tell(doorbell_->done, ring);
          break;
      }
    }
  }

 private:
  /// False when the call failed; a message on the line then says why.
  bool make_call() {
    try {
      served_->call(doorbell_->binding, doorbell_->set);
      return true;
    } catch (const Error& error) {
      refuse(0, error.code(), error.what());
    } catch (const std::exception& error) {
      refuse(0, ErrorCode::internal, error.what());
    }
    return false;
  }

  void hear() {
    Received received = receive_message(line_descriptor, true, Descriptors::taken);
    if (received.what != Received::What::message) {
      ::_exit(0);  // the judge is gone
    }
    Reader question(std::move(received.bytes), std::move(received.descriptors));
    const auto number = question.get<std::uint32_t>();
    try {
      Writer answer;
      answer.put(number).put(std::uint32_t{0});
      take(question.get<Ask>(), question, answer);
      say(answer);
    } catch (const Error& error) {
      refuse(number, error.code(), error.what());
    } catch (const std::exception& error) {
      refuse(number, ErrorCode::internal, error.what());
    }
  }

  void take(Ask ask, Reader& question, Writer& answer) {
    switch (ask) {
      case Ask::hello: return;
      case Ask::confine: confine(question, answer); return;
      case Ask::load_library: served_ = serve_library(question); return;
      case Ask::load_strategy: served_ = serve_strategy(question); return;
      case Ask::load_cubin:
        served_ = serve_cubin(question);
        addresses_are_places_ = false;
        return;
      case Ask::share: {
        const auto number = question.get<std::uint32_t>();
        const auto bytes = question.get<std::uint64_t>();
        pieces_.add(number, bytes, question.descriptor());
        return;
      }
      case Ask::unshare: pieces_.remove(question.get<std::uint32_t>()); return;
      case Ask::bind: {
        const auto binding = question.get<std::uint32_t>();
        layouts_[binding] = read_layout(question);
        served_->bind(binding, question);
        return;
      }
      case Ask::add_calls: add_calls(*served_, layouts_, addresses_are_places_ ? &pieces_ : nullptr, question); return;
      case Ask::complete: served_->complete(question.get<std::uint32_t>()); return;
      case Ask::unbind: served_->unbind(question.get<std::uint32_t>()); return;
      default: served_->answer(ask, question, pieces_.first(), answer);
    }
  }

  static void refuse(std::uint32_t number, ErrorCode code, const std::string& sentence) {
    Writer answer;
    answer.put(number).put(std::uint32_t{1}).put(static_cast<std::uint32_t>(code));
    answer.put(sentence.substr(0, max_sentence_bytes));
    say(answer);
  }

  static void say(const Writer& answer) {
    if (!send_message(line_descriptor, answer.bytes())) {
      ::_exit(1);
    }
  }

  SharedDoorbell doorbell_;
  Pieces pieces_;
  std::unordered_map<std::uint32_t, CallLayout> layouts_;  // of bindings
  std::unique_ptr<Served> served_;
  bool addresses_are_places_ = true;
};

}  // namespace

void Served::answer(Ask, Reader&, std::byte*, Writer&) {
  throw Error(ErrorCode::internal, "a kernel's process was asked what it does not know");
}

void confine(Reader& question, Writer& answer) {
  const std::string folder = question.text();
  const auto gpu = question.get<std::int32_t>();
  const bool opens_first = question.get<std::uint8_t>() != 0;
  const auto open_gpu = [&] { const runtime::ContextGuard keeps_its_context(gpu); };
  if (gpu >= 0 && opens_first) {
    open_gpu();
  }
  runtime::Confinement wanted = confinement_of_kernels({folder});
  wanted.devices = gpu >= 0 ? runtime::gpu_device_files() : std::vector<std::filesystem::path>{};
  const runtime::Confined confined = runtime::confine_self(wanted);
  if (gpu >= 0 && !opens_first) {
    open_gpu();
  }
  put(answer, confined);
}

void serve_calls() { Server().serve(); }

}  // namespace thresher::arena::user_kernels
