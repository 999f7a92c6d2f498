// Package mistakes finds what is wrong with the URLs of servers, seen in set-ups of teams, and what
// to do about it. It repeats no part of a URL.
package mistakes

import (
	"cmp"
	"regexp"
)

// A Mistake is in each URL that matches a pattern.
type Mistake struct {
	Pattern *regexp.Regexp
	Fix     string
}

// Find returns the fix of the first of these mistakes in a URL, or "".
func Find(url string, all []Mistake) string {
	for _, m := range all {
		if m.Pattern.MatchString(url) {
			return m.Fix
		}
	}
	return ""
}

// Misread returns the fix for a URL that may be opened, but not as it was meant, or "".
func Misread(url string) string { return Find(url, misread) }

var misread = []Mistake{
	{regexp.MustCompile(`<no value>|\{\{|\$[({]\w+[)}]`),
		"set what the URL refers to: a placeholder was not replaced"},
	{regexp.MustCompile(`\s#`),
		"remove the comment: in a file of variables it belongs to the value"},
}

// Fix returns the fix for a URL that cannot be opened, or "".
func Fix(url string) string { return cmp.Or(Misread(url), Find(url, invalid)) }

var invalid = []Mistake{
	{regexp.MustCompile(`^["'\x60]`),
		"remove the quotes, which a shell removes and a file of variables does not"},
	{regexp.MustCompile(`^[A-Za-z0-9+.-]*[A-Z][A-Za-z0-9+.-]*:`),
		"write what is before the first colon in lower case"},
	{regexp.MustCompile(`^\w+://([^/?#]*@)?[0-9a-f]*:[0-9a-f]*:[0-9a-f:]*(/|$)`),
		"write the IPv6 address in brackets: [::1]:5432"},
	{regexp.MustCompile(`%%|%([^0-9A-Fa-f]|$)|%[0-9A-Fa-f]([^0-9A-Fa-f]|$)`),
		"write a % in the password as %25, and other special characters in the same way; a unit " +
			"of systemd, and only that, doubles each %"},
	{regexp.MustCompile(`^\w+://[^@/]*:\d*[^@/?#\d][^@/?#]*[/?#\[\] ][^@]*@|@[^/]*@`),
		"write special characters of the password as %XX: / is %2F, @ is %40, # is %23, ? is " +
			"%3F, [ is %5B, a space is %20"},
}
