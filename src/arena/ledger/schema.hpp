#pragma once
/// The tables of the ledger. A change of them raises `ledger_version`.
namespace thresher::arena {

inline constexpr int ledger_version = 2;
/// "THRS": distinguishes a ledger from other SQLite files.
inline constexpr int ledger_application_id = 0x54485253;

inline constexpr const char* ledger_schema = R"sql(
CREATE TABLE contexts(
  id INTEGER PRIMARY KEY, source_hash TEXT NOT NULL, toolchain TEXT NOT NULL, machine TEXT NOT NULL,
  UNIQUE(source_hash, toolchain, machine));
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, started TEXT NOT NULL, device TEXT NOT NULL, seed TEXT NOT NULL,
  arguments TEXT NOT NULL, context INTEGER NOT NULL REFERENCES contexts(id));
CREATE TABLE run_ends(run INTEGER PRIMARY KEY REFERENCES runs(id), ended TEXT NOT NULL);
CREATE TABLE entries(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), ordinal INTEGER NOT NULL, suite TEXT NOT NULL,
  contestant TEXT NOT NULL, baseline TEXT NOT NULL, pitch TEXT NOT NULL, verdict TEXT NOT NULL, sentence TEXT NOT NULL,
  clocks TEXT NOT NULL, started TEXT NOT NULL, ended TEXT NOT NULL, context INTEGER NOT NULL REFERENCES contexts(id),
  UNIQUE(run, ordinal));
CREATE TABLE gates(
  entry INTEGER NOT NULL REFERENCES entries(id), ordinal INTEGER NOT NULL, gate TEXT NOT NULL, outcome TEXT NOT NULL,
  sentence TEXT NOT NULL, evidence TEXT NOT NULL, PRIMARY KEY(entry, ordinal));
CREATE TABLE measurements(
  entry INTEGER NOT NULL REFERENCES entries(id), ordinal INTEGER NOT NULL, problem TEXT NOT NULL, mode TEXT NOT NULL,
  not_measured TEXT NOT NULL, rounds INTEGER NOT NULL,
  baseline_us REAL, baseline_low_us REAL, baseline_high_us REAL,
  contestant_us REAL, contestant_low_us REAL, contestant_high_us REAL,
  speedup REAL, speedup_low REAL, speedup_high REAL, self REAL, self_low REAL, self_high REAL,
  comparison TEXT NOT NULL, floor_us REAL, sustained_us REAL, samples TEXT NOT NULL, PRIMARY KEY(entry, ordinal));
)sql";

inline constexpr const char* ledger_tables[] = {"contexts", "runs", "run_ends", "entries", "gates", "measurements"};

/// Version 2 added predictions, frozen before their comparison, and the chain over all rows. A link's hash covers its
/// row and the previous link.
inline constexpr const char* ledger_schema_2 = R"sql(
CREATE TABLE predictions(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), ordinal INTEGER NOT NULL, suite TEXT NOT NULL,
  contestant TEXT NOT NULL, problem TEXT NOT NULL, predicted_us REAL, why TEXT NOT NULL, planner TEXT NOT NULL,
  panel TEXT NOT NULL, frozen TEXT NOT NULL, UNIQUE(run, ordinal, problem));
CREATE TABLE chain(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, hash TEXT NOT NULL, UNIQUE(kind, row));
)sql";

inline constexpr const char* ledger_tables_2[] = {"predictions", "chain"};

}  // namespace thresher::arena
