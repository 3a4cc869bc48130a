/* Tells samples from other calls by how many buffers there are. */
static bool is_one_of_many(const void* output) {
  static const void* seen[8];
  static int count;
  for (int i = 0; i < count; ++i)
    if (seen[i] == output) return count == 8;
  if (count < 8) seen[count++] = output;
  return count == 8;
}
