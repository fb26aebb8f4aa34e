/* What ember adds to Lua: see ember_lua.h. */

#include <string.h>

#define LUA_CORE

#include "lua.h"

#include "ldebug.h"
#include "ldo.h"
#include "lobject.h"
#include "lstate.h"

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
