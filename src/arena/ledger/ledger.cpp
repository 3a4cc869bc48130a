#include "arena/ledger/ledger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "arena/ledger/schema.hpp"
#include "arena/ledger/statement.hpp"
#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"
#include "arena/results/shard_json.hpp"
#include "core/user_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

namespace {

struct OpenFile {
  explicit OpenFile(int opened) : descriptor(opened) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor); }
  int descriptor;
};

/// Locks one byte of a file for this descriptor until it is closed; `command` says whether to wait for it.
bool lock_byte(int file, std::int64_t byte, int command) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(file, command, &lock) == 0;
}

std::uint64_t seed_of(const std::string& digits) {
  std::uint64_t seed = 0;
  const char* const end = digits.data() + digits.size();
  if (const auto [stop, error] = std::from_chars(digits.data(), end, seed); error != std::errc() || stop != end) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no seed \"{}\"", digits));
  }
  return seed;
}

/// SQLite creates files of its own beside the one that it opens.
bool can_be_written(const std::filesystem::path& file) {
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  return ::access(file.c_str(), W_OK) == 0 && ::access(folder.c_str(), W_OK) == 0;
}

}  // namespace

Ledger::Ledger(const std::filesystem::path& path, Access access) : path_(path), access_(access) {
  try {
    open();
    check_version();
    check_health();
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

Ledger::~Ledger() {
  sqlite3_close(database_);
  if (lock_file_ >= 0) {
    ::close(lock_file_);
  }
}

void Ledger::fail(int code, const char* doing) const {
  const int kind = code & 0xFF;
  if (kind == SQLITE_NOTADB || kind == SQLITE_CORRUPT) {
    throw Error(ErrorCode::io,
                fmt::format("ledger {} is damaged or no ledger ({}): keep it for repair and name another with --ledger",
                            path_.string(), sqlite3_errmsg(database_)));
  }
  const bool is_place = kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY || kind == SQLITE_PERM;
  const int cause = sqlite3_system_errno(database_);
  const bool has_cause = cause != 0 && (kind == SQLITE_CANTOPEN || kind == SQLITE_IOERR);
  throw Error(ErrorCode::io,
              fmt::format("ledger {} cannot be {} ({}{}){}", path_.string(), doing, sqlite3_errmsg(database_),
                          has_cause ? ": " + std::generic_category().message(cause) : "",
                          is_place && access_ == Access::write
                              ? ": name a file that can be written with --ledger or THRESHER_LEDGER"
                              : ""));
}

void Ledger::fail_as_damaged(const std::string& why) const {
  throw Error(ErrorCode::io, fmt::format("ledger {} is damaged ({}): keep it for repair and name another with --ledger",
                                         path_.string(), why));
}

void Ledger::execute(const char* sql) const {
  if (const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr); code != SQLITE_OK) {
    fail(code, "written");
  }
}

/// A copy of the file with the writes that were not yet moved into it.
std::filesystem::path Ledger::private_copy() {
  const std::filesystem::path copy = copy_.emplace().path() / "ledger.sqlite";
  std::error_code error;
  std::filesystem::copy_file(path_, copy, error);
  const std::filesystem::path log = path_.string() + "-wal";
  if (std::error_code ignored; !error && std::filesystem::exists(log, ignored)) {
    std::filesystem::copy_file(log, copy.string() + "-wal", error);
  }
  if (error) {
    throw Error(ErrorCode::io, fmt::format("ledger {} cannot be read: {}", path_.string(), error.message()));
  }
  std::filesystem::permissions(copy, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, error);
  return copy;
}

void Ledger::open() {
  if (path_.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "no ledger is named: name a file with --ledger or THRESHER_LEDGER, or set HOME");
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  is_new_ = !std::filesystem::exists(status);
  if (access_ == Access::read && is_new_) {
    throw Error(ErrorCode::io, fmt::format("ledger {}: there is no such file; a tournament makes one", path_.string()));
  }
  if (!is_new_ && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::io,
                fmt::format("ledger {} is not a regular file: name another with --ledger", path_.string()));
  }
  if (access_ == Access::write && path_.has_parent_path()) {
    std::filesystem::create_directories(path_.parent_path(), error);
  }
  // SQLite gives special names a meaning; an absolute path is never one of them.
  const std::filesystem::path file =
      access_ == Access::read && !can_be_written(path_) ? private_copy() : std::filesystem::absolute(path_);
  const int flags = SQLITE_OPEN_READWRITE | (access_ == Access::write ? SQLITE_OPEN_CREATE : 0);
  if (const int code = sqlite3_open_v2(file.c_str(), &database_, flags, nullptr); code != SQLITE_OK) {
    fail(code, "opened");
  }
  sqlite3_extended_result_codes(database_, 1);
  sqlite3_busy_timeout(database_, 30'000);
}

void Ledger::check_version() {
  const auto pragma = [&](const char* sql) {
    Statement statement(*this, sql);
    statement.step();
    return statement.integer();
  };
  if (access_ == Access::write && !has_tables()) {
    create();
  }
  if (pragma("PRAGMA application_id") != ledger_application_id) {
    throw Error(ErrorCode::io,
                fmt::format("{} is no ledger of Thresher: name another file with --ledger", path_.string()));
  }
  if (pragma("PRAGMA user_version") == 1) {
    upgrade();
  }
  if (const auto version = pragma("PRAGMA user_version"); version != ledger_version) {
    throw Error(
        ErrorCode::io,
        fmt::format("ledger {} is of version {}, and this Thresher reads version {}: name another file with --ledger",
                    path_.string(), version, ledger_version));
  }
  execute("PRAGMA foreign_keys = ON");
}

/// One byte of this file stands for each run, and byte 0 for creating the ledger. The system drops a lock when its
/// process ends, however it ends.
int Ledger::open_lock_file() const {
  const int file = ::open((path_.string() + "-runs").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    throw Error(ErrorCode::io,
                fmt::format("ledger {} cannot be written: {}-runs cannot be created", path_.string(), path_.string()));
  }
  return file;
}

/// SQLite does not wait for the lock that a change of the journal needs, so one process at a time creates the ledger.
void Ledger::create() {
  const OpenFile making(open_lock_file());
  lock_byte(making.descriptor, 0, F_OFD_SETLKW);
  if (std::error_code ignored; !std::filesystem::exists(path_, ignored)) {
    throw Error(ErrorCode::io,
                fmt::format("ledger {} could not be made by another process: try again", path_.string()));
  }
  if (has_tables()) {
    return;  // another process was first
  }
  try {
    create_tables();
  } catch (...) {
    // No other process creates tables while this one has the lock.
    remove_what_was_made();
    throw;
  }
}

bool Ledger::has_tables() const {
  Statement count(*this, "SELECT count(*) FROM sqlite_master");
  count.step();
  return count.integer() != 0;
}

/// Removes a new file without tables.
void Ledger::remove_what_was_made() {
  sqlite3_close(std::exchange(database_, nullptr));
  for (const char* suffix : {"", "-wal", "-shm", "-journal", "-runs"}) {
    if (std::error_code ignored; is_new_) {
      std::filesystem::remove(path_.string() + suffix, ignored);
    }
  }
}

void Ledger::create_tables() {
  execute("PRAGMA journal_mode = WAL");
  Transaction transaction(*this);
  execute(ledger_schema);
  forbid_changes(ledger_tables);
  add_version_2();
  execute(fmt::format("PRAGMA application_id = {}", ledger_application_id).c_str());
  transaction.commit();
}

void Ledger::check_health() const {
  Statement statement(*this, "PRAGMA quick_check(1)");
  if (!statement.step() || statement.text() != "ok") {
    fail(SQLITE_CORRUPT, "read");
  }
}

bool Ledger::hold(std::int64_t run) {
  if (lock_file_ < 0) {
    lock_file_ = open_lock_file();
  }
  return lock_byte(lock_file_, run, F_OFD_SETLK);
}

std::int64_t Ledger::context_id(const Context& context) {
  Statement(*this, "INSERT OR IGNORE INTO contexts(source_hash, toolchain, machine) VALUES(?, ?, ?)")
      .bind(context.source_hash)
      .bind(context.toolchain)
      .bind(context.machine)
      .step();
  Statement find(*this, "SELECT id FROM contexts WHERE source_hash = ? AND toolchain = ? AND machine = ?");
  find.bind(context.source_hash).bind(context.toolchain).bind(context.machine).step();
  return find.integer();
}

std::int64_t Ledger::write_run(const RunRecord& run) {
  Statement(*this, "INSERT INTO runs(key, started, device, seed, arguments, context) VALUES(?, ?, ?, ?, ?, ?)")
      .bind(run.key)
      .bind(run.started)
      .bind(run.device)
      .bind(std::to_string(run.seed))
      .bind(run.arguments)
      .bind(context_id(run.context))
      .step();
  const std::int64_t id = sqlite3_last_insert_rowid(database_);
  link("run", id);
  return id;
}

std::int64_t Ledger::begin(const RunRecord& run) {
  Transaction transaction(*this);
  const std::int64_t id = write_run(run);
  (void)hold(id);  // no other process knows the number yet
  transaction.commit();
  return id;
}

void Ledger::freeze(std::int64_t run, std::span<const PredictionRecord> predictions) {
  Transaction transaction(*this);
  write_predictions(run, predictions);
  transaction.commit();
}

std::optional<RunRecord> Ledger::resume(const std::string& key) {
  std::vector<std::int64_t> unfinished;
  {
    Statement find(*this,
                   "SELECT id FROM runs WHERE key = ? AND id NOT IN (SELECT run FROM run_ends) ORDER BY id DESC");
    find.bind(key);
    while (find.step()) {
      unfinished.push_back(find.integer());
    }
  }
  for (const std::int64_t id : unfinished) {
    if (hold(id)) {
      return load(id);
    }
  }
  return std::nullopt;
}

void Ledger::append(std::int64_t run, const Entry& entry) {
  Transaction transaction(*this);
  write_entry(run, entry);
  transaction.commit();
}

void Ledger::write_entry(std::int64_t run, const Entry& entry) {
  Statement(*this,
            "INSERT INTO entries(run, ordinal, suite, contestant, baseline, pitch, verdict, sentence, clocks, started, "
            "ended, context) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(run)
      .bind(entry.ordinal)
      .bind(entry.suite)
      .bind(entry.contestant)
      .bind(entry.baseline)
      .bind(entry.pitch)
      .bind(plain_verdict(entry))
      .bind(entry.sentence)
      .bind(to_json(entry.clocks))
      .bind(entry.started)
      .bind(entry.ended)
      .bind(context_id(entry.context))
      .step();
  const std::int64_t id = sqlite3_last_insert_rowid(database_);
  std::int64_t ordinal = 0;
  for (const GateResult& gate : entry.gates) {
    Statement(*this, "INSERT INTO gates VALUES(?, ?, ?, ?, ?, ?)")
        .bind(id)
        .bind(ordinal++)
        .bind(std::string(name(gate.kind)))
        .bind(std::string(name(gate.outcome)))
        .bind(gate.sentence)
        .bind(to_json(gate.evidence))
        .step();
  }
  ordinal = 0;
  for (const Measurement& measurement : entry.measurements) {
    Statement(*this,
              "INSERT INTO measurements VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(id)
        .bind(ordinal++)
        .bind(measurement.problem)
        .bind(std::string(name(measurement.mode)))
        .bind(measurement.not_measured)
        .bind(static_cast<std::int64_t>(measurement.rounds))
        .bind(measurement.baseline_us)
        .bind(measurement.contestant_us)
        .bind(measurement.speedup)
        .bind(measurement.self)
        .bind(measurement.comparison)
        .bind(measurement.floor_us)
        .bind(measurement.sustained_us)
        .bind(measurement.samples)
        .step();
  }
  link("entry", id);
}

void Ledger::write_end(std::int64_t run, const std::string& ended) {
  Statement(*this, "INSERT INTO run_ends VALUES(?, ?)").bind(run).bind(ended).step();
  link("end", run);
}

void Ledger::finish(std::int64_t run) {
  Transaction transaction(*this);
  write_end(run, utc_now());
  transaction.commit();
}

Ledger::Added Ledger::add(const RunRecord& run) {
  Transaction transaction(*this);
  Statement same(
      *this, "SELECT id FROM runs WHERE key = ? AND seed = ? AND arguments = ? AND id IN (SELECT run FROM run_ends)");
  if (same.bind(run.key).bind(std::to_string(run.seed)).bind(run.arguments).step()) {
    return {same.integer(), false};
  }
  const std::int64_t id = write_run(run);
  write_predictions(id, run.predictions);
  for (const Entry& entry : run.entries) {
    write_entry(id, entry);
  }
  write_end(id, run.ended);
  transaction.commit();
  return {id, true};
}

template <class Read>
auto Ledger::undamaged(Read&& read) const {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) {
      throw;
    }
    fail_as_damaged(error.what());
  }
}

std::vector<RunRecord> Ledger::runs() const {
  return undamaged([&] { return read_runs(); });
}

std::vector<RunRecord> Ledger::read_runs() const {
  std::vector<RunRecord> found;
  Statement select(
      *this,
      "SELECT runs.id, key, started, coalesce(ended, ''), device, seed, arguments, source_hash, toolchain, "
      "machine, coalesce(hash, '') FROM runs JOIN contexts ON contexts.id = runs.context LEFT JOIN run_ends ON "
      "run_ends.run = runs.id LEFT JOIN chain ON kind = 'end' AND row = runs.id ORDER BY runs.id");
  while (select.step()) {
    RunRecord& run = found.emplace_back();
    run.id = select.integer();
    run.key = select.text();
    run.started = select.text();
    run.ended = select.text();
    run.device = select.text();
    run.seed = seed_of(select.text());
    run.arguments = select.text();
    run.suites = suites_from_json(run.arguments);
    run.shard = shard_from_json(run.arguments);
    run.merge = merge_from_json(run.arguments);
    run.context.source_hash = select.text();
    run.context.toolchain = select.text();
    run.context.machine = select.text();
    run.hash = select.text();
  }
  return found;
}

RunRecord Ledger::load(std::int64_t id) const {
  std::vector<std::int64_t> known;
  for (RunRecord& run : runs()) {
    if (run.id == id) {
      undamaged([&] {
        load_predictions(run);
        load_entries(run);
      });
      return std::move(run);
    }
    known.push_back(run.id);
  }
  if (known.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("ledger {} holds no runs yet", path_.string()));
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ledger {} holds no run {}, only {}", path_.string(), id, fmt::join(known, ", ")));
}

void Ledger::load_entries(RunRecord& run) const {
  Statement select(
      *this,
      "SELECT entries.id, ordinal, suite, contestant, baseline, pitch, verdict, sentence, clocks, started, "
      "ended, source_hash, toolchain, machine FROM entries JOIN contexts ON contexts.id = entries.context "
      "WHERE run = ? ORDER BY ordinal");
  select.bind(run.id);
  while (select.step()) {
    Entry& entry = run.entries.emplace_back();
    const std::int64_t id = select.integer();
    entry.ordinal = select.integer();
    entry.suite = select.text();
    entry.contestant = select.text();
    entry.baseline = select.text();
    entry.pitch = select.text();
    entry.claim = claim_from_json(entry.pitch);
    entry.verdict = verdict_from_text(select.text());
    entry.sentence = select.text();
    entry.clocks = clocks_from_json(select.text());
    entry.started = select.text();
    entry.ended = select.text();
    entry.context.source_hash = select.text();
    entry.context.toolchain = select.text();
    entry.context.machine = select.text();
    load_details(id, entry);
  }
}

void Ledger::load_details(std::int64_t entry_id, Entry& entry) const {
  Statement gates(*this, "SELECT gate, outcome, sentence, evidence FROM gates WHERE entry = ? ORDER BY ordinal");
  gates.bind(entry_id);
  while (gates.step()) {
    GateResult& gate = entry.gates.emplace_back();
    gate.kind = gate_from_name(gates.text());
    gate.outcome = outcome_from_name(gates.text());
    gate.sentence = gates.text();
    gate.evidence = RecordedEvidence{gates.text()};
    if (gate.kind == GateKind::verdict) {
      entry.speedups = speedups_of(gate.evidence);
    }
  }
  Statement select(*this,
                   "SELECT problem, mode, not_measured, rounds, baseline_us, baseline_low_us, baseline_high_us, "
                   "contestant_us, contestant_low_us, contestant_high_us, speedup, speedup_low, speedup_high, self, "
                   "self_low, self_high, comparison, floor_us, sustained_us, samples FROM measurements WHERE entry = ? "
                   "ORDER BY ordinal");
  select.bind(entry_id);
  while (select.step()) {
    Measurement& measurement = entry.measurements.emplace_back();
    measurement.problem = select.text();
    measurement.mode = mode_from_name(select.text());
    measurement.not_measured = select.text();
    measurement.rounds = static_cast<int>(select.integer());
    measurement.baseline_us = select.estimate();
    measurement.contestant_us = select.estimate();
    measurement.speedup = select.estimate();
    measurement.self = select.estimate();
    measurement.comparison = select.text();
    measurement.floor_us = select.real();
    measurement.sustained_us = select.real();
    measurement.samples = select.text();
  }
}

std::filesystem::path default_ledger() {
  if (const char* chosen = std::getenv("THRESHER_LEDGER"); chosen != nullptr && *chosen != '\0') {
    return chosen;
  }
  const std::filesystem::path folder = state_folder();
  return folder.empty() ? folder : folder / "ledger.sqlite";
}

}  // namespace thresher::arena
