//go:build purego

package main

func cipherName() string { return "portable" }
