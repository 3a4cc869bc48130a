#pragma once
/// The ledger: an append-only SQLite file of predictions and measurements. Several tournaments may write to one ledger
/// at once.
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena/results/record.hpp"
#include "runtime/process.hpp"

struct sqlite3;

namespace thresher::arena {

/// The result of a check of the ledger's chain of hashes.
struct Verification {
  std::size_t links = 0;
  std::string head;                 ///< hash of the last link, over the whole ledger
  std::vector<std::string> faults;  ///< one sentence for each row that was changed, removed or inserted
};

class Ledger {
 public:
  enum class Access { read, write };

  /// Opens the file; `write` creates it, and its folder, when it is missing. Throws Error(io) with one sentence for a
  /// file that is missing (`read`), is no ledger, has another version, is damaged, or cannot be written. SQLite writes
  /// beside a file that it reads: where it may not, a private copy is read.
  Ledger(const std::filesystem::path& path, Access access);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  /// Starts a run and holds it: no other process can resume it while this object lives. `run.id` is ignored.
  [[nodiscard]] std::int64_t begin(const RunRecord& run);
  /// The latest unfinished run with that key that no living process holds, now held by this object.
  [[nodiscard]] std::optional<RunRecord> resume(const std::string& key);
  /// One transaction: all of the predictions or nothing. `hash` is ignored.
  void freeze(std::int64_t run, std::span<const PredictionRecord> predictions);
  /// One transaction: all of the entry or nothing.
  void append(std::int64_t run, const Entry& entry);
  void finish(std::int64_t run);
  struct Added {
    std::int64_t run = 0;
    /// False: the ledger had a finished run with that key, seed and arguments, and nothing was written.
    bool is_new = true;
  };
  /// One transaction: all of a finished run or nothing. `run.id` and all hashes are ignored.
  [[nodiscard]] Added add(const RunRecord& run);

  /// Recomputes the chain: every row with the hash of the row before it.
  [[nodiscard]] Verification verify() const;

  /// All runs without predictions and entries, the newest last.
  [[nodiscard]] std::vector<RunRecord> runs() const;
  /// The run with all predictions and entries. Throws Error(invalid_argument) naming the existing runs.
  [[nodiscard]] RunRecord load(std::int64_t run) const;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  class Statement;
  friend class Transaction;
  void open();
  [[nodiscard]] std::filesystem::path private_copy();
  void check_version();
  void create();
  [[nodiscard]] bool has_tables() const;
  void create_tables();
  void remove_what_was_made();
  void upgrade();
  void refuse_tables_of_version_2() const;
  void add_version_2() const;
  void forbid_changes(std::span<const char* const> tables) const;
  /// Appends the chain's next link, for a row of `kind` that the running transaction has written.
  void link(const std::string& kind, std::int64_t row);
  void link_all_rows();
  /// The whole content of the row, as text; empty when it is missing.
  [[nodiscard]] std::string content(const std::string& kind, std::int64_t row) const;
  [[nodiscard]] std::string describe(const std::string& kind, std::int64_t row) const;
  void find_unlinked(Verification& found) const;
  void find_late_predictions(Verification& found) const;
  [[nodiscard]] std::int64_t write_run(const RunRecord& run);
  void write_predictions(std::int64_t run, std::span<const PredictionRecord> predictions);
  void write_entry(std::int64_t run, const Entry& entry);
  void write_end(std::int64_t run, const std::string& ended);
  void load_predictions(RunRecord& run) const;
  void check_health() const;
  [[nodiscard]] int open_lock_file() const;
  [[nodiscard]] bool hold(std::int64_t run);
  [[nodiscard]] std::int64_t context_id(const Context& context);
  void load_entries(RunRecord& run) const;
  void load_details(std::int64_t entry_id, Entry& entry) const;
  void execute(const char* sql) const;
  [[noreturn]] void fail(int code, const char* doing) const;
  [[noreturn]] void fail_as_damaged(const std::string& why) const;
  [[nodiscard]] std::vector<RunRecord> read_runs() const;
  /// Reads rows with `read`; content that Thresher never writes counts as damage.
  template <class Read>
  auto undamaged(Read&& read) const;

  std::filesystem::path path_;
  Access access_;
  bool is_new_ = false;                             ///< no file was there
  std::optional<runtime::TemporaryFolder> copy_{};  ///< of a file that is read-only
  sqlite3* database_ = nullptr;
  int lock_file_ = -1;
};

/// $THRESHER_LEDGER, else thresher/ledger.sqlite in the user's state folder ($XDG_STATE_HOME or ~/.local/state); empty
/// when none of them is set.
[[nodiscard]] std::filesystem::path default_ledger();

}  // namespace thresher::arena
