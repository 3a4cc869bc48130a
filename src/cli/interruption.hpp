#pragma once
/// What is left behind by a command that is interrupted.

namespace thresher::cli {

/// From now on an interruption (SIGINT, SIGTERM, SIGHUP, unless it is ignored) removes files that are half written
/// before it ends the process.
void leave_no_temporary_files();

}  // namespace thresher::cli
