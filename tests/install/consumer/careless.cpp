// Code that the compiler warns of, which is nobody's business but its author's.
#include "thresher/thresher.hpp"

int careless(int unused) {
  int thresher = 0;
  for (unsigned int thresher = 0; thresher < -1; ++thresher) {
  }
  return thresher;
}
