/*
 * What ember adds to Lua: the hash of strings and numbers, and the count of what a script does.
 *
 * The count is the one that the interpreter keeps anyway: instructions left until the hook is called (`hookcount`). What
 * takes longer than an instruction takes more off it, a unit for some nanoseconds:
 *
 *   ember_charge  never calls the hook, so it may stand anywhere. The hook is called before the next instruction.
 *   ember_step    may call the hook, which may raise an error. It stands in loops of functions in C, where an error may
 *                 be raised and no pointer into Lua's stack is held.
 *
 * `lstate.h` includes this file, behind its own declarations.
 */

#ifndef ember_lua_h
#define ember_lua_h

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Units of work on `bytes` bytes that are copied, compared or hashed at once. */
#define EMBER_BYTES(bytes) ((size_t)(bytes) >> 6)

/* Units of reading a number of `bytes` digits. */
#define EMBER_DIGITS(bytes) ((size_t)(bytes) >> 3)

/* The most bytes that one step of the collector visits, whatever `setstepmul` says: some milliseconds. */
#define EMBER_COLLECTED_BYTES_MAX (1024 * 1024)

/*
 * How deep the matcher of patterns calls itself: once for each `?`, `*`, `-`, `(` and `)` that is open. Later versions of
 * Lua allow 200. At 300 bytes for each call this leaves most of a thread's stack to others.
 */
#define EMBER_MATCH_DEPTH_MAX 1000

/* Strings of at least this many bytes are joined and repeated in pieces of this many: some microseconds each. */
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

/* A string that is used as a number is read again each time. */
static inline void ember_charge_number (lua_State *L, const TValue *value) {
  if (ttisstring(value))
    ember_charge(L, EMBER_DIGITS(tsvalue(value)->len));
}

/*
 * The hash. Each 16 bytes are mixed with secrets and multiplied to 128 bits, whose halves are folded into one word. Who
 * does not know the secrets cannot tell which strings collide; and a string's first byte counts as much as its last.
 */

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
  /* Strings of up to 16 bytes are read in two words that overlap, so their length has to count as well. */
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
  return (unsigned int)ember_mix(first ^ ember_secrets[1], last ^ state);
}

static inline unsigned int ember_hash_number (lua_Number number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof(bits));
  return (unsigned int)ember_mix(bits ^ ember_secrets[0], ember_secrets[1]);
}

#endif
