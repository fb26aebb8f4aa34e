/* What ember adds to Lua: see ember_lua.h. */

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
 * Order of two strings by their bytes. So does strcoll in the locale "C", which is the only one a server has, but that
 * stops at each zero byte and takes a second for as many as fit.
 */
int ember_compare (lua_State *L, const TString *left, const TString *right) {
  size_t left_length = left->tsv.len, right_length = right->tsv.len;
  size_t shorter = left_length < right_length ? left_length : right_length;
  int order = memcmp(getstr(left), getstr(right), shorter);
  ember_charge(L, EMBER_BYTES(shorter));
  return order != 0 ? order : (left_length > right_length) - (left_length < right_length);
}

/* Strings on the stack on their way into one. */
typedef struct {
  TString *joined;
  int count, last;
} Joining;

/* Copies them, a piece at a time. The hook may raise an error, and may move the stack. */
static void copy_pieces (lua_State *L, void *data) {
  const Joining *joining = (const Joining *)data;
  char *to = (char *)(joining->joined + 1);
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
  *to = '\0';
}

/*
 * Joins the `count` strings of the stack up to `base + last`, which have `length` bytes together. Nobody but this function
 * knows of the memory until all of it is written: the collector does not see it, and an error gives it back.
 */
TString *ember_join (lua_State *L, int count, int last, size_t length) {
  stringtable *table = &G(L)->strt;
  Joining joining;
  TString *joined;
  GCObject *same;
  unsigned int hash;
  int status;
  if (length > MAX_SIZET - sizeof(TString) - 1)
    luaM_toobig(L);
  joined = (TString *)luaM_malloc(L, sizeof(TString) + length + 1);
  joining.joined = joined;
  joining.count = count;
  joining.last = last;
  status = luaD_rawrunprotected(L, copy_pieces, &joining);
  if (status != 0) {
    luaM_freemem(L, joined, sizeof(TString) + length + 1);
    luaD_throw(L, status);
  }
  hash = ember_hash(getstr(joined), length);
  ember_charge(L, EMBER_BYTES(length));
  for (same = table->hash[lmod(hash, table->size)]; same != NULL; same = same->gch.next) {
    TString *other = rawgco2ts(same);
    if (other->tsv.len == length && memcmp(getstr(other), getstr(joined), length) == 0) {
      if (isdead(G(L), same))
        changewhite(same);
      luaM_freemem(L, joined, sizeof(TString) + length + 1);
      return other;
    }
  }
  joined->tsv.len = length;
  joined->tsv.hash = hash;
  joined->tsv.marked = luaC_white(G(L));
  joined->tsv.tt = LUA_TSTRING;
  joined->tsv.reserved = 0;
  joined->tsv.next = table->hash[lmod(hash, table->size)];
  table->hash[lmod(hash, table->size)] = obj2gco(joined);
  table->nuse++;
  if (table->nuse > (lu_int32)table->size && table->size <= MAX_INT / 2)
    luaS_resize(L, table->size * 2);
  return joined;
}

uint64_t ember_secrets[4] = {
  /* Until ember_lua_seed has been called: digits of pi. */
  UINT64_C(0x243F6A8885A308D3), UINT64_C(0x13198A2E03707344),
  UINT64_C(0xA4093822299F31D0), UINT64_C(0x082EFA98EC4E6C89),
};

/* Sets the secrets, before the first interpreter is made: a string keeps its hash for as long as it lives. */
LUA_API void ember_lua_seed (const uint64_t *random) {
  memcpy(ember_secrets, random, sizeof(ember_secrets));
}

/* Two rows of multiplications, because each has to wait for the one before it; then the last 16 bytes. */
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

/* For tests in another language. */
LUA_API unsigned int ember_lua_hash (const char *bytes, size_t length) {
  return ember_hash(bytes, length);
}
