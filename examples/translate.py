#!/usr/bin/env python3
"""Translate lines with libheed, by ctypes: translate.py MODEL <text.en (LIBHEED: which library)"""
import ctypes, os, sys
from ctypes import byref, c_char, c_char_p, c_double, c_int, c_int64, c_void_p

class Error(ctypes.Structure): _fields_ = [("status", c_int), ("text", c_char * 512)]

class Search(ctypes.Structure):  # heed_search_options: its first fields; the rest stays 0
    _fields_ = [("beam", c_int64), ("n_best", c_int64), ("alpha", c_double), ("form", c_int),
                ("patience", c_double), ("extra_length", c_int64), ("rest", c_char * 512)]

class Translation(ctypes.Structure):  # heed_translation: its first field
    _fields_ = [("text", c_char_p), ("rest", c_char * 256)]

heed = ctypes.CDLL(os.environ.get("LIBHEED", "libheed.so.0"))
heed.heed_translator_open.restype = heed.heed_arena_new.restype = c_void_p
arena = c_void_p(heed.heed_arena_new(None, None))
error, how, out = Error(), Search(4, 1, 0.6, 0, 0, 50), Translation()
model = c_void_p(heed.heed_translator_open(sys.argv[1].encode(), 0, None, byref(error)))
for line in sys.stdin.buffer if model else []:
    text = byref(c_char_p(line.rstrip(b"\n")))
    bad = heed.heed_translate(model, byref(how), text, c_int64(1), arena, byref(out), byref(error))
    print("" if bad else out.text.decode())
    heed.heed_arena_reset(arena)
sys.exit(error.text.decode() or 0)
