//go:build !race

package traceid_test

const raceEnabled = false
