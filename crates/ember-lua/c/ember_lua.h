/*
 * Ember's additions to Lua: the hash of strings and numbers, and a count of a script's work.
 *
 * The count is the interpreter's own number of instructions left until the hook is called (`hookcount`). Operations that
 * take longer than an instruction subtract more units from the count, one for every few nanoseconds:
 *
 *   ember_charge  never calls the hook, so it may be used anywhere. The hook is called before the next instruction.
 *   ember_step    may call the hook, which may raise an error. It is used in loops of C functions, where an error may be
 *                 raised and no pointer into Lua's stack is held.
 *
 * `lstate.h` includes this file after its own declarations.
 */

#ifndef ember_lua_h
#define ember_lua_h

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The units of work for copying, comparing or hashing `bytes` bytes. */
#define EMBER_BYTES(bytes) ((size_t)(bytes) >> 6)

/* The units of work for parsing a number of `bytes` digits. */
#define EMBER_DIGITS(bytes) ((size_t)(bytes) >> 3)

/* The maximum number of bytes that one collector step visits, regardless of `setstepmul`: some milliseconds. */
#define EMBER_COLLECTED_BYTES_MAX (1024 * 1024)

/*
 * The maximum recursion depth of the pattern matcher: one call for each open `?`, `*`, `-`, `(` and `)`. Later versions of
 * Lua allow 200. At 300 bytes per call this leaves most of a thread's stack free.
 */
#define EMBER_MATCH_DEPTH_MAX 1000

/* Results of at least EMBER_JOINED_MIN bytes are built in pieces of EMBER_PIECE bytes: some microseconds each. */
#define EMBER_JOINED_MIN (1024 * 1024)
#define EMBER_PIECE (64 * 1024)

LUAI_FUNC void ember_ask (lua_State *L);
LUAI_FUNC TString *ember_join (lua_State *L, int count, int last, size_t length);
LUAI_FUNC int ember_repeat (lua_State *L, const char *bytes, size_t length, size_t count);
LUAI_FUNC int ember_compare (lua_State *L, const TString *left, const TString *right);

static inline void ember_charge (lua_State *L, size_t units) {
  L->hookcount = L->hookcount > 0 && units < (size_t)L->hookcount ? L->hookcount - (int)units : 1;
}

static inline void ember_step (lua_State *L, size_t units) {
  if (L->hookcount > 0 && units < (size_t)L->hookcount)
    L->hookcount -= (int)units;
  else
    ember_ask(L);
}

/* Charges for parsing a string that is used as a number, which happens at each use. */
static inline void ember_charge_number (lua_State *L, const TValue *value) {
  if (ttisstring(value))
    ember_charge(L, EMBER_DIGITS(tsvalue(value)->len));
}

/*
 * The hash. Each 16 bytes are mixed with secrets and multiplied to 128 bits, whose halves are folded into one word.
 * Collisions cannot be predicted without the secrets, and all bytes of a string have equal influence.
 *
 * The result is multiplied and folded once more, by a constant (as in foldhash): after one multiplication by a secret
 * with few significant bits, which one process in 1,500 has, the low bits of short strings and of numbers are almost
 * equal.
 */

/* Digits of pi: an odd number with ones in all parts. */
#define EMBER_FINAL_FACTOR UINT64_C(0x452821E638D01377)

LUAI_DATA uint64_t ember_secrets[4];

LUAI_FUNC uint64_t ember_hash_all_but_16 (const char *bytes, size_t length, uint64_t state);

static inline uint64_t ember_mix (uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
  uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
  uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  uint64_t carried = a_low * b_high + (uint32_t)middle;
  return (a * b) ^ (a_high * b_high + (middle >> 32) + (carried >> 32));
#endif
}

static inline uint64_t ember_read_8 (const char *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof(word));
  return word;
}

static inline uint64_t ember_read_4 (const char *bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof(word));
  return word;
}

static inline unsigned int ember_hash (const char *bytes, size_t length) {
  /* Strings of up to 16 bytes are read in two words that overlap, so the hash must include their length. */
  uint64_t state = ember_secrets[0] + length * ember_secrets[2], first = 0, last = 0;
  if (length >= 8) {
    if (length > 16)
      state = ember_hash_all_but_16(bytes, length, state);
    first = ember_read_8(length > 16 ? bytes + length - 16 : bytes);
    last = ember_read_8(bytes + length - 8);
  }
  else if (length >= 4) {
    first = ember_read_4(bytes);
    last = ember_read_4(bytes + length - 4);
  }
  else if (length > 0) {
    const unsigned char *byte = (const unsigned char *)bytes;
    first = ((uint64_t)byte[0] << 16) | ((uint64_t)byte[length >> 1] << 8) | byte[length - 1];
  }
  return (unsigned int)ember_mix(ember_mix(first ^ ember_secrets[1], last ^ state), EMBER_FINAL_FACTOR);
}

static inline unsigned int ember_hash_number (lua_Number number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof(bits));
  return (unsigned int)ember_mix(ember_mix(bits ^ ember_secrets[0], ember_secrets[1]), EMBER_FINAL_FACTOR);
}

#endif
