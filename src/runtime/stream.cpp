#include "runtime/stream.hpp"

#include "runtime/driver.hpp"
#include "runtime/driver_api.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

CUevent event_handle(void* handle) { return static_cast<CUevent>(handle); }

/// A captured, not yet instantiated graph.
struct Captured {
  CUgraph graph = nullptr;

  Captured(CUstream stream, CUstreamCaptureMode mode, const std::function<void(Stream)>& enqueue) {
    check(driver().stream_begin_capture(stream, mode), "begin a graph capture");
    try {
      enqueue(Stream{stream});
    } catch (...) {
      driver().stream_end_capture(stream, &graph);
      destroy();
      throw;
    }
    check(driver().stream_end_capture(stream, &graph), "end a graph capture");
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { destroy(); }

 private:
  void destroy() const {
    if (graph != nullptr) {
      driver().graph_destroy(graph);
    }
  }
};

}  // namespace

void synchronize(Stream stream, int ordinal) {
  const ContextGuard guard(ordinal);
  check(driver().stream_synchronize(stream_handle(stream.handle)), "finish the work on a stream");
}

OwnedStream::OwnedStream(int ordinal) : ordinal_(ordinal) {
  const ContextGuard guard(ordinal);
  CUstream stream = nullptr;
  check(driver().stream_create(&stream, CU_STREAM_NON_BLOCKING), "create a stream");
  handle_ = stream;
}

OwnedStream::~OwnedStream() {
  if (handle_ != nullptr) {
    const ContextGuard guard(ordinal_);
    driver().stream_destroy(stream_handle(handle_));
  }
}

Event::Event(int ordinal) : ordinal_(ordinal) {
  const ContextGuard guard(ordinal);
  CUevent event = nullptr;
  check(driver().event_create(&event, CU_EVENT_DEFAULT), "create an event");
  handle_ = event;
}

Event::~Event() {
  if (handle_ != nullptr) {
    const ContextGuard guard(ordinal_);
    driver().event_destroy(event_handle(handle_));
  }
}

void Event::record(Stream stream) const {
  const ContextGuard guard(ordinal_);
  check(driver().event_record(event_handle(handle_), stream_handle(stream.handle)), "record an event");
}

void Event::synchronize() const {
  const ContextGuard guard(ordinal_);
  check(driver().event_synchronize(event_handle(handle_)), "wait for an event");
}

void Event::block(Stream stream) const {
  const ContextGuard guard(ordinal_);
  check(driver().stream_wait_event(stream_handle(stream.handle), event_handle(handle_), CU_EVENT_WAIT_DEFAULT),
        "make a stream wait for an event");
}

double Event::elapsed_us_since(const Event& start) const {
  synchronize();
  float milliseconds = 0;
  check(driver().event_elapsed(&milliseconds, event_handle(start.handle_), event_handle(handle_)),
        "read the time between two events");
  return static_cast<double>(milliseconds) * 1e3;
}

Graph Graph::capture(int ordinal, const std::function<void(Stream)>& enqueue) {
  const ContextGuard guard(ordinal);
  const OwnedStream stream(ordinal);
  const CUstream handle = stream_handle(stream.get().handle);
  const Captured captured(handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, enqueue);
  std::size_t nodes = 0;
  check(driver().graph_nodes(captured.graph, nullptr, &nodes), "count the nodes of a graph");
  if (nodes == 0) {
    throw Error(ErrorCode::device, "nothing was enqueued on the stream of a graph capture");
  }
  CUgraphExec executable = nullptr;
  check(driver().graph_instantiate(&executable, captured.graph, 0), "instantiate a graph");
  Graph graph(executable, nodes, ordinal);
  check(driver().graph_upload(executable, handle), "upload a graph");
  stream.synchronize();
  return graph;
}

Graph::~Graph() {
  if (executable_ != nullptr) {
    const ContextGuard guard(ordinal_);
    driver().graph_exec_destroy(static_cast<CUgraphExec>(executable_));
  }
}

void Graph::launch(Stream stream) const {
  const ContextGuard guard(ordinal_);
  check(driver().graph_launch(static_cast<CUgraphExec>(executable_), stream_handle(stream.handle)), "launch a graph");
}

void load_kernels(int ordinal, const std::function<void(Stream)>& enqueue) {
  const ContextGuard guard(ordinal);
  const OwnedStream stream(ordinal);
  const Captured captured(stream_handle(stream.get().handle), CU_STREAM_CAPTURE_MODE_RELAXED, enqueue);
}

}  // namespace thresher::runtime
