#pragma once
/// Streams, events and graphs of one GPU. A `Stream` with a null handle is the legacy default stream.
#include <cstddef>
#include <functional>
#include <utility>

#include "thresher/device.hpp"

namespace thresher::runtime {

/// Waits until all work enqueued on `stream` is done. A failed kernel is reported here, as Error(device).
void synchronize(Stream stream, int ordinal);

/// A stream that does not synchronise with the default stream.
class OwnedStream {
 public:
  explicit OwnedStream(int ordinal);
  OwnedStream(OwnedStream&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), ordinal_(other.ordinal_) {}
  OwnedStream& operator=(OwnedStream&&) = delete;
  ~OwnedStream();

  [[nodiscard]] Stream get() const noexcept { return {handle_}; }
  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  void synchronize() const { runtime::synchronize(get(), ordinal_); }

 private:
  void* handle_ = nullptr;
  int ordinal_ = 0;
};

/// A point in a stream with a time stamp.
class Event {
 public:
  explicit Event(int ordinal);
  Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), ordinal_(other.ordinal_) {}
  Event& operator=(Event&&) = delete;
  ~Event();

  void record(Stream stream) const;
  void synchronize() const;
  /// Makes later work on `stream` wait for this event.
  void block(Stream stream) const;
  /// Microseconds from `start` to this event; both must be recorded. Waits for this one.
  [[nodiscard]] double elapsed_us_since(const Event& start) const;

 private:
  void* handle_ = nullptr;
  int ordinal_ = 0;
};

/// Work captured once and launched many times.
class Graph {
 public:
  /// Captures the work that `enqueue` puts on its stream. An allocation or a synchronisation by this thread inside
  /// `enqueue` is an Error(device); so is an empty capture.
  static Graph capture(int ordinal, const std::function<void(Stream)>& enqueue);
  Graph(Graph&& other) noexcept
      : executable_(std::exchange(other.executable_, nullptr)), nodes_(other.nodes_), ordinal_(other.ordinal_) {}
  Graph& operator=(Graph&&) = delete;
  ~Graph();

  void launch(Stream stream) const;
  /// The number of its kernels, copies and fills.
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }

 private:
  Graph(void* executable, std::size_t nodes, int ordinal) : executable_(executable), nodes_(nodes), ordinal_(ordinal) {}
  void* executable_ = nullptr;
  std::size_t nodes_ = 0;
  int ordinal_ = 0;
};

/// Loads the kernels that `enqueue` launches without running them. A lazily loading driver would otherwise load them in
/// the first call, which may be inside a caller's graph capture. Pointers given to them are not accessed.
void load_kernels(int ordinal, const std::function<void(Stream)>& enqueue);

}  // namespace thresher::runtime
