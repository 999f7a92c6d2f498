//go:build !race

package idgen

const RaceEnabled = false
