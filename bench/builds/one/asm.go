//go:build !purego

package main

import "github.com/traceflake/traceflake/bench/builds"

func cipherName() string { return builds.Cipher() }
