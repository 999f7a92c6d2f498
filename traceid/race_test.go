//go:build race

package traceid_test

const raceEnabled = true
