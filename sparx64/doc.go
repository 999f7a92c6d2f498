// Package sparx64 implements the block cipher SPARX-64/128 (Dinu, Perrin, Udovenko, Velichkov,
// Großschädl, Biryukov: "Design Strategies for ARX with Provable Bounds: SPARX and LAX", Asiacrypt
// 2016; sixteen-byte key, eight steps of three rounds).
//
// A block is eight bytes: the cipher masks identifiers of 64 bits, one to one. It is not for bulk
// data: under one key, a 64-bit block cipher in any common mode leaks after some gigabytes. It
// does not authenticate.
//
// A block as a uint64 is its eight bytes in big-endian order.
//
// Runs of consecutive numbers, which package randflake encrypts, use AVX-512 (F, BW and VBMI2) or
// AVX2 on amd64, if the processor has them, and NEON on arm64. The build tag purego leaves only the
// portable code.
package sparx64
