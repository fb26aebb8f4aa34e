/* Ember's additions to Lua: see ember_lua.h. */

#include <string.h>

#define LUA_CORE

#include "lua.h"

#include "ldebug.h"
#include "ldo.h"
#include "lgc.h"
#include "lmem.h"
#include "lobject.h"
#include "lstate.h"
#include "lstring.h"

void ember_ask (lua_State *L) {
  if (L->hookmask & LUA_MASKCOUNT) {
    resethookcount(L);
    luaD_callhook(L, LUA_HOOKCOUNT, -1);
  }
}

/*
 * Compares two strings by their bytes. strcoll in the locale "C", the only one that the server uses, has the same order,
 * but Lua's loop over strcoll restarts at each zero byte and takes a second for the maximum number of zero bytes.
 */
int ember_compare (lua_State *L, const TString *left, const TString *right) {
  size_t left_length = left->tsv.len, right_length = right->tsv.len;
  size_t shorter = left_length < right_length ? left_length : right_length;
  int order = memcmp(getstr(left), getstr(right), shorter);
  ember_charge(L, EMBER_BYTES(shorter));
  return order != 0 ? order : (left_length > right_length) - (left_length < right_length);
}

/* A long string that is being built: the first member of structs that describe how to build one. */
typedef struct {
  TString *string;
} Building;

/*
 * Allocates a string of `length` bytes, calls `fill` to write the bytes, and interns the string. Until all bytes are
 * written, only this function refers to the memory: the collector does not visit it, and an error frees it.
 */
static TString *build (lua_State *L, size_t length, Pfunc fill, Building *building) {
  stringtable *table = &G(L)->strt;
  TString *built;
  GCObject *same;
  unsigned int hash;
  int status;
  if (length > MAX_SIZET - sizeof(TString) - 1)
    luaM_toobig(L);
  built = (TString *)luaM_malloc(L, sizeof(TString) + length + 1);
  building->string = built;
  status = luaD_rawrunprotected(L, fill, building);
  if (status != 0) {
    luaM_freemem(L, built, sizeof(TString) + length + 1);
    luaD_throw(L, status);
  }
  ((char *)(built + 1))[length] = '\0';
  hash = ember_hash(getstr(built), length);
  ember_charge(L, EMBER_BYTES(length));
  for (same = table->hash[lmod(hash, table->size)]; same != NULL; same = same->gch.next) {
    TString *other = rawgco2ts(same);
    if (other->tsv.len == length && memcmp(getstr(other), getstr(built), length) == 0) {
      if (isdead(G(L), same))
        changewhite(same);
      luaM_freemem(L, built, sizeof(TString) + length + 1);
      return other;
    }
  }
  built->tsv.len = length;
  built->tsv.hash = hash;
  built->tsv.marked = luaC_white(G(L));
  built->tsv.tt = LUA_TSTRING;
  built->tsv.reserved = 0;
  built->tsv.next = table->hash[lmod(hash, table->size)];
  table->hash[lmod(hash, table->size)] = obj2gco(built);
  table->nuse++;
  if (table->nuse > (lu_int32)table->size && table->size <= MAX_INT / 2)
    luaS_resize(L, table->size * 2);
  return built;
}

/* Strings on the stack that are joined to one string. */
typedef struct {
  Building building;
  int count, last;
} Joining;

/* Copies the strings in pieces. Between pieces, the hook may raise an error, and may move the stack. */
static void copy_pieces (lua_State *L, void *data) {
  const Joining *joining = (const Joining *)data;
  char *to = (char *)(joining->building.string + 1);
  int at = joining->last + 1 - joining->count;
  for (; at <= joining->last; at++) {
    size_t done = 0, length = tsvalue(L->base + at)->len;
    while (done < length) {
      size_t piece = length - done < EMBER_PIECE ? length - done : EMBER_PIECE;
      memcpy(to, svalue(L->base + at) + done, piece);
      to += piece;
      done += piece;
      ember_step(L, EMBER_BYTES(piece));
    }
  }
}

/* Joins the `count` strings on the stack up to `base + last`, whose total length is `length` bytes. */
TString *ember_join (lua_State *L, int count, int last, size_t length) {
  Joining joining;
  joining.count = count;
  joining.last = last;
  return build(L, length, copy_pieces, &joining.building);
}

/* A string that is repeated until the result has `total` bytes. */
typedef struct {
  Building building;
  const char *bytes;
  size_t length, total;
} Repeating;

/* Copies the string once, then repeatedly all copies so far, so that short strings take few steps. */
static void copy_repeated (lua_State *L, void *data) {
  const Repeating *repeating = (const Repeating *)data;
  char *start = (char *)(repeating->building.string + 1);
  size_t length = repeating->length, done = 0;
  /* The total size of the whole copies that fit into one piece; 0 if the string is longer than a piece. */
  size_t copies_max = EMBER_PIECE - EMBER_PIECE % length;
  while (done < repeating->total) {
    const char *from = start;
    size_t piece = done < copies_max ? done : copies_max;
    if (copies_max == 0 || done == 0) {
      from = repeating->bytes + done % length;
      piece = length - done % length;
      if (piece > EMBER_PIECE)
        piece = EMBER_PIECE;
    }
    if (piece > repeating->total - done)
      piece = repeating->total - done;
    memcpy(start + done, from, piece);
    done += piece;
    ember_step(L, 1 + EMBER_BYTES(piece));
  }
}

/*
 * Pushes the string of `length` bytes, which is on the stack, repeated `count` times. Returns 0 and pushes nothing if
 * the result is short enough for Lua's own implementation.
 */
int ember_repeat (lua_State *L, const char *bytes, size_t length, size_t count) {
  Repeating repeating;
  TString *repeated;
  if (length == 0 || count < EMBER_JOINED_MIN / length)
    return 0;
  if (count > MAX_SIZET / length)
    luaM_toobig(L);
  luaC_checkGC(L);
  repeating.bytes = bytes;
  repeating.length = length;
  repeating.total = length * count;
  repeated = build(L, repeating.total, copy_repeated, &repeating.building);
  setsvalue2s(L, L->top, repeated);
  incr_top(L);
  return 1;
}

uint64_t ember_secrets[4] = {
  /* Digits of pi, used until ember_lua_seed is called. */
  UINT64_C(0x243F6A8885A308D3), UINT64_C(0x13198A2E03707344),
  UINT64_C(0xA4093822299F31D0), UINT64_C(0x082EFA98EC4E6C89),
};

/* Sets the hash secrets. Must be called before the first interpreter is created, because strings store their hashes. */
LUA_API void ember_lua_seed (const uint64_t *random) {
  memcpy(ember_secrets, random, sizeof(ember_secrets));
}

/* Hashes all but the last 16 bytes, in two chains, because each multiplication waits for the previous one. */
uint64_t ember_hash_all_but_16 (const char *bytes, size_t length, uint64_t state) {
  const char *end = bytes + length;
  uint64_t other = ember_secrets[3];
  for (; end - bytes > 32; bytes += 32) {
    state = ember_mix(ember_read_8(bytes) ^ ember_secrets[1], ember_read_8(bytes + 8) ^ state);
    other = ember_mix(ember_read_8(bytes + 16) ^ ember_secrets[2], ember_read_8(bytes + 24) ^ other);
  }
  state ^= other;
  if (end - bytes > 16)
    state = ember_mix(ember_read_8(bytes) ^ ember_secrets[1], ember_read_8(bytes + 8) ^ state);
  return state;
}

/* Give tests in Rust access to the hashes. */
LUA_API unsigned int ember_lua_hash (const char *bytes, size_t length) {
  return ember_hash(bytes, length);
}

LUA_API unsigned int ember_lua_hash_number (lua_Number number) {
  return ember_hash_number(number);
}
