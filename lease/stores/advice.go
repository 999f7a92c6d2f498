package stores

import (
	"cmp"
	"regexp"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// mistakes are in URLs that cannot be opened, in the order in which they are looked for.
var mistakes = []struct {
	pattern *regexp.Regexp
	fix     string
}{
	{regexp.MustCompile(`^["'\x60]`),
		"remove the quotes, which a shell removes and a file of variables does not"},
	{regexp.MustCompile(`<no value>|\{\{|\$[({]\w+[)}]`),
		"set what the URL refers to: a placeholder was not replaced"},
	{regexp.MustCompile(`\s#`),
		"remove the comment: in a file of variables it belongs to the value"},
	{regexp.MustCompile(`^[A-Za-z0-9+.-]*[A-Z][A-Za-z0-9+.-]*:`),
		"write the kind of store in lower case"},
	{regexp.MustCompile(`^\w+://([^/?#]*@)?[0-9a-f]*:[0-9a-f]*:[0-9a-f:]*(/|$)`),
		"write the IPv6 address in brackets: [::1]:5432"},
	{regexp.MustCompile(`%%|%([^0-9A-Fa-f]|$)|%[0-9A-Fa-f]([^0-9A-Fa-f]|$)`),
		"write a % in the password as %25, and other special characters in the same way; a unit " +
			"of systemd, and only that, doubles each %"},
	{regexp.MustCompile(`^\w+://[^@/]*:\d*[^@/?#\d][^@/?#]*[/?#\[\] ][^@]*@|@[^/]*@`),
		"write special characters of the password as %XX: / is %2F, @ is %40, # is %23, ? is " +
			"%3F, [ is %5B, a space is %20"},
}

// advise adds what an operator can do to the error of a URL that cannot be opened.
func advise(url string, err error) error {
	err = driver.Diagnose(err) // of a file that the URL names
	if lease.Fix(err) != "" {
		return err
	}
	fix := ""
	for _, mistake := range mistakes {
		if mistake.pattern.MatchString(url) {
			fix = cmp.Or(fix, mistake.fix)
		}
	}
	return &lease.Error{Err: err, Fix: cmp.Or(fix, "correct the URL of the store")}
}

// invalid is an error of a URL. Its text is that of err alone.
type invalid struct{ error }

func (e invalid) Unwrap() []error { return []error{e.error, lease.ErrInvalidRequest} }
