// Package duration parses the durations of the environment and of flags.
package duration

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// long matches a number of units that [time.ParseDuration] does not know.
var long = regexp.MustCompile(`[0-9.]*[dwy]`)

var hours = map[string]float64{"d": 24, "w": 7 * 24, "y": 365 * 24}

// Parse parses a duration as [time.ParseDuration] does, also in days of 24 hours, weeks, and years
// of 365 days: 90s, 1.5h, 1d12h, 30d.
func Parse(text string) (time.Duration, error) {
	short := long.ReplaceAllStringFunc(text, func(part string) string {
		number, unit := part[:len(part)-1], part[len(part)-1:]
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return part // which is no duration
		}
		return strconv.FormatFloat(n*hours[unit], 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(short)
	if err != nil {
		return 0, fmt.Errorf("%.60q is not a duration such as 90s, 1.5h or 30d", text)
	}
	return d, nil
}
