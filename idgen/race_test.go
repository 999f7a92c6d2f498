//go:build race

package idgen

const RaceEnabled = true
