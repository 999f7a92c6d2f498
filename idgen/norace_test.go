//go:build !race

package idgen_test

const raceEnabled = false
