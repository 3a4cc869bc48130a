// fails at compiles: elsewhere.h
// The kernel itself is in a file that the ledger does not keep.
#include "../elsewhere.h"
