//go:build race

package idgen_test

const raceEnabled = true
