// A volume in memory with known limits, for docs/src/explanation/why-dd-lies.md: nbdkit cc docs/dd-volume.c KEY=NUMBER...
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define BLOCK 65536
#define SLICE 100000000 // ns: what a limiter did not give in a tenth of a second it gives later
typedef int64_t i64;

static struct { const char *key; i64 value; } options[] = {
  { "size", 6LL << 30 },  // bytes
  { "latency", 0 },       // us that each request takes by itself
  { "iops", 0 },          // requests a second, of whatever size; 0: no limit
  { "bandwidth", 0 },     // bytes a second; 0: no limit
  { "credit", 0 },        // bytes above bandwidth at first, earned again at bandwidth when idle
  { "burst", 0 },         // bytes a second while there is credit; 0: no limit
  { "cache", 0 },         // bytes of write-back cache before a disk that seeks; 0: all is cache
  { "seek", 5000 },       // us of that disk for a block that does not follow the last one, else 200 MB/s
  { "flush", 0 },         // us that a flush takes
};
enum { SIZE, LATENCY, IOPS, BANDWIDTH, CREDIT, BURST, CACHE, SEEK, FLUSH, COUNT };
#define IS(name) (options[name].value)

static char *disk;
static i64 *cached; // which block lies in each place of the cache; 0: none
static i64 io_free, byte_free, burst_free, disk_free, last = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static i64 now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static i64 max(i64 a, i64 b) { return a > b ? a : b; }

static void sleep_until(i64 due) {
  struct timespec t = { due / 1000000000, due % 1000000000 };
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0);
}

// A limiter is free again `cost` ns after it was free, or after now; it lags behind now by no more than `credit` ns.
static i64 take(i64 *is_free, i64 at, i64 cost, i64 credit) { return *is_free = max(*is_free, at - credit) + cost; }

static void reach_disk(i64 block, i64 at) {
  take(&disk_free, at, block == last + 1 ? BLOCK * 5 : IS(SEEK) * 1000, 0);
  last = block;
}

static void wait_for_turn(i64 offset, i64 bytes, int reads) {
  pthread_mutex_lock(&lock);
  i64 at = now(), due = at;
  if (IS(IOPS)) due = max(due, take(&io_free, at, 1000000000 / IS(IOPS), SLICE));
  if (IS(BANDWIDTH)) {
    i64 credit = IS(CREDIT) * 1000 / (IS(BANDWIDTH) / 1000000);
    due = max(due, take(&byte_free, at, bytes * 1000000000 / IS(BANDWIDTH), max(credit, SLICE)));
  }
  if (IS(BURST)) due = max(due, take(&burst_free, at, bytes * 1000000000 / IS(BURST), SLICE));
  for (i64 block = offset / BLOCK; cached && block * BLOCK < offset + bytes; block++) {
    i64 *place = &cached[block % (IS(CACHE) / BLOCK)];
    if (*place == block + 1) continue;
    if (*place) reach_disk(*place - 1, at); // what was there has to be written first
    if (reads) reach_disk(block, at);
    if (*place || reads) due = max(due, disk_free);
    *place = block + 1;
  }
  pthread_mutex_unlock(&lock);
  sleep_until(due + IS(LATENCY) * 1000);
}

static int config(const char *key, const char *value) {
  for (int i = 0; i < COUNT; i++)
    if (strcmp(key, options[i].key) == 0) return (options[i].value = nbdkit_parse_size(value)) == -1 ? -1 : 0;
  nbdkit_error("no such key: %s", key);
  return -1;
}

static int get_ready(void) {
  disk = calloc(1, IS(SIZE));
  if (IS(CACHE)) cached = calloc(IS(CACHE) / BLOCK, sizeof *cached);
  return disk ? 0 : -1;
}

static void *open_volume(int readonly) { return NBDKIT_HANDLE_NOT_NEEDED; }
static int64_t get_size(void *handle) { return IS(SIZE); }

static int pread_volume(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags) {
  wait_for_turn(offset, count, 1);
  memcpy(buffer, disk + offset, count);
  return 0;
}

static int pwrite_volume(void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags) {
  memcpy(disk + offset, buffer, count);
  wait_for_turn(offset, count, 0);
  return 0;
}

static int flush(void *handle, uint32_t flags) { sleep_until(now() + IS(FLUSH) * 1000); return 0; }

static struct nbdkit_plugin plugin = {
  .name = "volume", .config = config, .get_ready = get_ready, .open = open_volume, .get_size = get_size,
  .pread = pread_volume, .pwrite = pwrite_volume, .flush = flush,
};
NBDKIT_REGISTER_PLUGIN(plugin)
