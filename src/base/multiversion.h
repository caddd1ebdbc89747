// Functions that the compiler builds twice, for any x86-64 and for one with AVX2 and BMI (2013 and later);
// the loader picks one at the start. For loops over columns, where it is worth a fifth of the time.
#pragma once

// GCC alone: its resolvers run before a sanitizer's runtime is there, and clang 14 has none for member
// functions.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
/// Put this before a function's definition. Functions that it calls are compiled for its target only if they
/// are inlined.
#define TACHO_MULTIVERSION __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TACHO_MULTIVERSION
#endif
