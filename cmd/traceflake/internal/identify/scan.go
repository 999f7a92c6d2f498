package identify

import "strings"

// Classes of bytes, for [mayContain].
const (
	hexDigit = 1 << iota
	digit
	upper
	inBase64
)

var classes = func() (c [256]byte) {
	const digits, capitals = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for class, of := range map[byte]string{
		hexDigit: digits + "abcdefABCDEF", digit: digits, upper: capitals,
		inBase64: digits + capitals + strings.ToLower(capitals) + "+/-_",
	} {
		for i := range len(of) {
			c[of[i]] |= class
		}
	}
	return c
}()

// mayContain decides about most lines of a log without the expressions. It reports true for a line
// that is one word, and for one that has 12 hex digits in a row, as every notation has but ULID and
// base64, or a word that looks like one of those two.
func mayContain(line string) bool {
	const longest = 64 // of an ID that has no 12 hex digits in a row
	hex, word, seen, oneWord := 0, 0, byte(0), len(line) <= longest
	for i := 0; i < len(line); i++ {
		c := classes[line[i]]
		if c&hexDigit == 0 {
			hex = 0
		} else if hex++; hex == 12 {
			return true
		}
		if c != 0 {
			word++
			seen |= c
			if word >= 22 && seen&digit != 0 && seen&upper != 0 {
				return true
			}
			continue
		}
		if word >= 11 && seen&upper != 0 && (line[i] == '=' || strings.HasPrefix(line[i:], "%3D")) {
			return true
		}
		if line[i] == ' ' || line[i] == '\t' {
			oneWord = false
		}
		word, seen = 0, 0
	}
	return oneWord
}
