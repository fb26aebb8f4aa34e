//! The changes to Lua's sources, with their reasons.
//!
//! An edit replaces a text that occurs in its file exactly once; otherwise the build fails. Texts to replace are as
//! short as possible. New edits are added to [`EDITS`]; code longer than a few lines is a function in `c/ember_lua.c`.

/// A change of one file of Lua's sources.
pub(crate) struct Edit {
    /// The name of the changed file.
    pub(crate) file: &'static str,
    /// The problem that the edit solves.
    pub(crate) reason: &'static str,
    /// The text to replace.
    pub(crate) before: &'static str,
    /// The text that replaces `before`.
    pub(crate) after: &'static str,
}

/// Applies the edits of a file to its text.
///
/// # Panics
/// Panics if a text to replace does not occur exactly once.
pub(crate) fn edit(file: &str, mut text: String) -> String {
    for edit in EDITS.iter().filter(|edit| edit.file == file) {
        let found = text.matches(edit.before).count();
        assert!(
            found == 1,
            "the text to replace occurs {found} times in {file}: {}\n{}",
            edit.reason,
            edit.before
        );
        text = text.replace(edit.before, edit.after);
    }
    text
}

const COUNT: &str = "counts work in C, so that the hook that may stop a script runs in time";
const SECRET_HASH: &str = "keys that a client chooses must not collide";
const INCLUDE: &str = "declares ember's additions where the counter of a Lua thread is";

/// All edits of Lua's sources.
pub(crate) const EDITS: &[Edit] = &[
    Edit {
        file: "lstate.h",
        reason: INCLUDE,
        before: "LUAI_FUNC void luaE_freethread (lua_State *L, lua_State *L1);\n",
        after: "LUAI_FUNC void luaE_freethread (lua_State *L, lua_State *L1);\n\n#include \"ember_lua.h\"\n",
    },
    Edit {
        file: "lauxlib.c",
        reason: INCLUDE,
        before: "#include \"lauxlib.h\"\n",
        after: "#include \"lauxlib.h\"\n#include \"lstate.h\"\n",
    },
    Edit {
        file: "lbaselib.c",
        reason: INCLUDE,
        before: "#include \"lualib.h\"\n",
        after: "#include \"lualib.h\"\n#include \"lstate.h\"\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: INCLUDE,
        before: "#include \"lualib.h\"\n",
        after: "#include \"lualib.h\"\n#include \"lstate.h\"\n",
    },
    Edit {
        file: "ltablib.c",
        reason: INCLUDE,
        before: "#include \"lualib.h\"\n",
        after: "#include \"lualib.h\"\n#include \"lstate.h\"\n",
    },
    // Edits of the hash functions.
    Edit {
        file: "lstring.c",
        reason: "the hash of a long string used only some characters, and collisions could be chosen for strings of \
                 any length; also counts the time of finding an interned string, although nothing is allocated",
        before: "  unsigned int h = cast(unsigned int, l);  /* seed */
  size_t step = (l>>5)+1;  /* if string is too long, don't hash all its chars */
  size_t l1;
  for (l1=l; l1>=step; l1-=step)  /* compute hash */
    h = h ^ ((h<<5)+(h>>2)+cast(unsigned char, str[l1-1]));
",
        after: "  unsigned int h = ember_hash(str, l);
  if (l >= 1024) ember_charge(L, EMBER_BYTES(l));
",
    },
    Edit {
        file: "ltable.c",
        reason: SECRET_HASH,
        before: "  for (i = 1; i < numints; i++) a[0] += a[i];
  return hashmod(t, a[0]);
",
        after: "  (void)a; (void)i;
  return hashpow2(t, ember_hash_number(n));
",
    },
    // Edits of operations whose time depends on the size of a table, a string or an argument list.
    Edit {
        file: "ltable.c",
        reason: "the length of a table built for the purpose took time proportional to its elements; any border is valid",
        before: "      i = 1;
      while (!ttisnil(luaH_getnum(t, i))) i++;
      return i - 1;
",
        after: "      if (!ttisnil(luaH_getnum(t, MAX_INT))) return MAX_INT;
      j = MAX_INT;
      break;
",
    },
    Edit {
        file: "ltable.c",
        reason: COUNT,
        before: "  for (i++; i < t->sizearray; i++) {",
        after: "  for (i++; i < t->sizearray; i++, ember_charge(L, 1)) {",
    },
    Edit {
        file: "ltable.c",
        reason: COUNT,
        before: "  for (i -= t->sizearray; i < sizenode(t); i++) {",
        after: "  for (i -= t->sizearray; i < sizenode(t); i++, ember_charge(L, 1)) {",
    },
    Edit {
        file: "ltable.c",
        reason: COUNT,
        before: "  /* compute new size for array part */\n",
        after: "  ember_charge(L, ((size_t)t->sizearray + sizenode(t)) >> 2);\n",
    },
    Edit {
        file: "lmem.c",
        reason: COUNT,
        before: "  g->totalbytes = (g->totalbytes - osize) + nsize;\n",
        after: "  g->totalbytes = (g->totalbytes - osize) + nsize;\n  if (nsize >= 1024) ember_charge(L, EMBER_BYTES(nsize));\n",
    },
    Edit {
        file: "lgc.c",
        reason: COUNT,
        before: "        atomic(L);  /* finish mark phase */\n",
        after: "        atomic(L);\n        ember_charge(L, EMBER_BYTES(g->totalbytes) >> 4);\n",
    },
    Edit {
        file: "lgc.c",
        reason: "a script could make one step of the collector do a full collection",
        before: "  if (lim == 0)\n    lim = (MAX_LUMEM-1)/2;  /* no limit */\n",
        after: "  if (lim <= 0 || lim > EMBER_COLLECTED_BYTES_MAX)\n    lim = EMBER_COLLECTED_BYTES_MAX;\n",
    },
    Edit {
        file: "lgc.c",
        reason: COUNT,
        before: "    lim -= singlestep(L);\n",
        after: "    l_mem done = singlestep(L);\n    ember_charge(L, EMBER_BYTES(done));\n    lim -= done;\n",
    },
    Edit {
        file: "lapi.c",
        reason: COUNT,
        before: "        luaC_step(L);\n        if (g->gcstate == GCSpause) {",
        after: "        luaC_step(L);\n        ember_step(L, 1);\n        if (g->gcstate == GCSpause) {",
    },
    Edit {
        file: "lvm.c",
        reason: "strings of many megabytes were joined in one step and copied twice, and the script could not be stopped meanwhile",
        before: "      buffer = luaZ_openspace(L, &G(L)->buff, tl);
      tl = 0;
",
        after: "      if (tl >= EMBER_JOINED_MIN) {
        TString *joined = ember_join(L, n, last, tl);
        setsvalue2s(L, L->base + last + 1 - n, joined);
        total -= n-1;
        last -= n-1;
        continue;
      }
      buffer = luaZ_openspace(L, &G(L)->buff, tl);
      tl = 0;
",
    },
    Edit {
        file: "lvm.c",
        reason: COUNT,
        before: "l_strcmp(rawtsvalue(l), rawtsvalue(r)) < 0",
        after: "ember_compare(L, rawtsvalue(l), rawtsvalue(r)) < 0",
    },
    Edit {
        file: "lvm.c",
        reason: COUNT,
        before: "l_strcmp(rawtsvalue(l), rawtsvalue(r)) <= 0",
        after: "ember_compare(L, rawtsvalue(l), rawtsvalue(r)) <= 0",
    },
    Edit {
        file: "lvm.c",
        reason: COUNT,
        before: "  if ((b = luaV_tonumber(rb, &tempb)) != NULL &&\n",
        after: "  ember_charge_number(L, rb);
  ember_charge_number(L, rc);
  if ((b = luaV_tonumber(rb, &tempb)) != NULL &&
",
    },
    Edit {
        file: "lvm.h",
        reason: COUNT,
        before: "(((o) = luaV_tonumber(o,n)) != NULL))",
        after: "(ember_charge_number(L, o), ((o) = luaV_tonumber(o,n)) != NULL))",
    },
    Edit {
        file: "lvm.c",
        reason: COUNT,
        before: "          Protect(luaD_checkstack(L, n));\n",
        after: "          ember_charge(L, (size_t)n >> 2);\n          Protect(luaD_checkstack(L, n));\n",
    },
    Edit {
        file: "ldo.c",
        reason: COUNT,
        before: "  Table *htab = NULL;\n",
        after: "  Table *htab = NULL;\n  ember_charge(L, (size_t)actual >> 2);\n",
    },
    Edit {
        file: "lapi.c",
        reason: "results of a call may fill the stack, and values that pcall and similar functions push after them must fit, too",
        before: "    { if (nres == LUA_MULTRET && L->top >= L->ci->top) L->ci->top = L->top; }\n",
        after: "    { if (nres == LUA_MULTRET) { if (L->top >= L->ci->top) L->ci->top = L->top; lua_checkstack(L, 1); } }\n",
    },
    // Edits of the compiler.
    Edit {
        file: "llex.c",
        reason: COUNT,
        before: "#define next(ls) (ls->current = zgetc(ls->z))",
        after: "#define next(ls) (ember_step(ls->L, 1), ls->current = zgetc(ls->z))",
    },
    Edit {
        file: "lparser.c",
        reason: "the collector must not free the name of a chunk while its text is read (CVE-2025-49844)",
        before: "  luaX_setinput(L, &lexstate, z, luaS_new(L, name));\n",
        after: "  TString *source = luaS_new(L, name);
  setsvalue2s(L, L->top, source);
  incr_top(L);
  luaX_setinput(L, &lexstate, z, source);
",
    },
    Edit {
        file: "lparser.c",
        reason: "the name of the chunk leaves the stack",
        before: "  lua_assert(lexstate.fs == NULL);\n",
        after: "  L->top--;\n",
    },
    Edit {
        file: "ldo.c",
        reason: "an error of the hook while source text is read must not go to the handler of an outer xpcall",
        before: "  status = luaD_pcall(L, f_parser, &p, savestack(L, L->top), L->errfunc);\n",
        after: "  status = luaD_pcall(L, f_parser, &p, savestack(L, L->top), 0);\n",
    },
    Edit {
        file: "ldo.c",
        reason: "bytecode is not checked, and could read and write any memory",
        before: "((c == LUA_SIGNATURE[0]) ? luaU_undump : luaY_parser)(L, p->z,",
        after: "luaY_parser(L, p->z,",
    },
    // Edits of the standard libraries.
    Edit {
        file: "lbaselib.c",
        reason: "each coroutine had its own counter, so the hook never ran in many short nested coroutines",
        before: "  status = lua_resume(co, narg);\n",
        after: "  co->hookcount = L->hookcount;
  status = lua_resume(co, narg);
  L->hookcount = co->hookcount;
",
    },
    Edit {
        file: "lbaselib.c",
        reason: COUNT,
        before: "    const char *s1 = luaL_checkstring(L, 1);\n",
        after: "    const char *s1 = luaL_checkstring(L, 1);\n    ember_step(L, EMBER_DIGITS(lua_objlen(L, 1)));\n",
    },
    Edit {
        file: "luaconf.h",
        reason: "the sandbox's `unpack` passes two more arguments, and must return as many values as Lua's",
        before: "#define LUAI_MAXCSTACK\t8000\n",
        after: "#define LUAI_MAXCSTACK\t8002\n",
    },
    Edit {
        file: "lauxlib.c",
        reason: COUNT,
        before: "  if (emptybuffer(B))\n    adjuststack(B);\n",
        after: "  if (emptybuffer(B))\n    adjuststack(B);\n  ember_step(B->L, LUAL_BUFFERSIZE);\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: "a long string was repeated byte by byte and joined in several rounds",
        before: "  int n = luaL_checkint(L, 2);\n  luaL_buffinit(L, &b);\n",
        after: "  int n = luaL_checkint(L, 2);
  if (n > 0 && ember_repeat(L, s, l, (size_t)n)) return 1;
  luaL_buffinit(L, &b);
",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "  while (n-- > 0)\n",
        after: "  while (ember_step(L, 1), n-- > 0)\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "  while (strfrmt < strfrmt_end) {\n",
        after: "  while (strfrmt < strfrmt_end) {\n    ember_step(L, 1);\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: "the pattern matcher recurses as deep as the pattern requires, and the stack is limited",
        before: "  int level;  /* total number of captures (finished or unfinished) */\n",
        after: "  int depth;\n  int level;\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: "the depth starts at zero (string.find, string.match)",
        before: "    ms.L = L;\n    ms.src_init = s;\n",
        after: "    ms.L = L;\n    ms.depth = 0;\n    ms.src_init = s;\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: "the depth starts at zero (string.gmatch)",
        before: "  ms.L = L;\n  ms.src_init = s;\n",
        after: "  ms.L = L;\n  ms.depth = 0;\n  ms.src_init = s;\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: "the depth starts at zero (string.gsub)",
        before: "  ms.L = L;\n  ms.src_init = src;\n",
        after: "  ms.L = L;\n  ms.depth = 0;\n  ms.src_init = src;\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: "the matcher counts its steps and its depth",
        before: "static const char *match (MatchState *ms, const char *s, const char *p) {
  init: /* using goto's to optimize tail recursion */
",
        after: "static const char *match_here (MatchState *ms, const char *s, const char *p);


static const char *match (MatchState *ms, const char *s, const char *p) {
  const char *end;
  if (ms->depth++ == EMBER_MATCH_DEPTH_MAX)
    luaL_error(ms->L, \"pattern too complex\");
  end = match_here(ms, s, p);
  ms->depth--;
  return end;
}


static const char *match_here (MatchState *ms, const char *s, const char *p) {
  init:
  ember_step(ms->L, 1);
",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "      const char *ep = classend(ms, p);  /* points to what is next */\n",
        after: "      const char *ep = classend(ms, p);\n      if (ep - p > 8) ember_step(ms->L, (size_t)(ep - p) >> 2);\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "          ep = classend(ms, p);  /* points to what is next */\n",
        after: "          ep = classend(ms, p);\n          ember_step(ms->L, (size_t)(ep - p) >> 2);\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "singlematch(uchar(*(s+i)), p, ep))\n    i++;\n",
        after: "singlematch(uchar(*(s+i)), p, ep)) {\n    ember_step(ms->L, 1 + ((size_t)(ep - p) >> 2));\n    i++;\n  }\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "    while (++s < ms->src_end) {\n",
        after: "    while (++s < ms->src_end) {\n      ember_step(ms->L, 1);\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "  len = ms->capture[l].len;\n",
        after: "  len = ms->capture[l].len;\n  ember_step(ms->L, EMBER_BYTES(len));\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "static const char *lmemfind (const char *s1, size_t l1,\n",
        after: "static const char *lmemfind (lua_State *L, const char *s1, size_t l1,\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "      init++;   /* 1st char is already checked */\n",
        after: "      init++;\n      ember_step(L, 1 + EMBER_BYTES(l2) + EMBER_BYTES(init - s1));\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "    const char *s2 = lmemfind(s+init, l1-init, p, l2);\n",
        after: "    const char *s2 = lmemfind(L, s+init, l1-init, p, l2);\n    ember_step(L, EMBER_BYTES(s2 ? 0 : l1-init));\n",
    },
    Edit {
        file: "lstrlib.c",
        reason: COUNT,
        before: "  else if ((size_t)(init) > l1) init = (ptrdiff_t)l1;\n",
        after: "  else if ((size_t)(init) > l1) init = (ptrdiff_t)l1;\n  ember_step(L, EMBER_DIGITS(l2));\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "  for (i=1; i <= n; i++) {\n",
        after: "  for (i=1; i <= n; i++) {\n    ember_step(L, 4);\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "  while (lua_next(L, 1)) {\n    lua_pushvalue(L, 2);  /* function */\n",
        after: "  while (lua_next(L, 1)) {\n    ember_step(L, 4);\n    lua_pushvalue(L, 2);\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "  while (lua_next(L, 1)) {\n    lua_pop(L, 1);  /* remove value */\n",
        after: "  while (lua_next(L, 1)) {\n    ember_step(L, 4);\n    lua_pop(L, 1);\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "      for (i = e; i > pos; i--) {  /* move up elements */\n",
        after: "      for (i = e; i > pos; i--) {\n        ember_step(L, 2);\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "  for ( ;pos<e; pos++) {\n",
        after: "  for ( ;pos<e; pos++) {\n    ember_step(L, 2);\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "  lua_rawgeti(L, 1, i);\n  if (!lua_isstring(L, -1))\n",
        after: "  ember_step(L, 2);\n  lua_rawgeti(L, 1, i);\n  if (!lua_isstring(L, -1))\n",
    },
    Edit {
        file: "ltablib.c",
        reason: COUNT,
        before: "static int sort_comp (lua_State *L, int a, int b) {\n",
        after: "static int sort_comp (lua_State *L, int a, int b) {\n  ember_step(L, 4);\n",
    },
];
