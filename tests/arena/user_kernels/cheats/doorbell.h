/* The page through which a kernel's process is called, as a kernel finds it: which ring it is, which is done, and which
 * set it is about. */
#include <stdio.h>
#include <string.h>

enum { rung = 0, done = 16, number_of_set = 34 };

static volatile unsigned* doorbell() {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  volatile unsigned* found = nullptr;
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    if (strstr(line, "memfd:thresher") != nullptr && sscanf(line, "%lx-%lx", &begin, &end) == 2 && end - begin == 4096)
      found = (volatile unsigned*)begin;
  }
  if (maps != nullptr) fclose(maps);
  return found;
}
